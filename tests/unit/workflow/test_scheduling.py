"""The rate limit of snakemake's scheduler, removed for local runs only."""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import SimpleNamespace

import pytest
from snakemake.api import Workflow
from snakemake.scheduling.job_scheduler import JobScheduler

from fedrepro.workflow.jobs import lift_rate_limit


@pytest.mark.parametrize(("local", "left"), [(True, None), (False, "a limit")])
def test_only_a_local_run_does_without_the_limit(local, left):
    workflow = SimpleNamespace(local_exec=local, scheduler=SimpleNamespace(job_rate_limiter="a limit"))
    lift_rate_limit(workflow)
    assert workflow.scheduler.job_rate_limiter == left


def test_a_scheduler_without_a_limit_is_left_alone():
    workflow = SimpleNamespace(local_exec=True, scheduler=SimpleNamespace(limiter="renamed"))
    lift_rate_limit(workflow)
    assert vars(workflow.scheduler) == {"limiter": "renamed"}


def test_snakemake_still_has_the_limit_where_it_is_taken_off():
    """It is set when the scheduler is created, and compared with None when jobs are scheduled."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(JobScheduler)))
    places = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == "job_rate_limiter"]
    assert {type(n.ctx) for n in places} == {ast.Store, ast.Load}
    compared = [n for n in ast.walk(tree) if isinstance(n, ast.Compare) and n.left in places]
    assert compared
    assert all(isinstance(n.comparators[0], ast.Constant) and n.comparators[0].value is None for n in compared)
    assert isinstance(inspect.getattr_static(Workflow, "local_exec"), property)
