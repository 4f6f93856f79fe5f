"""What an edit re-runs: exactly the jobs that depend on it. And what can be asked for by name."""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.workflow

TRAIN_LINE = "train dfl on dfl/line, seeds 0-1"
TRAIN_FAULTS = {a: f"train {a} on dfl/faults, seeds 0-1" for a in ("dfl", "fedprox", "wild")}
TRAINING = {TRAIN_LINE, *TRAIN_FAULTS.values()}
LINE = {"collect dfl/line", "render dfl/fig3b"}
FAULTS = {"collect dfl/faults", "render dfl/faults"}
JUDGED = {"judge dfl", "merge ledgers", "execute notebook overview"}
SHOWN = {"execute notebook dfl", "build report"}
ALL_AFTER_TRAINING = LINE | FAULTS | JUDGED | SHOWN


def test_a_second_run_does_nothing_and_starts_fast(checkout):
    done = checkout.snakemake("all", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert "done:" not in done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "fedrepro.workflow.layout" in imported
    assert not {"torch", "lark", "matplotlib", "scipy.stats", "papermill"} & imported  # seconds each, all for nothing


EDITS = {
    "src/fedrepro/algorithms/fedprox.py": {TRAIN_FAULTS["fedprox"]} | FAULTS | JUDGED | SHOWN,
    "src/fedrepro/studies/dfl/algorithms/dfl.py": {TRAIN_LINE, TRAIN_FAULTS["dfl"]} | ALL_AFTER_TRAINING,
    "src/fedrepro/algorithms/__init__.py": set(),  # a method is added: nothing that ran depends on it
    "src/fedrepro/core/rounds.py": TRAINING | ALL_AFTER_TRAINING,
    "src/fedrepro/studies/dfl/measures.py": ALL_AFTER_TRAINING,
    "src/fedrepro/studies/dfl/artefacts.py": {"render dfl/fig3b", "render dfl/faults"} | SHOWN,
    "config/claims/dfl.yaml": JUDGED | SHOWN,
    "src/fedrepro/report/page.css": {"build report"},
}


@pytest.mark.parametrize("path", EDITS)
def test_an_edit_reruns_what_depends_on_it_and_nothing_else(checkout, path):
    checkout.append(path, "\n/* edited */\n" if path.endswith(".css") else "\n# edited\n")
    assert checkout.jobs("all") == EDITS[path]


def test_editing_an_experiment_reruns_the_jobs_that_it_changes(checkout):
    def lengthen(experiment):
        experiment["scales"]["smoke"]["rounds"] = 7

    def change_one_method(experiment):
        experiment["title"] = "Another title"
        experiment["algorithms"]["fedprox"]["mu"] = 0.5

    checkout.rewrite("config/experiments/dfl/line.yaml", lengthen)
    assert checkout.jobs("dfl/fig3b", "dfl/faults") == {TRAIN_LINE} | LINE
    checkout.rewrite("config/experiments/dfl/faults.yaml", change_one_method)
    assert checkout.jobs("dfl/faults") == {TRAIN_FAULTS["fedprox"]} | FAULTS


def test_targets_by_study_by_artefact_and_all(checkout):
    for folder in ("runs", "tables", "artefacts", "ledgers", "notebooks", "report"):
        shutil.rmtree(checkout.results / folder)
    (checkout.results / "ledger.csv").unlink()
    assert checkout.jobs("dfl/fig3b") == {TRAIN_LINE} | LINE
    assert checkout.jobs("dfl") == TRAINING | LINE | FAULTS | {"judge dfl", "execute notebook dfl"}
    assert checkout.jobs("all", config=("only=dfl/fig3b",)) == {TRAIN_LINE} | LINE | {"build report"}
    assert checkout.jobs("all", config=("only=dfl dfl/fig3b",)) == TRAINING | ALL_AFTER_TRAINING
