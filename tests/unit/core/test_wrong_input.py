"""Wrong input stops before any job with one line: the file, the key and the nearest valid name. Tested through Layout,
which the workflow creates first; tests/workflow runs a few cases with snakemake.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrepro.errors import UserError
from fedrepro.workflow.layout import Layout
from tests.configs import ARTEFACTS, changed, write_config, write_study, write_yaml

LINE = "config/studies/toy/experiments/line.yaml"
CONFIG = "config/config.yaml (or --config)"


@pytest.fixture
def refusal(tmp_path, monkeypatch):
    """Writes the small config with changes (to the experiment, or to the config itself) and returns the error."""
    monkeypatch.chdir(tmp_path)

    def refuse(changes: dict | None = None, **config) -> str:
        given = {**write_config(tmp_path, changes), "config": "config", **config}
        write_study(tmp_path / "config", "empty")
        with pytest.raises(UserError) as caught:
            Layout({k: v for k, v in given.items() if v is not ...})
        assert not Path("results").exists()
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return refuse


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"round": 3}, "unknown key 'round'; did you mean 'rounds'?"),
        ({"evaluate.evry": 3}, "unknown key 'evaluate.evry'; did you mean 'every'?"),
        ({"algorithms": {"fedavgg": {}}}, "algorithms.fedavgg: algorithm 'fedavgg' is unknown; did you mean 'fedavg'?"),
        ({"algorithms.fedavg.l_r": 1}, "unknown key 'algorithms.fedavg.l_r'; did you mean 'lr'?"),
        ({"algorithms.fedpd.grid": {"gama": [1]}}, "unknown key 'algorithms.fedpd.gama'; did you mean 'gamma'?"),
        ({"algorithms.fedpd.start": "onw"}, "algorithms.fedpd: FedPD: start = 'onw'"),
        ({"dataset.name": "dlf_line"}, "dataset.name: dataset 'dlf_line' is unknown; did you mean 'dfl_line'?"),
        ({"dataset.slop": 5}, "unknown key 'dataset.slop'; did you mean 'slope'?"),
        ({"model.name": "linaer"}, "model.name: model 'linaer' is unknown; did you mean 'linear'?"),
        (
            {"partition.name": "by_cleint"},
            "partition.name: partition 'by_cleint' is unknown; did you mean 'by_client'?",
        ),
        ({"rounds": -1}, "rounds: -1 is too small, must be ≥ 1"),
        ({"scales.smoke.rounds": -1}, "scales.smoke.rounds: -1 is too small, must be ≥ 1"),
        ({"dataset.samples": -100}, "dataset.samples: -100 is too small"),
        ({"seeds": "ten"}, "seeds: 'ten' is not of type integer"),
        ({"seeds": 2.0}, "seeds: 2.0 is not of type integer"),
        ({"algorithms.fedpd.gamma": "two"}, "algorithms.fedpd.gamma: 'two' is not of type number"),
        ({"dataset": "dfl_line"}, "dataset: 'dfl_line' is not of type object"),
        ({"local": ...}, "the file: 'local' is missing"),
        ({"dataset.name": ...}, "dataset: 'name' is missing"),
        ({"scales.smoke": {"local": {"epochs": 2}}}, "scales.smoke.local.epochs overrides a key that is not there"),
        ({"scales.smok": {}}, "unknown key 'scales.smok'; did you mean 'smoke'?"),
        ({"algorithms.fedpd.gamma": 0}, "algorithms.fedpd: FedPD: gamma = 0.0"),
    ],
)
def test_in_an_experiment(refusal, changes, says):
    assert refusal(changes).startswith(f"{LINE}: {says}")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"scale": "smok"}, f"{CONFIG}: scale: 'smok' is unknown; did you mean 'smoke'?"),
        ({"only": "toi"}, "only: 'toi' is neither a study nor an artefact; did you mean 'toy'?"),
        ({"only": "toy/fig3c"}, "only: 'toy/fig3c' is neither a study nor an artefact; did you mean 'toy/fig3b'?"),
        ({"only": "toy;fig"}, "only: 'toy;fig' is neither a study nor an artefact"),
        ({"only": "empty"}, "only: study 'empty' has no artefacts yet"),
        ({"only": 3}, f"{CONFIG}: only: 3 is not of type string or array"),
        ({"dveice": "cpu"}, f"{CONFIG}: unknown key 'dveice'; did you mean 'device'?"),
        ({"device": "gpu"}, f"{CONFIG}: device: 'gpu' is unknown; did you mean 'cpu'?"),
        ({"strategy": "vmaps"}, f"{CONFIG}: strategy: 'vmaps' is unknown; did you mean 'vmap'?"),
        ({"data": "reel"}, f"{CONFIG}: data: 'reel' is unknown; did you mean 'real'?"),
        ({"data_dir": 7}, f"{CONFIG}: data_dir: 7 is not of type string or null"),
        ({"results": ...}, f"{CONFIG}: the file: 'results' is missing"),
    ],
)
def test_in_the_config_or_on_the_command_line(refusal, config, says):
    assert refusal(**config).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title: [a\n", "line 2: "),
        ("title: a\ntitle: b\n", "line 2: key 'title' appears twice"),
        ("title: &a b\nsource: *a\n", "line 2: YAML aliases are not allowed"),
        ("", "the file: None is not of type object"),
        ("- a\n", "the file: ['a'] is not of type object"),
    ],
)
def test_in_a_files_form(refusal, text, says):
    Path("config/studies/toy/experiments").mkdir(parents=True)
    Path("config/studies/toy/experiments/bad.yaml").write_text(text)  # read before line.yaml
    assert refusal().startswith(f"config/studies/toy/experiments/bad.yaml: {says}")


def test_in_an_artefact(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path)
    for changes, says in [
        ({"fig3b.experiments": ["lien"]}, "fig3b.experiments: 'lien' is unknown; did you mean 'line'?"),
        ({"fig3b.kind": "picture"}, "fig3b.kind: 'picture' is unknown"),
        ({"fig3b.captoin": "x"}, "unknown key 'fig3b.captoin'; did you mean 'caption'?"),
    ]:
        write_yaml(Path("config/studies/toy/artefacts.yaml"), changed(ARTEFACTS, changes))
        with pytest.raises(UserError) as caught:
            Layout({**config, "config": "config"})
        assert str(caught.value).startswith(f"config/studies/toy/artefacts.yaml: {says}")
