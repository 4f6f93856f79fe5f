"""Logging and errors of a script. A job ends its process, so each case runs in its own process."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(tmp_path, body: str) -> tuple[subprocess.CompletedProcess, str]:
    """Run `body` inside `logged`; returns the process and the log."""
    log = tmp_path / "job.log"
    program = (
        "import os, sys\nfrom fedrepro.workflow.jobs import logged\nfrom fedrepro.errors import UserError\n"
        f"with logged({str(log)!r}):\n    {body}\nos.write(1, b'after')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    return done, log.read_text()


def test_all_output_goes_to_the_log(tmp_path):
    body = "print('one', flush=True); os.write(1, b'two\\n'); os.write(2, b'three\\n'); print('four', file=sys.stderr)"
    done, log = run(tmp_path, body)
    assert done.returncode == 0
    assert (done.stdout, done.stderr) == ("", "")
    assert log.split() == ["one", "two", "three", "four", "after"]


def test_an_error_of_the_user_is_one_line_without_a_traceback(tmp_path):
    done, log = run(tmp_path, "raise UserError('a.yaml: lr: wrong')")
    assert done.returncode == 1
    assert done.stderr == log == "error: a.yaml: lr: wrong\n"


def test_another_error_has_its_traceback_in_the_log_and_one_line_on_the_terminal(tmp_path):
    done, log = run(tmp_path, "raise ValueError('first\\nsecond')")
    assert done.returncode == 1
    assert done.stderr == f"ValueError: first (see {tmp_path / 'job.log'})\n"
    assert "Traceback (most recent call last)" in log
    assert log.endswith(done.stderr)


@pytest.mark.parametrize(
    ("body", "told"), [("sys.exit(0)", "SystemExit: 0 (see {log})\n"), ("raise KeyboardInterrupt", "")]
)
def test_a_job_that_is_cut_short_fails(tmp_path, body, told):
    done, _ = run(tmp_path, body)
    assert done.returncode == 1
    assert done.stderr == told.format(log=tmp_path / "job.log")
