"""Calls of the workflow from a command."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrepro.files import ROOT
from fedrepro.workflow import interrupts


def snakemake(
    targets: Sequence[str],
    config: Mapping[str, Any],
    *,
    profile: str = "local",
    cores: int | None = None,
    capture: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Make files of the checkout. config: for `--config`, beside config/config.yaml."""
    arguments = ["--profile", f"workflow/profiles/{profile}"]
    arguments += ["--cores", str(cores)] if cores else []
    told = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    arguments += ["--config", *(f"{key}={value}" for key, value in told.items()), "--", *targets]
    return launch(arguments, cwd=ROOT, capture=capture)


def launch(
    arguments: Sequence[str], *, cwd: Path, capture: bool = False, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run snakemake. A signal is passed on to it, and ends this process too once the run has stopped."""
    command = [sys.executable, "-m", "fedrepro.workflow.launch", *arguments]
    pipe = subprocess.PIPE if capture else None
    got: list[int] = []
    runs: list[subprocess.Popen[str]] = []

    def pass_on(number: int, _frame: object) -> None:
        got.append(number)
        for run in runs:
            run.send_signal(number)

    before = {number: signal.getsignal(number) for number in interrupts.SIGNALS}
    for number in (number for number, handler in before.items() if handler != signal.SIG_IGN):
        signal.signal(number, pass_on)
    try:
        with interrupts.held_back():
            process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=pipe, stderr=pipe, text=True)
            runs.append(process)
            early = tuple(got)  # it came before the process did
        for number in early:
            process.send_signal(number)
        out, err = process.communicate()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if got and process.returncode:
        if capture or process.returncode != 128 + got[0]:  # the run did not say it, or nobody saw that
            os.write(2, f"{interrupts.told_of(got[0])}\n".encode())
        sys.exit(128 + got[0])
    return subprocess.CompletedProcess(command, process.returncode, out, err)
