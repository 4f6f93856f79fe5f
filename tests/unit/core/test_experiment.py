"""Experiments: scales, settings and jobs, and the hashes that identify them."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrepro.core.experiment import load_artefacts, load_experiments, resolve, select
from fedrepro.core.streams import seeds_of
from fedrepro.errors import UserError
from tests.configs import ARTEFACTS, EXPERIMENT, changed, experiment, write_config, write_study, write_yaml


def test_a_scale_overrides_values_that_are_there():
    raw = changed(EXPERIMENT, {"scales.smoke": {"rounds": 3, "dataset": {"samples": 4}}})
    smoke, paper = (resolve(raw, scale, Path("a.yaml")) for scale in ("smoke", "paper"))
    assert (smoke["rounds"], smoke["dataset"]["samples"], smoke["dataset"]["clients"]) == (3, 4, 2)
    assert paper == {k: v for k, v in EXPERIMENT.items() if k != "scales"}
    assert resolve(raw, "workstation", Path("a.yaml")) == paper  # the default
    assert raw["dataset"]["samples"] == 6  # the values of the file are unchanged


@pytest.mark.parametrize(
    ("smoke", "says"),
    [
        ({"local": {"epochs": 1}}, "scales.smoke.local.epochs overrides a key that is not there; did you mean 'steps'"),
        (
            {"algorithms": {"fedavgg": {"lr": 1}}},
            "scales.smoke.algorithms.fedavgg overrides a key that is not there; did you mean 'fedavg'?",
        ),
        ({"algorithms": {"fedavg": {"lr": {"x": 1}}}}, "scales.smoke.algorithms.fedavg.lr.x overrides a key"),
        ({"algorithms": {"fedpd": {"start": {"x": 1}}}}, "scales.smoke.algorithms.fedpd.start.x overrides a key"),
    ],
)
def test_a_scale_adds_nothing(smoke, says):
    with pytest.raises(UserError) as caught:
        resolve(changed(EXPERIMENT, {"scales.smoke": smoke}), "smoke", Path("a.yaml"))
    assert str(caught.value).startswith(f"a.yaml: {says}")


def test_shards_cut_the_seeds_into_jobs():
    assert experiment(scale="paper").shards() == ["0-3", "4-5"]
    assert experiment(scale="smoke").shards() == ["0-1"]  # 4 per job, but only 2 seeds
    assert experiment({"seeds_per_job": 1}, "smoke").shards() == ["0-0", "1-1"]
    assert [seeds_of(s) for s in ("0-3", "4-5", "7-7")] == [[0, 1, 2, 3], [4, 5], [7]]


def test_an_algorithm_can_appear_under_names_of_its_own():
    e = experiment({"algorithms": {"slow": {"method": "fedavg", "lr": 0.01}, "fedavg": {}}})
    assert e.methods("slow") == e.methods("fedavg") == ["fedavg"]
    assert e.settings("slow") == {"": {"lr": 0.01}}


def test_settings_are_the_grid_of_each_variant():
    arm = {
        "lr": 0.1,
        "grid": {"decay": [1, 0.9], "lr": [0.2]},
        "variants": {"plain": {}, "own": {"lr": 9, "mu": 2}},
    }
    settings = experiment({"algorithms": {"fedprox": arm}}).settings("fedprox")
    assert settings == {
        "plain,decay=1,lr=0.2": {"lr": 0.2, "decay": 1},
        "plain,decay=0.9,lr=0.2": {"lr": 0.2, "decay": 0.9},
        "own,decay=1,lr=0.2": {"lr": 0.2, "mu": 2, "decay": 1},
        "own,decay=0.9,lr=0.2": {"lr": 0.2, "mu": 2, "decay": 0.9},
    }


def test_variants_may_be_methods_with_grids_of_their_own():
    arm = {
        "lr": 0.1,
        "variants": {"plain": {"method": "fedavg"}, "tied": {"method": "fedprox", "lr": 0.2, "grid": {"mu": [0, 1]}}},
    }
    e = experiment({"algorithms": {"all": arm}})
    assert e.methods("all") == ["fedavg", "fedprox"]
    assert e.settings("all") == {
        "plain": {"lr": 0.1},
        "tied,mu=0": {"lr": 0.2, "mu": 0},
        "tied,mu=1": {"lr": 0.2, "mu": 1},
    }
    assert [e.method_of("all", s) for s in e.settings("all")] == ["fedavg", "fedprox", "fedprox"]


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"title": "Another title", "source": "§V"}, True),
        ({"algorithms.fedpd.gamma": 0.9}, True),  # belongs to another algorithm
        ({"algorithms.fedavg.lr": 0.2}, False),
        ({"algorithms.fedavg": {"method": "fedprox", "lr": 0.1}}, False),
        ({"scales.smoke.rounds": 4}, False),
        ({"rounds": 41}, True),  # the smoke scale has 3
        ({"dataset.samples": 7}, False),
        ({"model.bias": False}, False),
    ],
)
def test_a_job_is_identified_by_what_it_depends_on(changes, same):
    assert (experiment(changes).job_sha256("fedavg") == experiment().job_sha256("fedavg")) is same


def test_jobs_of_two_experiments_or_algorithms_differ():
    two = {"algorithms": {"a": {"method": "fedavg"}, "b": {"method": "fedavg"}}}
    assert experiment(two).job_sha256("a") != experiment(two).job_sha256("b")
    assert experiment(name="other").job_sha256("fedavg") != experiment().job_sha256("fedavg")


def test_equal_data_is_shared_whatever_the_order_of_its_keys():
    base = experiment()
    turned = {"dataset": {"samples": 6, "clients": 2, "servers": 2, "name": "dfl_line"}}
    assert experiment(turned, name="other").dataset_id == base.dataset_id
    assert experiment({"dataset.samples": 7}).dataset_id != base.dataset_id
    assert base.dataset_id.startswith("dfl_line-")
    assert base.federation_id.split("/")[0] == base.dataset_id
    assert base.federation_id.split("/")[1].startswith("by_client-")


def test_every_file_under_experiments_is_read(tmp_path):
    config = write_config(tmp_path)["config"]
    write_yaml(write_study(Path(config), "other") / "experiments" / "ring.yaml", EXPERIMENT)
    loaded = load_experiments(Path(config), "demo")
    assert {k: (e.study, e.name, e.scale) for k, e in loaded.items()} == {
        "toy/line": ("toy", "line", "demo"),
        "other/ring": ("other", "ring", "demo"),
    }
    assert loaded["other/ring"].path == Path(config) / "studies" / "other" / "experiments" / "ring.yaml"


def test_an_unknown_scale_or_study_is_named(tmp_path):
    config = Path(write_config(tmp_path)["config"])
    with pytest.raises(UserError, match="scale: 'papr' is unknown; did you mean 'paper'"):
        load_experiments(config, "papr")
    with pytest.raises(UserError, match=r"^study 'toi' is unknown; did you mean 'toy'"):
        load_experiments(config, "smoke", "toi")


def test_artefacts_know_their_study_and_draw_on_known_experiments(tmp_path):
    config = Path(write_config(tmp_path)["config"])
    loaded = load_artefacts(config, load_experiments(config, "smoke"))
    assert loaded["toy/fig3b"] == {**ARTEFACTS["fig3b"], "study": "toy", "id": "toy/fig3b"}
    for key in ("experiments", "data"):
        write_yaml(config / "studies" / "toy" / "artefacts.yaml", changed(ARTEFACTS, {f"fig3b.{key}": ["lime"]}))
        with pytest.raises(UserError, match=r"toy/artefacts\.yaml: fig3b.*: 'lime' is unknown; did you mean 'line'"):
            load_artefacts(config, load_experiments(config, "smoke"))


def test_only_takes_studies_and_artefacts():
    artefacts = dict.fromkeys(["toy/fig1", "toy/fig2", "other/fig2"])
    assert select([], artefacts) == ["other/fig2", "toy/fig1", "toy/fig2"]
    assert select(["other"], artefacts) == ["other/fig2"]
    assert select(["toy/fig2", "other"], artefacts) == ["toy/fig2", "other/fig2"]
    assert select(["toy/fig2", "toy"], artefacts) == ["toy/fig2", "toy/fig1"]  # each once
    with pytest.raises(UserError, match="only: 'toi' is neither a study nor an artefact; did you mean 'toy'"):
        select(["toi"], artefacts)
    with pytest.raises(UserError, match=r"only: 'toy/fig9' .* did you mean 'toy/fig"):
        select(["toy/fig9"], artefacts)
    with pytest.raises(UserError, match="only: study 'empty' has no artefacts yet"):
        select(["empty"], artefacts, declared=["empty", "toy"])
