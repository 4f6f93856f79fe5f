"""A run or its warm process is killed at any moment: no process, no job and no file of it stays."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from fedrepro.workflow.warm import VARIABLE
from tests.unit.workflow.test_warm import alive, environment, script, wait_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="jobs start warm on Linux only")

#: a run that starts its warm process and a job; with "light", one that imports little and so is ready at once
RUN = """
import os, subprocess, sys, time
import fedrepro.workflow.warm as warm
popen = subprocess.Popen
def light(command, **options):
    code = "import sys, fedrepro.workflow.warm.process as warm; warm.MODULES = (); warm._stamp = lambda: 0"
    code += "; warm.serve(sys.argv[1], int(sys.argv[2]))"
    return popen([sys.executable, "-c", code, *command[3:]], **options)
if sys.argv[1] == "light":
    subprocess.Popen = light
print("begins", flush=True)
warm.start()
subprocess.Popen = popen
if sys.argv[1] == "light":
    def listening(line):  # a socket has a name before it accepts connections
        return line[-1] == "@" + os.environ[warm.VARIABLE] and line[3] == "00010000"
    while not any(listening(line.split()) for line in open("/proc/net/unix")):
        time.sleep(0.02)
    subprocess.run([sys.executable, sys.argv[2]])
time.sleep(600)
"""
#: a job that says who it is and whose fork, and lasts
JOB = "open({mark!r}, 'w').write(f'{{os.getpid()}} {{os.getppid()}}'); time.sleep(600)"


def with_mark(mark: str) -> list[int]:
    """The processes that were started with a variable of this value, or are forks of one."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in path.read_bytes() and alive(int(path.parent.name)):
                found.append(int(path.parent.name))
        except OSError:
            continue  # has just ended
    return found


@pytest.fixture
def begin(tmp_path):
    """Start a run: (process, its mark). Folders for temporary files are below tmp_path."""
    started: list[subprocess.Popen] = []
    (temporary := tmp_path / "tmp").mkdir()

    def start(kind: str, job: Path | str = "") -> tuple[subprocess.Popen, str]:
        mark = uuid.uuid4().hex
        known = environment(MARK=mark, TMPDIR=str(temporary))
        known.pop(VARIABLE, None)
        command = [sys.executable, "-c", RUN, kind, str(job)]
        started.append(subprocess.Popen(command, env=known, stdout=subprocess.PIPE, start_new_session=True))
        started[-1].stdout.readline()
        return started[-1], mark

    yield start
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert list(temporary.iterdir()) == []


#: seconds until no process of a run, and no job of a warm process, is left
RUN_ENDS, JOB_ENDS = 30.0, 2.0
BEGINS = 600.0  # only a hang takes this long


def kill_runs_that_have_just_begun(begin, count: int) -> None:
    chance = random.Random(1)
    for _ in range(count):
        run, mark = begin("whole")
        time.sleep(chance.uniform(0.0, 0.5))
        run.kill()
        run.wait()
        wait_for(lambda mark=mark: not with_mark(mark), RUN_ENDS)


def kill_with_a_job_at_work(begin, folder: Path, victim: str, count: int) -> None:
    for number in range(count):
        mark_file = folder / f"{victim}-{number}"
        path = script(folder / f"job-{victim}-{number}", JOB.format(mark=str(mark_file)))
        run, mark = begin("light", path)
        wait_for(lambda file=mark_file: file.exists() and len(file.read_text().split()) == 2, BEGINS)
        job, warm = map(int, mark_file.read_text().split())
        assert warm != run.pid
        os.kill(warm if victim == "warm" else run.pid, signal.SIGKILL)
        wait_for(lambda job=job: not alive(job), JOB_ENDS)
        if victim == "warm":
            assert run.poll() is None
        run.kill()
        run.wait()
        wait_for(lambda mark=mark: not with_mark(mark), RUN_ENDS)


def test_a_run_that_is_killed_at_once_leaves_no_warm_process(begin):
    kill_runs_that_have_just_begun(begin, 3)


@pytest.mark.parametrize("victim", ["warm", "run"])
def test_a_job_ends_with_its_warm_process_and_that_with_its_run(begin, tmp_path, victim):
    kill_with_a_job_at_work(begin, tmp_path, victim, 2)


@pytest.mark.slow
def test_a_hundred_kills(begin, tmp_path):
    kill_runs_that_have_just_begun(begin, 30)
    kill_with_a_job_at_work(begin, tmp_path, "warm", 35)
    kill_with_a_job_at_work(begin, tmp_path, "run", 35)
