"""Wrong input stops before any job with one line: the file, the key and the nearest valid name. Tested through Layout,
which the workflow creates first; tests/workflow runs a few cases with snakemake.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fedrepro.errors import UserError
from fedrepro.workflow.layout import Layout
from tests.configs import ARTEFACTS, changed, write_config, write_study, write_yaml
from tests.mutations import LONGEST_LINE, no_hang

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
        ({"dataset.name": [1]}, "dataset.name: [1] is not of type string"),
        ({"model.name": [1]}, "model.name: [1] is not of type string"),
        ({"local": ...}, "the file: 'local' is missing"),
        ({"dataset.name": ...}, "dataset: 'name' is missing"),
        ({"scales.smoke": {"local": {"epochs": 2}}}, "scales.smoke.local.epochs overrides a key that is not there"),
        ({"scales.smok": {}}, "unknown key 'scales.smok'; did you mean 'smoke'?"),
        ({"algorithms.fedpd.gamma": 0}, "algorithms.fedpd: FedPD: gamma = 0.0"),
        ({"scales.smoke.algorithms": {"fedavgg": {}}}, "scales.smoke.algorithms.fedavgg overrides a key that is not"),
        ({"scales.smoke.dataset": {"name": [1]}}, "scales.smoke.dataset.name: cannot be changed here"),
        ({"scales.smoke.model": {"name": [1]}}, "scales.smoke.model.name: cannot be changed here"),
        ({"dataset.samples": 10**400}, f"dataset.samples: 1{'0' * 38} … {'0' * 38} is too large"),
        ({"dataset.samples": 10**18}, f"dataset.samples: {10**18} is too large, must be ≤ 1000000000"),
        ({"algorithms.fedavg.lr": 10**400}, f"algorithms.fedavg.lr: 1{'0' * 38} … {'0' * 38} is too large"),
    ],
)
def test_in_an_experiment(refusal, changes, says):
    assert refusal(changes).startswith(f"{LINE}: {says}")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"grid": 5}, "grid: 5 is not of type object"),
        ({"grid": {"lr": 5}}, "grid.lr: 5 is not of type array"),
        ({"method": ["x"]}, "method: ['x'] is not of type string"),
        ({"method": {"x": 1}}, "method: {'x': 1} is not of type string"),
    ],
)
def test_in_a_variant_and_in_a_scale(refusal, wrong, says):
    arm, variant = "algorithms.fedavg", "algorithms.fedavg.variants.a"
    assert refusal({f"{arm}.variants": {"a": wrong}}) == f"{LINE}: {variant}.{says}"
    assert refusal({"scales.smoke.algorithms": {"fedavg": wrong}}) == f"{LINE}: scales.smoke.{arm}.{says}"
    changes = {f"{arm}.variants": {"a": {}}, "scales.smoke.algorithms": {"fedavg": {"variants": {"a": wrong}}}}
    assert refusal(changes) == f"{LINE}: scales.smoke.{variant}.{says}"


def test_more_settings_than_fit_in_memory_are_counted_not_made(refusal):
    grid = {f"axis{i}": list(range(60)) for i in range(8)}
    with no_hang():
        told = refusal({"algorithms.fedavg.variants": {"a": {"grid": grid}}})
    assert told == f"{LINE}: algorithms.fedavg: {60**8} settings so far, at most 10000 are possible"
    told = refusal({"algorithms": {name: {"grid": {"lr": list(range(5001))}} for name in ("fedavg", "again")}})
    assert told == f"{LINE}: algorithms.again: 10002 settings so far, at most 10000 are possible"


def test_as_many_settings_as_are_possible_are_checked_in_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path, {"algorithms": {"fedavg": {"grid": {"lr": [i / 1e4 for i in range(1, 10_000)]}}}})
    with no_hang():
        (found,) = Layout(config).experiments.values()
    assert len(found.runs("fedavg")) == 9_999


@pytest.mark.parametrize("kind", ["list", "text"])
def test_a_long_choice_of_studies(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    only = ["toy", "toy/fig1"] * 100_000
    with no_hang():
        layout = Layout({**write_config(tmp_path), "only": only if kind == "list" else " ".join(only)})
    assert layout.chosen == ["toy/fig1", "toy/fig3b"]


@pytest.mark.parametrize("key", ["data_dir", "config", "only"])
def test_a_long_name(refusal, key):
    told = refusal(**{key: "x" * 5000})
    assert told.startswith(f"{key}: ")
    assert "x … x" in told
    assert len(told) < LONGEST_LINE


@pytest.mark.parametrize("name", ["experiments/pipe.yaml", "study.yaml", "claims.yaml", "published.csv"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_pipe_a_device_or_a_folder_is_not_read(tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    config = {**write_config(tmp_path), "config": "config"}
    path = Path("config/studies/toy") / name
    path.unlink(missing_ok=True)
    make = {"pipe": os.mkfifo, "device": lambda path: path.symlink_to("/dev/zero"), "folder": Path.mkdir}
    make[kind](path)
    with no_hang(wall=True), pytest.raises(UserError) as caught:
        Layout(config)
    assert str(caught.value) == f"{path}: is a {'folder' if kind == 'folder' else 'pipe or device'}, not a file"


def test_a_yaml_file_beyond_all_measure(refusal):
    path = Path("config/studies/toy/experiments/bad.yaml")
    path.parent.mkdir(parents=True)
    path.write_text("#" * 500_001, encoding="utf-8")
    assert refusal() == f"{path}: 500001 bytes, at most 500000 are possible"


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
    Path("config/studies/toy/experiments/bad.yaml").write_text(text, encoding="utf-8")  # read before line.yaml
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
