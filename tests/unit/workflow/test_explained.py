"""`fedrepro explain` on a synthetic study: the number of every run is a known function of its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fedrepro.commands import command
from fedrepro.commands import explain as explain_command
from fedrepro.core.metrics import COLUMNS
from fedrepro.errors import UserError
from fedrepro.evidence import explanations
from fedrepro.files import read_json, write_json
from fedrepro.workflow import explained
from fedrepro.workflow.layout import Layout
from tests.configs import write_config, write_yaml

ASSUMPTIONS = {
    "local.steps": {"why": "not stated", "also": [1, 10]},
    "dataset.samples": {"why": "not stated", "also": [12]},
    "algorithms.*.lr": {"why": "not stated", "also": [0.2]},
    "algorithms.fedpd.gamma": {"why": "another method", "also": [1.0]},
    "seeds": {"why": "one run is shown", "because": "more seeds do not move it"},
}
CLAIM = {
    "source": "Table 1",
    "statement": "The loss is the printed one.",
    "kind": "value",
    "ours": {"experiment": "line", "algorithm": "fedavg", "metric": "loss", "split": "test"},
    "published": "loss",
    "tolerance": {"absolute": 0.1},
    "needs": {"rounds": "reach"},
}
OPTIONS = {"profile": "local", "cores": 1, "config": {}}
Loss = Callable[[dict[str, Any]], float]


@pytest.fixture
def config(tmp_path) -> dict[str, Any]:
    written = write_config(tmp_path, {"assumptions": ASSUMPTIONS})
    home = Path(written["config"]) / "studies" / "toy"
    write_yaml(
        home / "claims.yaml",
        {"defaults": {"origin": "paper", "measured_on": "synthetic"}, "claims": {"printed": CLAIM}},
    )
    (home / "published.csv").write_text("id,value,spread,runs\nloss,1.0,,\n")
    return written


def ask(config: dict[str, Any], tmp_path: Path, scale: str | None = "paper") -> list[explained.Question]:
    return explained.questions(Path(config["config"]), tmp_path / "results", "toy/printed", {}, scale)


def trained(monkeypatch, loss: Loss) -> list[str]:
    """Replace the workflow: every run has the loss of its settings, plus a number of its seed. Returns the runs."""
    made: list[str] = []

    def snakemake(targets, config, **options):
        folder = Path(config["results"]).parent / "config"
        layout = Layout({**LAYOUT, "config": str(folder), "scale": config["scale"], "variants": config["variants"]})
        for target in map(Path, targets):
            study, name, algorithm = target.parts[-4:-1]
            e = layout.experiments[f"{study}/{name}"]
            seeds = range(*(int(end) + i for i, end in enumerate(target.stem.split("-"))))
            rows = [
                {**BLANK, "experiment": e.id, "algorithm": algorithm, "seed": s, "round": e.spec["rounds"]}
                for s in seeds
            ]
            for row in rows:
                row["value"] = loss(e.spec) + 0.01 * np.sin(row["seed"])
            target.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows)[list(COLUMNS)].to_parquet(target, index=False)
            about = {"experiment": e.id, "algorithm": algorithm, "shard": target.stem, "seeds": list(seeds)}
            about |= {"settings": e.origins(algorithm), "config": e.spec, "data": {"kind": "synthetic"}, "diverged": []}
            write_json(target.with_suffix(".json"), about | {"seconds": 1.0, "config_sha256": e.job_sha256(algorithm)})
            made.append(f"{name}/{algorithm}")

    monkeypatch.setattr(explained, "snakemake", snakemake)
    return made


BLANK = {"setting": "", "step": 0, "client": -1, "group": "", "split": "test", "metric": "loss"}
LAYOUT = {"only": [], "data": "auto", "data_dir": None, "device": "auto", "strategy": "declared", "results": "results"}


def run(config, tmp_path, monkeypatch, loss: Loss) -> dict[str, Any]:
    trained(monkeypatch, loss)
    return explained.run(explained.choose(ask(config, tmp_path), 1e9, 1), OPTIONS)


def test_the_deciding_assumption_is_found(config, tmp_path, monkeypatch):
    found = run(config, tmp_path, monkeypatch, lambda spec: 1.0 if spec["local"]["steps"] == 10 else 2.0)
    assert found["main"]["verdict"] == "not reproduced"
    assert found["reading"] == "hangs on local.steps"
    assert found["answer"].startswith("another reading gives it: local.steps = 10: reproduced (1, 0.99")
    (moved,) = (one for one in found["alternatives"] if one["verdict"] == "reproduced")
    assert (moved["keys"], moved["value"], moved["other"]) == (["local.steps"], "5", "10")
    assert moved["moved"] == pytest.approx(-1.0)
    assert moved["moved_low"] == pytest.approx(-1.0)  # seeds are paired: their numbers cancel
    others = [one for one in found["alternatives"] if one is not moved]
    assert [one["keys"][0] for one in others] == ["local.steps", "dataset.samples", "algorithms.*.lr"]
    assert all(one["moved"] == pytest.approx(0.0) for one in others)
    assert found["fixed"] == [{"key": "seeds", "value": "6", "because": "more seeds do not move it"}]


def test_where_none_decides_the_nearest_is_said(config, tmp_path, monkeypatch):
    found = run(
        config,
        tmp_path,
        monkeypatch,
        lambda spec: 2.0 - 0.01 * spec["local"]["steps"] - spec["dataset"]["samples"] / 100,
    )
    assert found["reading"] == "stable"
    assert found["answer"] == (
        "no reading within these ranges gives the printed number; nearest: dataset.samples = 12 with local.steps = 10,"
        " 1.78 instead of 1.89 (printed 1 ± 0.1)"
    )
    assert [pair["keys"] for pair in found["pairs"]] == [["dataset.samples", "local.steps"]] * 2


def test_where_only_a_pair_decides_it_is_found(config, tmp_path, monkeypatch):
    def loss(spec: dict[str, Any]) -> float:
        few, small = spec["local"]["steps"] == 1, spec["dataset"]["samples"] == 12
        return 1.0 if few and small else 2.0 - 0.2 * few - 0.1 * small

    found = run(config, tmp_path, monkeypatch, loss)
    assert found["reading"] == "hangs on local.steps with dataset.samples"
    assert not any(one["verdict"] == "reproduced" for one in found["alternatives"])
    (pair,) = (pair for pair in found["pairs"] if pair["verdict"] == "reproduced")
    assert (pair["keys"], pair["other"]) == (["local.steps", "dataset.samples"], "1 | 12")


def test_alternatives_train_only_what_they_change(config, tmp_path, monkeypatch):
    made = trained(monkeypatch, lambda spec: 2.0)
    explained.run(explained.choose(ask(config, tmp_path), 1e9, 1), OPTIONS)
    of = {name.partition("/")[0] for name in made if name.startswith("line__lr")}
    assert {name.rpartition("/")[2] for name in made if name.startswith("line__steps")} == {"fedavg", "fedpd"}
    assert len(of) == 1
    assert not any(name.startswith("line__gamma") for name in made)


def test_the_record_is_written_with_its_figure_and_told_in_the_ledger(config, tmp_path, monkeypatch):
    trained(monkeypatch, lambda spec: 1.0 if spec["local"]["steps"] == 10 else 2.0)
    plan = explained.choose(ask(config, tmp_path), 1e9, 1)
    ledger = tmp_path / "results" / "paper" / "ledger.csv"
    ledger.parent.mkdir(parents=True)
    rows = pd.DataFrame({"claim": ["toy/printed", "toy/other"], "reading": ["stable over 1 other reading", ""]})
    rows.to_csv(ledger, index=False)
    for _ in range(2):  # a second time changes nothing
        path = explained.write(plan.question, explained.run(plan, OPTIONS))
        told = pd.read_csv(ledger, keep_default_na=False)["reading"].tolist()
        assert told == ["stable over 1 other reading; assumptions: hangs on local.steps", ""]
    assert path == tmp_path / "results" / "paper" / "explain" / "toy" / "printed.json"
    assert path.with_suffix(".svg").read_text().startswith("<?xml")
    assert path.with_suffix(".png").stat().st_size > 1000
    record = explanations.load(tmp_path / "results" / "paper", "toy/printed")
    assert record == read_json(path)
    first, *others = explanations.table_rows(record)
    assert (first["instead"], first["verdict"]) == ("main run", "not reproduced")
    assert [row["setting"] for row in others][:1] == ["local.steps"]
    assert others[-1]["verdict"] == "not varied: more seeds do not move it"


def test_an_explanation_of_other_settings_is_left_out():
    ledger = pd.DataFrame({"claim": ["toy/printed"], "reading": [None]})
    record = {"toy/printed": {"reading": "stable", "settings": {"toy/line/fedavg": "1"}}}
    manifests = [{"experiment": "toy/line", "algorithm": "fedavg", "config_sha256": "2"}]
    assert explanations.completed(ledger, record, manifests)["reading"].tolist() == [""]
    assert explanations.completed(ledger, record)["reading"].tolist() == ["assumptions: stable"]


def test_the_settings_are_those_that_judge_or_the_largest_that_fit(config, tmp_path):
    first, *others = ask(config, tmp_path, None)
    assert [first.scale, *(question.scale for question in others)] == ["demo", "workstation", "paper", "smoke"]
    assert others[-1].shortfalls() == ["seeds 2 of at least 3", "rounds 3 of 40"]
    assert "which judges the claim" in explained.choose([first, *others], 1e9, 1).words
    small = explained.choose([others[-1]], 0.0, 1)
    assert "at smoke, which does not judge the claim (seeds 2 of at least 3, rounds 3 of 40)" in small.words
    with pytest.raises(UserError, match="no scale fits the budget of about 1 s: the cheapest takes about"):
        explained.choose([first, *others], 1.0, 1)


def test_a_claim_without_open_settings_says_so(config, tmp_path, monkeypatch):
    path = Path(config["config"]) / "studies" / "toy" / "experiments" / "line.yaml"
    path.write_text(path.read_text().partition("assumptions:")[0])
    monkeypatch.setattr(command, "CONFIG", Path(config["config"]))
    given = {"claim": "toy/printed", "budget": "1min", "cores": 1, "results": tmp_path, "scale": None}
    lines = list(explain_command.explain(SimpleNamespace(**given)))
    assert lines == ["toy/printed: no setting that it depends on is open: the paper states all of them"]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("20min", 1200.0), ("1.5 h", 5400.0)])
def test_budgets_are_times(text, seconds):
    assert explain_command.seconds(text) == seconds
    with pytest.raises(UserError, match="no time, such as"):
        explain_command.seconds(text[:-1] + "x")
