"""Paths, targets and inputs behind the rules."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from fedrepro.core import parts
from fedrepro.core.experiment import SCALES, load_artefacts, load_experiments
from fedrepro.data.catalogue import Entry
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from fedrepro.workflow import layout
from fedrepro.workflow.layout import PLACES, Layout
from tests.configs import EXPERIMENT, changed, write_config, write_study, write_yaml


@pytest.fixture
def config(tmp_path, monkeypatch):
    """The small config at smoke scale in its own folder."""
    monkeypatch.chdir(tmp_path)
    return write_config(tmp_path)


def wildcards(**values: str) -> SimpleNamespace:
    return SimpleNamespace(**values)


LINE = wildcards(study="toy", experiment="line", algorithm="fedavg", shard="0-1")


@pytest.mark.parametrize(
    ("only", "chosen", "whole"),
    [
        ([], ["toy/fig1", "toy/fig3b"], ["toy"]),
        (None, ["toy/fig1", "toy/fig3b"], ["toy"]),  # `--config only=`
        ("", ["toy/fig1", "toy/fig3b"], ["toy"]),
        ("  ", ["toy/fig1", "toy/fig3b"], ["toy"]),
        ("toy,", ["toy/fig1", "toy/fig3b"], ["toy"]),
        ("toy/fig3b", ["toy/fig3b"], []),
        (["toy/fig3b", "toy/fig1"], ["toy/fig3b", "toy/fig1"], ["toy"]),
        ("toy/fig1, toy/fig3b", ["toy/fig1", "toy/fig3b"], ["toy"]),
    ],
)
def test_only_is_a_list_or_a_line(config, only, chosen, whole):
    made = Layout({**config, "only": only})
    assert made.chosen == chosen
    assert made.whole_studies == whole


def test_a_study_without_artefacts_is_not_dragged_in(config):
    write_yaml(write_study(Path(config["config"]), "other") / "experiments" / "ring.yaml", EXPERIMENT)
    assert Layout({**config, "only": "toy"}).whole_studies == ["toy"]
    assert Layout(config).whole_studies == ["toy"]


def test_all_files_that_experiments_are_read_from_are_inputs(config):
    folder = Path(config["config"]) / "studies" / "toy" / "experiments"
    write_yaml(folder / "ring.yaml", 'extends: line\nid: "ring_{x}"\nfor_each: {x: [1, 2]}\n')
    write_yaml(folder / "_unused.yaml", EXPERIMENT)
    other = write_study(Path(config["config"]), "other") / "experiments"
    write_yaml(other / "_base.yaml", EXPERIMENT)
    write_yaml(other / "ring.yaml", "extends: _base\n")
    made = Layout(config)
    assert made.experiment_files(["toy"]) == [str(folder / f"{name}.yaml") for name in ("line", "ring")]
    assert made.experiment_files(["other"]) == [str(other / f"{name}.yaml") for name in ("_base", "ring")]
    assert len(made.experiment_files(["other", "toy"])) == 4


def test_results_lie_under_their_scale(config):
    made = Layout({**config, "scale": "paper", "results": "/data/out/"})
    assert made.at("ledger.csv") == "/data/out/paper/ledger.csv"
    assert made.log("a/b") == "/data/out/paper/logs/a/b.log"
    assert made.benchmark("a/b") == "/data/out/paper/benchmarks/a/b.tsv"


def test_studies_and_artefacts_can_be_asked_for_by_name(config):
    targets = Layout(config).targets()
    fig3b = [f"results/smoke/artefacts/toy/fig3b.{suffix}" for suffix in ("csv", "svg", "png", "json")]
    assert sorted(targets) == ["toy", "toy/fig1", "toy/fig3b"]
    assert targets["toy/fig3b"] == fig3b
    assert set(fig3b) < set(targets["toy"])
    assert targets["toy"][-2:] == ["results/smoke/ledgers/toy.csv", "results/smoke/notebooks/toy.html"]


def test_an_experiment_is_trained_by_algorithm_and_shard(config):
    made = Layout({**config, "scale": "paper"})
    assert made.runs(LINE, "json") == [
        f"results/paper/runs/toy/line/{algorithm}/{shard}.json"
        for algorithm in ("fedavg", "fedpd")
        for shard in ("0-3", "4-5")
    ]
    assert made.manifests("toy/fig3b") == made.runs(LINE, "json")
    assert made.tables("toy/fig3b") == ["results/paper/tables/toy/line.parquet"]
    assert made.tables("toy/fig1") == made.manifests("toy/fig1") == []


def test_data_that_depends_on_the_seed_is_prepared_by_shard(config):
    made = Layout(config)
    e = made.experiments["toy/line"]
    data = f"results/smoke/data/{e.dataset_id}/0-1.npz"
    federation = f"results/smoke/federations/{e.federation_id}/0-1.npz"
    assert made.training_data(LINE) == {"dataset": data, "federation": federation}
    assert made.dataset_file(wildcards(dataset=e.dataset_id, shard="0-1")) == data
    assert made.data_seeds(wildcards(shard="0-1")) == [0, 1]


def test_data_that_does_not_is_prepared_once(config, monkeypatch):
    entry = parts.dataset("dfl_line")
    monkeypatch.setattr(parts, "dataset", lambda name: Entry(entry.load, seeded=False, size=entry.size))
    made = Layout({**config, "scale": "paper"})
    e = made.experiments["toy/line"]
    inputs = made.training_data(wildcards(study="toy", experiment="line", algorithm="fedpd", shard="4-5"))
    assert inputs == {
        "dataset": f"results/paper/data/{e.dataset_id}/all.npz",
        "federation": f"results/paper/federations/{e.federation_id}/4-5.npz",
    }
    assert made.data_seeds(wildcards(shard="all")) == [-1]


@pytest.mark.parametrize(
    ("mode", "cached", "own", "expected"),
    [
        ("auto", True, False, ["cache"]),
        ("auto", True, True, ["own"]),
        ("auto", False, False, []),
        ("real", True, False, []),  # otherwise a run would depend on the files it fetched itself
        ("real", False, True, ["own"]),
        ("standin", True, True, []),
    ],
)
def test_real_files_that_are_there_are_inputs(config, monkeypatch, tmp_path, mode, cached, own, expected):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    entry = dataclasses.replace(parts.dataset("dfl_line"), files="student", reads=("config/a.csv",))
    monkeypatch.setattr(parts, "dataset", lambda name: entry)
    (tmp_path / "own").mkdir()
    for there, folder in ((cached, tmp_path / "cache" / "fedrepro" / "data"), (own, tmp_path / "own")):
        if there:
            (folder / "student-performance").mkdir(parents=True)
            for name in ("student-mat.csv", "student-por.csv"):
                (folder / "student-performance" / name).write_text("")
    made = Layout({**config, "data": mode, "data_dir": str(tmp_path / "own")})
    found = made.real_files(wildcards(dataset=made.experiments["toy/line"].dataset_id, shard="0-1"))
    assert found[0] == os.path.relpath(ROOT / "config" / "a.csv")
    assert {Path(path).relative_to(tmp_path).parts[0] for path in found[1:]} == set(expected)


def test_a_data_folder_that_is_not_there_is_named(config):
    with pytest.raises(UserError, match=r"^data_dir: folder 'nowhere' does not exist$"):
        Layout({**config, "data_dir": "nowhere"})


def test_an_artefact_that_draws_samples_needs_the_first_shard(config):
    artefacts = {"fig3a": {"kind": "figure", "source": "a", "title": "b", "caption": "c", "experiments": ["line"]}}
    file = Path(config["config"]) / "studies" / "toy" / "artefacts.yaml"
    write_yaml(file, artefacts)
    assert Layout(config).samples("toy/fig3a") == []
    write_yaml(file, changed(artefacts, {"fig3a.data": ["line"]}))
    made = Layout({**config, "scale": "paper"})
    dataset = made.experiments["toy/line"].dataset_id
    assert made.samples("toy/fig3a") == [f"results/paper/data/{dataset}/0-3.npz"]


def test_code_is_an_input_of_what_runs_on_it(config):
    made = Layout(config)
    e = made.experiments["toy/line"]

    def names(files):
        return {Path(f).relative_to("src/fedrepro").as_posix() for f in files}

    training = names(made.training_code(LINE))
    assert {"workflow/train_job.py", "core/rounds.py", "algorithms/fedavg.py", "models/linear.py"} <= training
    assert "algorithms/fedpd.py" not in training
    prepared = names(made.dataset_code(wildcards(dataset=e.dataset_id)))
    assert {"data/preparation.py", "data/datasets/dfl_line.py"} <= prepared
    assert not {"data/partitions/by_client.py", "core/rounds.py"} & prepared
    dataset, partition = e.federation_id.split("/")
    split = names(made.partition_code(wildcards(dataset=dataset, partition=partition)))
    assert {"data/preparation.py", "data/partitions/by_client.py"} <= split
    assert "data/datasets/dfl_line.py" not in split
    assert names(made.measures_code("toy")) >= {"evidence/tables.py"}  # it has no measures of its own
    assert "evidence/ledger.py" in names(made.ledger_code)
    assert "report/notebook.py" in names(made.notebook_code)
    page = {
        "report/page.py",
        "report/page_index.html.j2",
        "report/part_base.html.j2",
        "report/page.js",
        "report/page.css",
        "evidence/assumptions.py",
    }
    assert page <= names(made.report_code)


def test_code_of_committed_studies_is_their_own(config):
    """Every artefact and measure of a study depends on that study alone."""
    made = Layout(config)
    committed = load_experiments(ROOT / "config", "smoke")
    for artefact in load_artefacts(ROOT / "config", committed):
        study = artefact.split("/")[0]
        files = [*made.artefact_code(artefact), *made.measures_code(study)]
        own = {f.split("/")[3] for f in files if f.startswith("src/fedrepro/studies/")}
        assert own == {study}


CLAIMS = """
defaults: {origin: paper, source: a, statement: b, measured_on: synthetic}
claims:
  on_line: {kind: threshold, at_most: 1, ours: {experiment: line, algorithm: fedavg, metric: loss}}
  sum: {kind: consistency, expression: x, numbers: {x: 1}, stated: 1, tolerance: {absolute: 0}}
