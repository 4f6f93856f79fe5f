"""Messages about failed jobs; through the workflow in tests/workflow/test_faults.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fedrepro.files import write_json
from fedrepro.workflow import failures


class Job(SimpleNamespace):
    __hash__ = object.__hash__

    def is_group(self) -> bool:
        return hasattr(self, "jobs")


class Dag:
    """A chain of jobs."""

    depending = None

    def __init__(self, *jobs: Job):
        self.jobs = jobs

    def bfs(self, _, job: Job):
        return iter(self.jobs[self.jobs.index(job) :])


@pytest.fixture
def job(tmp_path):
    def make(name: str, log: str | None = None, finished: bool = False) -> Job:
        output, path = tmp_path / f"{name}.out", tmp_path / f"{name}.log"
        if finished:
            output.touch()
        if log is not None:
            path.write_text(log)
        return Job(rule=SimpleNamespace(name="rule"), message=f"do {name}", output=[output], log=[path])

    return make


def test_a_failed_job_has_its_logs_end_and_what_needs_it(job):
    one, two, three = job("one", "\n".join(map(str, range(100)))), job("two"), job("three")
    (record,) = failures.describe([one], [two, three], Dag(one, two, three))
    assert (record["rule"], record["job"], record["not_run"]) == ("rule", "do one", ["do three", "do two"])
    assert record["log_tail"] == [str(n) for n in range(100 - failures.LOG_LINES, 100)]


def test_a_job_without_a_message_or_a_log_is_named_by_its_rule(job):
    silent = job("silent")
    silent.message = None
    (record,) = failures.describe([silent], [], Dag(silent))
    assert (record["job"], record["log_tail"], record["not_run"]) == ("rule", [], [])


def test_of_jobs_that_a_cluster_ran_together_those_that_began_and_did_not_end(job):
    done, broken, waiting = job("done", "fine", finished=True), job("broken", "error"), job("waiting")
    together = Job(jobs=[done, broken, waiting])
    (record,) = failures.describe([together], [waiting], Dag(done, broken, waiting))
    assert (record["job"], record["not_run"]) == ("do broken", ["do waiting"])


def test_where_none_of_them_began_all_are_named(job):
    together = Job(jobs=[job("b"), job("a")])
    assert [r["job"] for r in failures.describe([together], [], Dag(*together.jobs))] == ["do a", "do b"]


def test_a_new_run_forgets(tmp_path):
    write_json(tmp_path / "failures.json", [])
    failures.forget(tmp_path)
    failures.forget(tmp_path)
    assert list(tmp_path.iterdir()) == []
