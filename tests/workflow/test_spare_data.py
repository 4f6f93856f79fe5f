"""Generated data is emptied after a successful run, and generated again for the jobs that need it."""

from __future__ import annotations

import pytest

from tests.workflow.conftest import Checkout
from tests.workflow.test_reruns import EDITS, TRAIN_FAULTS

pytestmark = pytest.mark.workflow

EDITED = "src/fedrepro/algorithms/fedprox.py"
METRICS = "runs/toy/faults/fedprox/0-1.parquet"


@pytest.fixture
def emptied(checkout) -> Checkout:
    """After a run that empties files of any size."""
    checkout.append("src/fedrepro/workflow/spare_data.py", "\nLEAST = 1\n")
    times = {path: path.stat().st_mtime_ns for path in checkout.results.glob("data/*/*.npz")}
    assert times
    done = checkout.snakemake("all", options=("--forcerun", "build_report"))
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert {path.stat().st_size for path in times} == {0}
    return checkout


def test_an_edit_reruns_what_depends_on_it_also_without_the_data(emptied):
    metrics = (emptied.results / METRICS).read_bytes()
    assert emptied.jobs("all") == set()
    emptied.append(EDITED, "\nEDITED = True\n")
    assert emptied.jobs("all") == EDITS[EDITED]
    done = emptied.snakemake("all")
    assert done.returncode == 0, done.stderr
    assert (emptied.results / METRICS).read_bytes() == metrics
    assert not [path for path in emptied.results.glob("data/*/*.npz") if path.stat().st_size]


def test_data_that_is_generated_differently_is_made_again_with_its_results(emptied):
    (about,) = emptied.results.glob("data/*/*.json")
    about.write_text(about.read_text().replace('"sha256": "', '"sha256": "0')[:-1])
    emptied.append(EDITED, "\nEDITED = True\n")
    done = emptied.snakemake("all")
    assert done.returncode != 0
    assert "is generated differently now" in done.stderr
    assert set(TRAIN_FAULTS.values()) <= emptied.jobs("all")
