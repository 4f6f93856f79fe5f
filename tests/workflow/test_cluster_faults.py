"""Faults on a real slurm with one node of 2 CPUs: cancelled jobs, a controller that is killed, a run that is killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.slurm import Slurm
from tests.workflow.cluster_runs import RUNS, files, start
from tests.workflow.conftest import copy_tree

pytestmark = pytest.mark.workflow

#: how many faults of each kind a run has to survive
FAULTS = int(os.environ.get("SLURM_FAULTS", "10"))
LONG = "import time\nopen('reached', 'w').close()\ntime.sleep(600)\n"
#: submits a job as a scheduler does: its shell works in the background, in a session of its own
SUBMIT = '#!/bin/sh\nsetsid sh "$1" >submitted.log 2>&1 </dev/null &\necho $! | tee job.pid\n'


def cancel_job(slurm: Slurm, run: subprocess.Popen, job: str) -> None:
    """No process of the job is left soon after: slurm gives them 5 seconds, then it kills them."""
    slurm.command("scancel", job)
    deadline = time.monotonic() + 20
    while left := slurm.processes(job):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)


def kill_controller(slurm: Slurm, run: subprocess.Popen, job: str) -> None:
    slurm.crash_controller()


def kill_run(slurm: Slurm, run: subprocess.Popen, job: str) -> None:
    """The job goes on."""
    run.kill()
    run.wait()


def moments(fault: str) -> Iterator[tuple[str, float]]:
    """Which jobs a fault hits, by a word of their comment, and how many seconds after they are seen to run: those of
    the data take as long to import as to work, and training jobs start with what is imported."""
    chance = random.Random(fault)
    while True:
        for kind in ("train_algorithm", ""):
            yield kind, chance.uniform(0, 20)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [cancel_job, kill_controller, kill_run])
def test_after_many_faults_the_same_command_ends_with_the_same_bytes(slurm, fresh, first_run, fault):
    copy_tree(first_run[0].folder / "cache", fresh.folder / "cache")
    moment = moments(fault.__name__)
    kind, wait = next(moment)
    hit: list[str] = []
    complete = False

    def running() -> list[str]:
        records = {job: record for job, record in slurm.jobs().items() if job not in before}
        return [j for j, r in records.items() if r["JobState"] == "RUNNING" and kind in r["Comment"]]

    while len(hit) < FAULTS or not complete:
        before, hit_before = set(slurm.jobs()), len(hit)
        run = start(fresh, slurm, "all")
        try:
            while run.poll() is None and len(hit) < FAULTS:
                time.sleep(0.2)
                if running() and not time.sleep(wait) and (jobs := running()) and run.poll() is None:
                    hit.append(slurm.jobs()[jobs[0]]["Comment"])
                    fault(slurm, run, jobs[0])
                    kind, wait = next(moment)
            _, told = run.communicate(timeout=1500)
        finally:
            run.kill()
            run.wait()
        complete = run.returncode == 0
        assert complete or len(hit) > hit_before, told
        assert "Traceback" not in told
        if complete:
            assert files(fresh, RUNS) == files(first_run[0], RUNS)
        if complete and len(hit) < FAULTS:
            shutil.rmtree(fresh.results)
    assert sum("train_algorithm" in comment for comment in hit) >= FAULTS // 2


def test_a_cluster_jobs_processes_end_with_its_shell(fresh):
    """Whatever the scheduler knows of them: it need not signal more than the job's shell."""
    script = fresh.folder / "scripts" / "prepare_data.py"
    script.write_text(LONG)
    submit = fresh.folder / "submit"
    submit.write_text(SUBMIT)
    submit.chmod(0o755)
    command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/generic", "--latency-wait", "5"]
    run = subprocess.Popen(
        [*command, "--cluster-generic-submit-cmd", str(submit), "--config", "scale=smoke", "--", "all"],
        cwd=fresh.folder,
        env=fresh.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not (fresh.folder / "reached").exists():
            assert run.poll() is None, run.communicate()[1]
            time.sleep(0.1)
        shell = psutil.Process(int((fresh.folder / "job.pid").read_text()))
        processes = shell.children(recursive=True)
        assert any("prepare_data" in " ".join(process.cmdline()) for process in processes), "the script works"
        shell.send_signal(signal.SIGTERM)
        assert psutil.wait_procs(processes, timeout=20)[1] == []
    finally:
        run.kill()
        run.wait()
    assert (fresh.folder / "submitted.log").read_text().endswith("stopped: the cluster job has ended\n")
