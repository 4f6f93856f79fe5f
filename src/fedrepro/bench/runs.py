"""Whole runs for the bench: one from process start, and a study with its jobs in parallel.

The first is FLUTE's published comparison: logistic regression on 1000 clients, ten a round, 100 rounds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from fedrepro.bench import peers
from fedrepro.bench.rounds import LR, Case, engine_model, rows_of
from fedrepro.core.config import ROOT
from fedrepro.files import read_json

WHOLE_RUN = Case("softmax", (60,), clients=1000, steps=1)
WHOLE_RUN_SAMPLED, WHOLE_RUN_ROUNDS = 10, 100


def whole_run(system: str) -> None:
    """The whole run, in this process."""
    case, sampled, rounds = WHOLE_RUN, WHOLE_RUN_SAMPLED, WHOLE_RUN_ROUNDS
    if system == "Flower":
        peers.flower_rounds(case, LR, rounds - 1, sampled=sampled)
    elif system == "pfl":
        peers.Pfl(case, LR, sampled=sampled).rounds(rounds - 1)
    else:
        engine_model(case, rounds, sampled)


def measure_whole_run(repeats: int) -> list[dict]:
    """Seconds from the start of a process to its end, of every system that is there."""
    systems = ["fedrepro", *(s for s, module in (("pfl", "pfl"), ("Flower", "flwr")) if peers.there(module))]
    times: dict[str, list[float]] = {system: [] for system in systems}
    for _ in range(repeats):
        for system in systems:
            begin = time.perf_counter()
            command = [sys.executable, "-m", "fedrepro.bench.runs", "--whole-run", system]
            subprocess.run(command, check=True, capture_output=True)
            times[system].append(time.perf_counter() - begin)
    return rows_of("whole run, 1000 clients", {(system, 1): seconds for system, seconds in times.items()})


STUDY, STUDY_SCALE = "sgld", "demo"
STUDY_MODEL = Case("softmax", (60,), clients=10, steps=30)  # most of the study's runs; the others' model is larger
PFL_SECONDS = 8


def study_run(results: Path) -> tuple[float, int]:
    """(seconds, gradient steps) of the study as `make reproduce` runs it: data, training, figures, notebook, report."""
    python = ROOT / ".venv" / "bin" / "python"  # the environment of the studies, as `make reproduce` has it
    command = [str(python), "-m", "snakemake", "--profile", "workflow/profiles/local", "--cores", "all"]
    command += ["--config", f"scale={STUDY_SCALE}", f"only={STUDY}", f"results={results}", "--", "all"]
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env={**os.environ, "PATH": path})
    seconds = time.perf_counter() - begin
    return seconds, sum(read_json(path)["gradient_steps"] for path in results.glob("*/runs/**/*.json"))


def pfl_pace() -> float:
    """Gradient steps per second of pfl in this process, for some seconds."""
    torch.set_num_threads(1)
    simulator, rounds, begin = peers.Pfl(STUDY_MODEL, LR), 0, time.perf_counter()
    while time.perf_counter() - begin < PFL_SECONDS:
        simulator.rounds(20)
        rounds += 21  # with the one that it does not tell
    return rounds * STUDY_MODEL.clients * STUDY_MODEL.steps / (time.perf_counter() - begin)


def pfl_paces(processes: int) -> list[float]:
    """The same in several processes at once; its own would not do: pfl wants to be in a main process."""
    command = [sys.executable, "-m", "fedrepro.bench.runs", "--pfl-pace"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    return [float(process.communicate()[0].split()[-1]) for process in running]


def measure_study(repeats: int) -> list[dict]:
    """Seconds of the study's gradient steps: of the study as a whole, and of pfl's processes, one per core."""
    times: dict[tuple[str, int], list[float]] = {("fedrepro", 1): []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            seconds, steps = study_run(Path(folder))
        times["fedrepro", 1].append(seconds)
        if peers.there("pfl"):
            pace = sum(pfl_paces(os.cpu_count() or 1))
            times.setdefault(("pfl", 1), []).append(steps / pace)
    return rows_of(f"study {STUDY}, {steps / 1e6:.3g} M steps", times)


def main(arguments: list[str]) -> int:
    match arguments:
        case ["--whole-run", system]:
            whole_run(system)
        case ["--pfl-pace"]:
            sys.stdout.write(f"{pfl_pace()}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
