"""Half-done jobs: continued here or in another checkout with the bytes of an undisturbed run; damaged files of a cache
or a checkpoint never stop a run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fedrepro.files import read_json
from tests.workflow.conftest import Checkout
from tests.workflow.test_evidence import RUN, evidence, other, rewritten, signed  # noqa: F401

pytestmark = pytest.mark.workflow

ROUND = 3  # of six
TARGET = f"results/smoke/runs/{RUN}.parquet"
CUT_OFF = f"""
import os, sys
from pathlib import Path
from types import SimpleNamespace
from fedrepro.core.progress import Progress
from fedrepro.evidence.provenance import about
from fedrepro.files import read_yaml
from fedrepro.workflow.layout import Layout
from fedrepro.workflow.train_job import Inputs, Machine, train_shard

Progress.say = lambda self, done, note="": os._exit(9) if done == {ROUND} else None
layout = Layout({{**read_yaml(Path("config/config.yaml")), "scale": "smoke"}})
w = SimpleNamespace(study="toy", experiment="line", algorithm="toy", shard="0-1")
files = layout.training_data(w)
inputs = Inputs(Path(files["dataset"]), Path(files["federation"]))
made = about(layout.hashed("train_algorithm", layout.training_code(w)))
machine = Machine("cpu", layout.strategy, 1, checkpoint_seconds=0.0)
out, checkpoints = Path(layout.at("runs/toy/line/toy/0-1")), Path(layout.at("checkpoints"))
train_shard(layout.experiment(w), "toy", "0-1", inputs, machine, made, out, checkpoints)
"""


@pytest.fixture
def whole(checkout) -> bytes:
    return (checkout.folder / TARGET).read_bytes()


@pytest.fixture
def half(checkout, whole) -> Checkout:
    """A checkout whose training job was killed after ROUND, with a checkpoint."""
    for path in checkout.results.glob(f"runs/{RUN}.*"):
        path.unlink()
    command = [sys.executable, "-c", CUT_OFF]
    done = subprocess.run(command, cwd=checkout.folder, env=checkout.environment(), capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert len(list(checkout.results.glob("checkpoints/*.pt"))) == 1
    return checkout


def finish(checkout: Checkout) -> bytes:
    done = checkout.snakemake(TARGET)
    assert done.returncode == 0, done.stderr
    return (checkout.folder / TARGET).read_bytes()


def test_every_file_of_cache_and_checkpoints_emptied_in_turn_stops_no_run(half, whole):
    (checkpoint,) = half.results.glob("checkpoints/*.pt")
    kept = checkpoint.read_bytes()
    files = [path for path in (half.folder / "cache").rglob("*") if path.is_file()]
    assert files
    for path in [checkpoint, *files]:
        for made in half.results.glob(f"runs/{RUN}.*"):
            made.unlink()
        checkpoint.write_bytes(kept)
        path.write_bytes(b"")
        assert finish(half) == whole
        resumed = read_json(half.results / f"runs/{RUN}.json")["resumed_from"]
        assert resumed == (None if path == checkpoint else ROUND)
    assert not checkpoint.exists()


def test_a_half_done_run_goes_on_in_another_checkout(half, other, whole, tmp_path):  # noqa: F811
    archive = tmp_path / "half.zip"
    done = evidence(half, "export", str(archive), "toy/line", "--unfinished")
    assert done.returncode == 0, done.stderr
    assert "0 runs and 1 checkpoints of scale smoke" in done.stdout
    assert f"of {ROUND}" not in done.stdout
    done = evidence(other, "import", str(archive))
    assert done.returncode == 0, done.stderr
    assert f"{RUN}: goes on from round {ROUND} of 6" in done.stdout
    assert finish(other) == whole
    manifest = read_json(other.results / f"runs/{RUN}.json")
    assert manifest["resumed_from"] == ROUND
    assert manifest["begun_on"] is None  # the same machine
    again = evidence(other, "import", str(archive))
    assert f"{RUN}: left out, it is finished here" in again.stdout

    (name,) = (path.name for path in half.results.glob("checkpoints/*.pt"))
    member = f"checkpoints/{name}"
    for change, words in (
        (lambda c: signed({**c, member: c[member][:-1] + bytes([c[member][-1] ^ 1])}), f"{member}: is damaged"),
        (
            lambda c: signed({"evidence.json": c["evidence.json"], f"checkpoints/{'0' * 32}.pt": c[member]}),
            "another job",
        ),
        (lambda c: {**c, member: b""}, "is not as it was exported"),
    ):
        done = evidence(other, "import", rewritten(archive, change))
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr
    other.append("src/fedrepro/core/rounds.py", "\nEDITED = True\n")
    done = evidence(other, "import", str(archive))
    assert f"{RUN}: was run with other code than this checkout's" in done.stderr
    assert json.loads((other.results / f"runs/{RUN}.json").read_text()) == manifest
