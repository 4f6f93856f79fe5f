"""What a result was made with: code, versions, machine."""

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from fedrepro.files import INSTALLED, ROOT

PACKAGES = ["fedrepro", "torch", "numpy", "scipy", "pandas", "networkx", "gpytorch", "scikit-learn", "snakemake"]


def about(code: str) -> dict[str, Any]:
    """What a manifest says beside its settings: the hash of the code, versions and machine."""
    known = {"code_sha256": code, "commit": commit(), "versions": versions(), "machine": machine()}
    return {**known, "cluster_job": cluster_job()}


def commit() -> str:
    """The checkout's commit, with `+` where tracked files have changed; `unknown` outside git. An installed wheel has
    its version alone: git would tell the commit of whichever repository holds the environment."""
    if INSTALLED:
        return "unknown"

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=20)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        head = git("rev-parse", "HEAD")
        return (head + ("+" if git("status", "--porcelain", "-uno") else "")) or "unknown"
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


@cache
def versions() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}}


def machine() -> dict[str, Any]:
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def cluster_job() -> str | None:
    """The id of the cluster job that this process runs in, if any."""
    return os.environ.get("SLURM_JOB_ID")


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
