"""Calls of the workflow from a command."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from fedrepro.files import ROOT


def snakemake(
    targets: Sequence[str],
    config: Mapping[str, Any],
    *,
    profile: str = "local",
    cores: int | None = None,
    capture: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Make files of the checkout. config: for `--config`, beside config/config.yaml."""
    command = [sys.executable, "-m", "snakemake", "--profile", f"workflow/profiles/{profile}"]
    command += ["--cores", str(cores)] if cores else []
    told = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    command += ["--config", *(f"{key}={value}" for key, value in told.items()), "--", *targets]
    return subprocess.run(command, cwd=ROOT, capture_output=capture, text=True)
