"""A change to snakemake's scheduler in local runs."""

from typing import Any


def lift_rate_limit(workflow: Any) -> None:
    """Take the limit of jobs per second off the scheduler of a local run.

    After every look at the queue the limiter asks for another one a second later, and every finished job begins one
    more such chain: with 200 jobs, minutes of work for nothing. A cluster's queue keeps its limit.
    """
    if workflow.local_exec and "job_rate_limiter" in vars(workflow.scheduler):
        workflow.scheduler.job_rate_limiter = None
