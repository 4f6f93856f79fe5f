"""A damaged result is named by the job that reads it and by `fedrepro verify`, and the next run makes it again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow.conftest import Checkout

pytestmark = pytest.mark.workflow

RUN, TABLE, LEDGER, DATA = "runs/toy/line/toy/0-1.parquet", "tables/toy/line.parquet", "ledgers/toy.csv", "data/*/*.npz"


def flip(path: Path) -> bytes:
    """Flip a bit in the middle of a file as a disk does, without a new time; returns the whole content."""
    whole, before = path.read_bytes(), path.stat()
    body = bytearray(whole)
    body[len(body) // 2] ^= 16
    path.write_bytes(body)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return whole


def verify(checkout: Checkout) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fedrepro.commands.cli", "verify", "results/smoke"]
    return subprocess.run(command, cwd=checkout.folder, env=checkout.environment(), capture_output=True, text=True)


def test_a_damaged_result_is_named_and_made_again(checkout):
    results = checkout.results
    assert verify(checkout).returncode == 0
    data = next(results.glob(DATA))
    whole = {path: flip(path) for path in (results / RUN, results / LEDGER, data)}
    (results / TABLE).unlink()

    first = checkout.snakemake("toy/fig3b")
    assert first.returncode != 0
    assert f"error: results/smoke/{RUN}: damaged: its checksum is not the recorded one" in first.stderr
    assert "Traceback" not in first.stderr
    assert not (results / TABLE).exists()

    found = verify(checkout)
    assert found.returncode == 1
    named = sorted(f"{path.relative_to(checkout.folder)}: damaged" for path in whole)
    assert sorted(found.stdout.splitlines()[:-1]) == named
    assert {"train toy on toy/line, seeds 0-1", "judge toy"} <= checkout.jobs("all")

    second = checkout.snakemake("all")
    assert second.returncode == 0, second.stderr
    assert f"results/smoke/{RUN}: damaged: is made again" in second.stderr
    for path in (results / RUN, data):  # the ledger has the seconds of this run
        assert path.read_bytes() == whole[path]
    assert verify(checkout).returncode == 0
    assert checkout.jobs("all") == set()
    assert not list((results / "damaged").iterdir())


@pytest.mark.parametrize("name", ["runs/toy/line/toy/0-1.json", "artefacts/toy/fig3b.csv", "readings/toy.csv"])
def test_a_damaged_result_is_never_read_for_the_page(checkout, name):
    flip(checkout.results / name)
    for made in ("ledger.csv", "report/index.html"):
        (checkout.results / made).unlink()
    done = checkout.snakemake("all")
    assert done.returncode != 0
    assert f"error: results/smoke/{name}: damaged: " in done.stderr
