"""Whole runs for the bench: FLUTE's published comparison from process start (logistic regression on 1000 clients, ten
per round, 100 rounds), and studies with their jobs in parallel."""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from fedrepro.bench import peers, studies
from fedrepro.bench.case import LR, Case
from fedrepro.bench.rounds import Times, engine_model, rows_of
from fedrepro.files import ROOT, read_json

WHOLE_RUN, SAMPLED, ROUNDS = Case("softmax", (60,), clients=1000, steps=1), 10, 100
PFL_SECONDS = 8


@dataclass(frozen=True)
class WholeStudy:
    """`WHOLE_STUDY` in studies/<study>/bench.py: the scale to run, and the rounds that pfl runs in its place."""

    scale: str
    rounds: Case


def whole_studies() -> dict[str, WholeStudy]:
    """Study → its declaration."""
    found = {s: getattr(importlib.import_module(m), "WHOLE_STUDY", None) for s, m in studies.modules().items()}
    return {study: whole for study, whole in found.items() if whole}


def whole_run(system: str) -> None:
    """The first comparison, in this process."""
    if system == "Flower":
        peers.flower_rounds(WHOLE_RUN, LR, ROUNDS - 1, sampled=SAMPLED)
    elif system == "pfl":
        peers.Pfl(WHOLE_RUN, LR, sampled=SAMPLED).rounds(ROUNDS - 1)
    else:
        engine_model(WHOLE_RUN, ROUNDS, SAMPLED)


def measure_whole_run(repeats: int) -> list[dict[str, Any]]:
    """Seconds from the start of a process to its end, for every installed system."""
    systems = ["fedrepro", *(s for s, module in (("pfl", "pfl"), ("Flower", "flwr")) if peers.there(module))]
    times: Times = {(system, 1): [] for system in systems}
    for system in systems * repeats:
        begin = time.perf_counter()
        command = [sys.executable, "-m", "fedrepro.bench.runs", "--whole-run", system]
        subprocess.run(command, check=True, capture_output=True)
        times[system, 1].append(time.perf_counter() - begin)
    return rows_of("whole run, 1000 clients", times)


def study_run(study: str, scale: str, results: Path) -> tuple[float, int]:
    """(seconds, gradient steps) of a study as `make reproduce` runs it: data, training, figures, notebook, report."""
    python = ROOT / ".venv" / "bin" / "python"  # the studies' environment, as in `make reproduce`
    command = [str(python), "-m", "snakemake", "--profile", "workflow/profiles/local", "--cores", "all"]
    command += ["--config", f"scale={scale}", f"only={study}", f"results={results}", "--", "all"]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, "PATH": path})
    seconds = time.perf_counter() - begin
    return seconds, sum(read_json(path)["gradient_steps"] for path in results.glob("*/runs/**/*.json"))


def pfl_pace(case: Case) -> float:
    """Gradient steps per second of pfl in this process, for some seconds."""
    torch.set_num_threads(1)
    simulator, rounds, begin = peers.Pfl(case, LR), 0, time.perf_counter()
    while time.perf_counter() - begin < PFL_SECONDS:
        simulator.rounds(20)
        rounds += 21  # one runs before them
    return rounds * case.clients * case.steps / (time.perf_counter() - begin)


def measure_study(study: str, repeats: int) -> list[dict[str, Any]]:
    """Seconds of a study's gradient steps: by the study as a whole, and by one process of pfl per core."""
    whole, times, steps = whole_studies()[study], Times(), 0
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            seconds, steps = study_run(study, whole.scale, Path(folder))
        times.setdefault(("fedrepro", 1), []).append(seconds)
        if peers.there("pfl"):
            command = [
                sys.executable,
                "-m",
                "fedrepro.bench.runs",
                "--pfl-pace",
                study,
            ]  # pfl must be in a main process
            running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(os.cpu_count() or 1)]
            pace = sum(float(process.communicate()[0].split()[-1]) for process in running)
            times.setdefault(("pfl", 1), []).append(steps / pace)
    return rows_of(f"study {study}, {steps / 1e6:.3g} M steps", times)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--whole-run", system]:
            whole_run(system)
        case ["--pfl-pace", study]:
            sys.stdout.write(f"{pfl_pace(whole_studies()[study].rounds)}\n")
