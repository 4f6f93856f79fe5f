"""A signal before and while snakemake is imported, and one to the command that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from fedrepro.files import ROOT
from fedrepro.workflow.interrupts import SIGNALS, held_back, told_of

SLOW = "import time\nopen('imported', 'w').close()\ntime.sleep(600)\n"
CALL = "from pathlib import Path; from fedrepro.workflow.call import launch; launch([], cwd=Path(), capture={})"
LAUNCH = (sys.executable, "-m", "fedrepro.workflow.launch")
#: the signal comes, as from a terminal, when a command has just started its run
AT_ONCE = """
import os, subprocess
class Popen(subprocess.Popen):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        os.kill(0, {})
subprocess.Popen = Popen
"""


@pytest.fixture
def stopped(tmp_path, usual_signals):
    """Run a command with a module that takes for ever to import, send it a signal then or after `delay` seconds:
    (exit code, stderr). Signal 0: none."""

    def run(*command: str, number: int, group: bool, delay: float | None = None, slow="snakemake") -> tuple[int, str]:
        (tmp_path / slow).mkdir()
        (tmp_path / slow / "__init__.py").write_text(SLOW)
        process = subprocess.Popen(
            [*command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), str(ROOT / "src")))},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            while delay is None and not (tmp_path / "imported").exists():
                assert process.poll() is None, process.communicate()[1]
                time.sleep(0.02)
            time.sleep(delay or 0.0)
            if number:
                (os.killpg if group else os.kill)(process.pid, number)
            _, err = process.communicate(timeout=60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        with pytest.raises(ProcessLookupError):  # no process of the group is left
            os.killpg(process.pid, 0)
        return process.returncode, err

    return run


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_snakemake_is_imported_is_told_in_one_line(stopped, number):
    assert stopped(*LAUNCH, number=number, group=True) == (128 + number, f"{told_of(number)}\n")


@pytest.mark.parametrize("delay", [0.0, 0.005, 0.01, 0.02, 0.04, 0.08])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_while_python_starts_is_told_in_one_line(stopped, number, delay):
    with held_back():  # as `make` and `fedrepro` start it
        done = stopped(*LAUNCH, number=number, group=True, delay=delay)
    assert done == (128 + number, f"{told_of(number)}\n")


@pytest.mark.parametrize("capture", [True, False], ids=["captured", "shown"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_the_moment_when_a_command_starts_its_run(stopped, number, capture):
    code = AT_ONCE.format(int(number)) + CALL.format(capture)
    done = stopped(sys.executable, "-c", code, number=0, group=True, delay=0.0)
    assert done == (128 + number, f"{told_of(number)}\n")


def test_an_interrupt_while_fedrepro_is_imported_is_one_line(stopped):
    code = "from fedrepro.commands.entry import main; main()"
    done = stopped(sys.executable, "-c", code, number=signal.SIGINT, group=True, slow="yaml")
    assert done == (128 + signal.SIGINT, "stopped by SIGINT\n")


@pytest.mark.parametrize("group", [True, False], ids=["as a terminal does", "to the command alone"])
@pytest.mark.parametrize("capture", [True, False], ids=["captured", "shown"])
@pytest.mark.parametrize("number", SIGNALS)
def test_a_command_ends_with_its_run_and_one_line(stopped, number, capture, group):
    done = stopped(sys.executable, "-c", CALL.format(capture), number=number, group=group)
    assert done == (128 + number, f"{told_of(number)}\n")


def test_a_signal_that_is_ignored_stays_so(stopped):
    """As `nohup` does: the second signal is the one that stops it."""
    code = "import os, signal; signal.signal(signal.SIGHUP, signal.SIG_IGN); "
    code += "from fedrepro.workflow import interrupts; interrupts.end_with_one_line(None); "
    code += "os.kill(os.getpid(), signal.SIGHUP); import snakemake"
    done = stopped(sys.executable, "-c", code, number=signal.SIGTERM, group=True)
    assert done == (128 + signal.SIGTERM, f"{told_of(signal.SIGTERM)}\n")
