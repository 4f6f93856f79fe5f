"""A signal in the first seconds of a run: one line, whatever snakemake does at that moment.

Signals to a run whose jobs work: test_faults.py. While snakemake is imported: tests/unit/workflow/test_launch.py.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedrepro.workflow.interrupts import SIGNALS, told_of
from tests.workflow.conftest import Checkout

pytestmark = [pytest.mark.workflow, pytest.mark.usefixtures("usual_signals")]
MARK = "import time\nopen('reached', 'w').close()\ntime.sleep(600)\n"


def stopped(checkout: Checkout, module: str, number: int, ready) -> tuple[int, list[str]]:
    """Start a run, send the signal once `ready(process)`: its exit code and what it said."""
    command = [sys.executable, "-m", module, "--profile", "workflow/profiles/local", "--cores", "1"]
    process = subprocess.Popen(
        [*command, "--config", "scale=smoke", "--", "toy/fig3b"],
        cwd=checkout.folder,
        env=checkout.environment(FEDREPRO_WARM="early", TMPDIR=str(checkout.folder / "tmp")),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        while not ready(process):
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.005)
        os.killpg(process.pid, number)  # as a terminal does
        _, err = process.communicate(timeout=120)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    lines = [line for line in err.splitlines() if not line.startswith("Using profile ") and " jobs · " not in line]
    return process.returncode, lines


def left_behind(checkout: Checkout) -> list[Path]:
    """Temporary folders and locks of snakemake."""
    caches = (checkout.folder / "cache").rglob("snakemake-runtime-cache/*")
    return [*caches, *(checkout.folder / "tmp").iterdir(), *(checkout.folder / ".snakemake").glob("locks/*")]


@pytest.fixture
def early(fresh) -> Checkout:
    (fresh.folder / "tmp").mkdir()
    return fresh


@pytest.mark.parametrize("number", SIGNALS)
def test_while_the_snakefile_is_read_also_of_snakemake_itself(early, number):
    early.append("workflow/rules/common.smk", MARK)
    done = stopped(early, "snakemake", number, lambda _: (early.folder / "reached").exists())
    assert done == (128 + number, [told_of(number)])
    assert left_behind(early) == []


def handles(process: subprocess.Popen[str], number: int) -> bool:
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    caught = next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="which signals a process handles is in /proc")
@pytest.mark.parametrize("delay", [0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0])
def test_at_any_moment_from_the_first(early, delay):
    """The first is when launch.py has set its handlers: Python itself does not handle SIGTERM."""

    def ready(process: subprocess.Popen[str]) -> bool:
        if not handles(process, signal.SIGTERM):
            return False
        time.sleep(delay)
        return True

    done = stopped(early, "fedrepro.workflow.launch", signal.SIGINT, ready)
    assert done == (128 + signal.SIGINT, [told_of(signal.SIGINT)])
