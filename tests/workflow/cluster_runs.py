"""Runs of a checkout on the slurm of a test."""

from __future__ import annotations

import subprocess
import sys

from tests.slurm import Slurm
from tests.workflow.conftest import Checkout

RUNS = "runs/*/*/*/*.parquet"

#: no waiting for a shared file system, frequent looks at the queue
HERE = ("--latency-wait", "5", "--seconds-between-status-checks", "2")
HERE += ("--slurm-init-seconds-before-status-checks", "1", "--slurm-status-command")


def start(
    checkout: Checkout,
    slurm: Slurm,
    *arguments: str,
    config: tuple[str, ...] = (),
    status: str = "squeue",
    **environment: str,
) -> subprocess.Popen:
    command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/slurm", *HERE, status]
    return subprocess.Popen(
        [*command, *arguments[:-1], "--config", "scale=smoke", *config, "--", *arguments[-1:]],
        cwd=checkout.folder,
        env=slurm.within(checkout.environment(**environment)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def files(checkout: Checkout, *patterns: str) -> dict[str, bytes]:
    found = [path for pattern in patterns for path in checkout.results.glob(pattern)]
    return {str(path.relative_to(checkout.results)): path.read_bytes() for path in found}