"""


def test_one_artefact_is_judged_by_the_claims_that_rest_on_it(config):
    write_yaml(Path(config["config"]) / "studies" / "toy" / "claims.yaml", CLAIMS)
    made = Layout({**config, "only": "toy/fig3b"})
    assert made.ledgers == ["results/smoke/ledgers/toy/fig3b.csv"]
    asked = wildcards(ledger="toy/fig3b")
    assert made.asked_claims(asked) == ["on_line"]
    assert made.judging(asked)["tables"] == ["results/smoke/tables/toy/line.parquet"]
    assert made.judging(asked)["claims"] == [f"{config['config']}/studies/toy/claims.yaml"]
    assert made.resting_on("toy/fig1") == []
    assert made.targets()["toy/fig3b"][-1] == "results/smoke/ledgers/toy/fig3b.csv"
    whole = Layout(config)
    assert whole.ledgers == ["results/smoke/ledgers/toy.csv"]
    assert whole.asked_claims(wildcards(ledger="toy")) is None


def test_an_artefact_is_judged_by_main_readings(config):
    """A reading that needs another experiment is not tested there, but the claim is."""
    study = Path(config["config"]) / "studies" / "toy"
    write_yaml(study / "experiments" / "ring.yaml", EXPERIMENT)
    elsewhere = "metric: loss}, readings: {a ring: {ours: {experiment: ring}}}}"
    write_yaml(study / "claims.yaml", CLAIMS.replace("metric: loss}}", elsewhere))
    assert Layout(config).resting_on("toy/fig3b") == ["on_line"]


def test_judging_reads_the_published_settings_and_makes_four_tables(config):
    write_yaml(Path(config["config"]) / "studies" / "toy" / "claims.yaml", CLAIMS)
    made = Layout(config)
    inputs = made.judging(wildcards(ledger="toy"))
    assert inputs["experiments"] == [f"{config['config']}/studies/toy/experiments/line.yaml"]
    assert inputs["study"] == [f"{config['config']}/studies/toy/study.yaml"]
    tables = ("ledgers", "readings", "headlines", "numbers")
    assert list(made.judged.values()) == [f"results/smoke/{name}/{{ledger}}.csv" for name in tables]


def test_an_experiment_may_say_itself_when_a_run_has_diverged(config):
    assert Layout(config).divergence(LINE) == {}
    limits = {**config, "divergence": {"loss": 1000, "norm": 10}}
    assert Layout(limits).divergence(LINE) == {"loss": 1000, "norm": 10}
    before = Layout(limits).experiments["toy/line"].job_sha256("fedavg")
    path = Path(config["config"]) / "studies" / "toy" / "experiments" / "line.yaml"
    write_yaml(path, changed(EXPERIMENT, {"divergence": {"loss": 5}}))
    own = Layout(limits)
    assert own.divergence(LINE) == {"loss": 5, "norm": 10}
    assert own.experiments["toy/line"].job_sha256("fedavg") == before  # no run is trained again


def test_published_numbers_are_an_input_where_there_are_any(config):
    made = Layout(config)
    assert made.study_files("published.csv", "toy") == []
    published = Path(config["config"]) / "studies" / "toy" / "published.csv"
    write_yaml(published, "id,value\n")
    assert made.study_files("published.csv", "toy") == [str(published)]


@pytest.mark.parametrize(
    ("device", "listed", "gpus"),
    [
        ("cuda", "", 1),
        ("cpu", "GPU 0: A100", 0),
        ("mps", "", 0),
        ("auto", "GPU 0: A100", 1),
        ("auto", "", 0),
        ("auto", None, 0),
        ("auto", subprocess.TimeoutExpired("nvidia-smi", 10), 0),
    ],
)
def test_a_training_job_asks_for_a_gpu_where_it_uses_one(config, monkeypatch, device, listed, gpus):
    """`listed`: the output of the driver's tool; None if it is not installed."""

    def run(*_, **__):
        if isinstance(listed, Exception):
            raise listed
        return SimpleNamespace(returncode=0, stdout=listed)

    monkeypatch.setattr(layout.shutil, "which", lambda name: None if listed is None else name)
    monkeypatch.setattr(layout.subprocess, "run", run)
    assert Layout({**config, "device": device}).gpus_per_job == gpus


def test_a_config_folder_that_is_not_there_is_named(config):
    with pytest.raises(UserError, match="config: folder 'elsewhere' does not exist"):
        Layout({**config, "config": "elsewhere"})


def test_on_a_cluster_short_jobs_share_a_place_and_long_training_has_its_own(config):
    assert set(PLACES) == set(SCALES)
    small, large = (Layout({**config, "scale": scale}).places for scale in ("smoke", "paper"))
    assert small.training == small.results == "study_{study}"
    assert (large.training, large.results) == (None, "results_{study}")
    assert small.training_minutes < large.training_minutes
