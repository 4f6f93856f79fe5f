"""An edit re-runs exactly the jobs that depend on it. Targets are available by name."""

from __future__ import annotations

import shutil

import pytest

pytestmark = pytest.mark.workflow

TRAIN_LINE = "train toy on toy/line, seeds 0-1"
TRAIN_FAULTS = {a: f"train {a} on toy/faults, seeds 0-1" for a in ("toy", "fedprox", "wild")}
TRAINING = {TRAIN_LINE, *TRAIN_FAULTS.values()}
LINE = {"collect toy/line", "render toy/fig3b"}
FAULTS = {"collect toy/faults", "render toy/faults"}
JUDGED = {"judge toy", "merge ledgers", "execute notebook overview"}
SHOWN = {"execute notebook toy", "build report"}
ALL_AFTER_TRAINING = LINE | FAULTS | JUDGED | SHOWN


def test_a_second_run_does_nothing_and_starts_fast(checkout):
    done = checkout.snakemake("all", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    assert "done:" not in done.stderr
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "fedrepro.workflow.layout" in imported
    assert (
        not {"torch", "lark", "matplotlib", "scipy.stats", "papermill"} & imported
    )  # each takes seconds and changes nothing


EDITS = {
    "src/fedrepro/algorithms/fedprox.py": {TRAIN_FAULTS["fedprox"]} | FAULTS | JUDGED | SHOWN,
    "src/fedrepro/studies/toy/algorithms/toy.py": {TRAIN_LINE, TRAIN_FAULTS["toy"]} | ALL_AFTER_TRAINING,
    "src/fedrepro/core/rounds.py": TRAINING | ALL_AFTER_TRAINING,
    "src/fedrepro/studies/toy/measures.py": ALL_AFTER_TRAINING,
    "src/fedrepro/studies/toy/artefacts.py": {"render toy/fig3b", "render toy/faults"} | SHOWN,
    "scripts/collect_metrics.py": ALL_AFTER_TRAINING,
    "config/studies/toy/claims.yaml": JUDGED | SHOWN,
    "config/studies/toy/measures.yaml": {"build report"},
    "src/fedrepro/report/page.css": {"build report"},
}


@pytest.mark.parametrize("path", EDITS)
def test_an_edit_reruns_what_depends_on_it_and_nothing_else(checkout, path):
    edits = {"css": "\n/* edited */\n", "py": "\nEDITED = True\n", "yaml": "\n# edited\n"}
    checkout.append(path, edits[path.rpartition(".")[2]])
    assert checkout.jobs("all") == EDITS[path]


def test_a_comment_a_docstring_or_a_reformatting_reruns_nothing(checkout):
    for path in (path for path in EDITS if path.endswith(".py")):
        checkout.append(path, "\n\n\n# edited\n")
    for path in (checkout.folder / "src" / "fedrepro" / "core").glob("*.py"):
        path.write_text(path.read_text().replace('"""', '"""Edited. ', 1))
    for path in (checkout.folder / "scripts").glob("*.py"):
        path.write_text(path.read_text() + "\n# edited\n")
    assert checkout.jobs("all") == set()


def test_a_new_file_reruns_nothing(checkout):
    source = checkout.folder / "src" / "fedrepro"
    for path in ("algorithms/mine.py", "studies/toy/algorithms/mine.py", "studies/toy/helpers.py"):
        shutil.copy2(source / "algorithms" / "fedprox.py", source / path)
        assert checkout.jobs("all") == set()
        (source / path).unlink()


def test_editing_an_experiment_reruns_the_jobs_that_it_changes(checkout):
    def lengthen(experiment):
        experiment["scales"]["smoke"]["rounds"] = 7

    def change_one_method(experiment):
        experiment["title"] = "Another title"
        experiment["algorithms"]["fedprox"]["mu"] = 0.5

    checkout.rewrite("config/studies/toy/experiments/line.yaml", lengthen)
    assert checkout.jobs("toy/fig3b", "toy/faults") == {TRAIN_LINE, "judge toy/fig3b"} | LINE | {"judge toy/faults"}
    checkout.rewrite("config/studies/toy/experiments/faults.yaml", change_one_method)
    assert checkout.jobs("toy/faults") == {TRAIN_FAULTS["fedprox"], "judge toy/faults"} | FAULTS


def test_targets_by_study_by_artefact_and_all(checkout):
    for folder in ("runs", "tables", "artefacts", "ledgers", "notebooks", "report"):
        shutil.rmtree(checkout.results / folder)
    (checkout.results / "ledger.csv").unlink()
    assert checkout.jobs("toy/fig3b") == {TRAIN_LINE, "judge toy/fig3b"} | LINE
    assert checkout.jobs("toy") == TRAINING | LINE | FAULTS | {"judge toy", "execute notebook toy"}
    assert checkout.jobs("all", config=("only=toy/fig3b",)) == {
        TRAIN_LINE,
        *LINE,
        "judge toy/fig3b",
        "merge ledgers",
        "build report",
    }
    assert checkout.jobs("all", config=("only=toy toy/fig3b",)) == TRAINING | ALL_AFTER_TRAINING
