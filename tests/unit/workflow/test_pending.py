"""Jobs that wait in slurm's queue are named with slurm's reason."""

from __future__ import annotations

import queue
from types import SimpleNamespace

import pytest

from fedrepro.errors import UserError
from fedrepro.workflow import pending
from fedrepro.workflow.pending import NAMED, VARIABLE, Pending, overdue

SLURM = SimpleNamespace(scheduler=SimpleNamespace(_executor=SimpleNamespace(run_uuid="this-run")))
ELSEWHERE = SimpleNamespace(scheduler=SimpleNamespace(_executor=SimpleNamespace()))


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """Replaces squeue by a script."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(body: str) -> None:
        (tmp_path / "squeue").write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "squeue").chmod(0o755)

    return write


def test_a_job_is_told_once_when_its_patience_is_over_and_again_for_another_reason():
    jobs = Pending(60)
    assert list(jobs.look({"7": "Priority"}, 0)) == []
    assert list(jobs.look({"7": "Priority"}, 59)) == []
    assert list(jobs.look({"7": "Priority"}, 60)) == [
        "slurm job 7 pending for 60 s or longer; slurm's reason: Priority"
    ]
    assert list(jobs.look({"7": "Priority"}, 75)) == []
    assert list(jobs.look({"7": "Resources"}, 90)) == [
        "slurm job 7 pending for 60 s or longer; slurm's reason: Resources"
    ]


def test_jobs_with_one_reason_share_a_line():
    jobs = Pending(60)
    waiting = {str(job): "Priority" for job in range(NAMED + 3)} | {"99": "PartitionConfig"}
    assert list(jobs.look(waiting, 0)) == []
    assert list(jobs.look(waiting, 60)) == [
        "slurm jobs 0, 1, 2, 3, 4 and 3 more pending for 60 s or longer; slurm's reason: Priority",
        "slurm job 99 pending for 60 s or longer; slurm's reason: PartitionConfig",
    ]


def test_a_job_that_started_and_is_queued_again_has_its_whole_patience():
    jobs = Pending(60)
    assert list(jobs.look({"7": "Priority"}, 0)) == []
    assert list(jobs.look({}, 30)) == []
    assert list(jobs.look({"7": "Priority"}, 70)) == []
    assert len(list(jobs.look({"7": "Priority"}, 130))) == 1


def test_only_this_runs_pending_jobs_are_asked_for(squeue, tmp_path):
    squeue(f'echo "$@" >{tmp_path}/asked; echo "12 ReqNodeNotAvail, UnavailableNodes:a b"')
    line = next(overdue("this-run", 0.01))
    assert line == "slurm job 12 pending for 0.01 s or longer; slurm's reason: ReqNodeNotAvail, UnavailableNodes:a b"
    asked = (tmp_path / "asked").read_text()
    assert asked == "--noheader --states=PENDING --name=this-run --format=%i %r\n"


def test_a_controller_that_does_not_answer_is_asked_again(squeue, tmp_path):
    squeue(f"if [ -e {tmp_path}/asked ]; then echo 12 Resources; else echo >{tmp_path}/asked; exit 1; fi")
    assert next(overdue("this-run", 0.01)).endswith("reason: Resources")


def test_without_squeue_there_are_no_lines_and_no_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert list(overdue("this-run", 60)) == []


def test_slurms_jobs_are_watched_and_no_others(monkeypatch):
    monkeypatch.setattr(pending, "overdue", lambda run, patience: iter([f"{run}, {patience:g} s"]))
    lines: queue.Queue[str] = queue.Queue()
    pending.watch(ELSEWHERE, lines.put)
    pending.watch(SLURM, lines.put)
    assert lines.get(timeout=60) == "this-run, 60 s"
    assert lines.empty()


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "9" * 400])
def test_a_patience_that_is_no_number_of_seconds_is_refused(monkeypatch, text):
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UserError, match=f"{VARIABLE}: a positive number of seconds is needed, not '"):
        pending.watch(SLURM, print)
