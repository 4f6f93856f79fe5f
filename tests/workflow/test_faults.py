"""Faults around a run: it is killed, a second run starts, the disk is full or read-only, a job fails.

Kills of a training job alone: test_resume.py. Damaged checkpoints and data: tests/unit. Jobs that a cluster ends:
test_cluster.py.
"""

from __future__ import annotations

import html
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import nbformat
import pytest

from fedrepro.files import read_json
from tests.workflow.conftest import Checkout, copy_checkout, copy_tree, rename

pytestmark = [pytest.mark.workflow, pytest.mark.usefixtures("usual_signals")]

LINE = "toy/line/toy/0-1.parquet"  # the only training job of toy/fig3b


def runs(checkout: Checkout) -> dict[str, bytes]:
    """The metrics of every training job."""
    folder = checkout.results / "runs"
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.parquet"))}


@pytest.fixture
def begin() -> Iterator:
    """Start a run; return as soon as its first training job works."""
    started = []

    def start(checkout: Checkout) -> subprocess.Popen:
        command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/local", "--cores", "1"]
        process = subprocess.Popen(
            [*command, "--config", "scale=smoke", "--", "toy/fig3b"],
            cwd=checkout.folder,
            env=checkout.environment(),
            stdout=subprocess.DEVNULL,
            stderr=open(checkout.folder / "told", "w", encoding="utf-8"),  # noqa: SIM115  # a pipe that nobody reads would fill up
            start_new_session=True,
        )
        started.append(process)
        while not list(checkout.results.glob("logs/train_algorithm/**/*.log")):
            assert process.poll() is None, "the run ended before it was disturbed"
            time.sleep(0.02)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its jobs, which survive a killed snakemake
        process.wait()


def test_a_second_run_is_refused_and_a_killed_run_is_resumed_by_the_same_command(fresh, first_run, begin, tmp_path):
    first = begin(fresh)
    first.send_signal(signal.SIGSTOP)  # so that it still runs while the second one looks

    second = fresh.snakemake("toy/fig3b")
    assert second.returncode != 0
    told = [line for line in second.stderr.splitlines() if line.startswith("error:")]
    assert len(told) == 1, second.stderr
    assert told[0].startswith(f"error: another run is at work on results/smoke (process {first.pid} on ")
    assert "Traceback" not in second.stderr
    assert "done:" not in second.stderr
    assert fresh.jobs("toy/fig3b")  # a dry run is always possible

    elsewhere = copy_checkout(tmp_path / "elsewhere", fresh.folder)
    same = os.path.relpath(fresh.folder / "results", elsewhere.folder)
    refused = elsewhere.snakemake("toy/fig3b", config=(f"results={same}",))
    assert refused.returncode != 0
    assert f"error: another run is at work on {same}/smoke (process {first.pid} on " in refused.stderr
    assert "done:" not in refused.stderr

    first.kill()
    assert first.wait() == -signal.SIGKILL
    third = fresh.snakemake("toy/fig3b")
    assert third.returncode == 0, third.stderr
    assert f"the run of process {first.pid} was killed: its locks are removed" in third.stderr
    assert runs(fresh) == {LINE: runs(first_run[0])[LINE]}
    assert fresh.jobs("toy/fig3b") == set()


def told_at_the_end(checkout: Checkout) -> list[str]:
    """What a run said, without its profile and its progress."""
    lines = (checkout.folder / "told").read_text().splitlines()
    return [line for line in lines if not line.startswith("Using profile ") and " jobs · " not in line]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_a_run_that_is_stopped_says_so_in_one_line_and_continues_later(fresh, begin, number):
    run = begin(fresh)
    os.killpg(run.pid, number)  # as a terminal does: the run and its jobs
    assert run.wait() == 128 + number
    line = f"stopped by {number.name}: finished results are kept, and the same command continues"
    assert told_at_the_end(fresh) == [line]
    assert not list((fresh.folder / "cache").rglob("snakemake-runtime-cache/*"))
    again = fresh.snakemake("toy/fig3b")
    assert again.returncode == 0, again.stderr
    assert "was killed" not in again.stderr  # it took its locks along


def test_a_results_folder_that_is_deleted_during_the_run_is_named(fresh, begin):
    run = begin(fresh)
    (fresh.folder / "results").rename(fresh.folder / "going")  # at once, unlike a deletion file by file
    shutil.rmtree(fresh.folder / "going")
    assert run.wait() == 1
    told = told_at_the_end(fresh)
    assert told[-1] == "error: results/smoke: was deleted during the run"
    assert not any("Traceback" in line for line in told)


def test_one_failing_experiment_stops_no_other_and_the_report_says_what_failed(checkout):
    source = "src/fedrepro/algorithms/fedprox.py"
    whole = (checkout.folder / source).read_text()
    checkout.append(source, "\nFedProx.direction = lambda *_: 1 / 0\n")
    for path in checkout.results.glob("artefacts/toy/fig3b.*"):
        path.unlink()
    done = checkout.snakemake("all")
    assert done.returncode != 0
    assert "failed: train fedprox on toy/faults, seeds 0-1" in done.stderr
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert (checkout.results / "artefacts" / "toy" / "fig3b.svg").exists()

    (failure,) = read_json(checkout.results / "failures.json")
    assert failure["job"] == "train fedprox on toy/faults, seeds 0-1"
    assert failure["log_tail"][-1].startswith("ZeroDivisionError")
    assert {"collect toy/faults", "render toy/faults", "judge toy", "execute notebook toy"} <= set(failure["not_run"])
    assert "render toy/fig3b" not in failure["not_run"]
    page = html.unescape((checkout.results / "report" / "index.html").read_text())
    assert "1 job failed: this page is incomplete" in page
    assert "train_algorithm · train fedprox on toy/faults, seeds 0-1" in page
    assert "ZeroDivisionError: division by zero" in page
    assert "Not made because of it, or left as an earlier run made it: " in page
    figures = html.unescape((checkout.results / "report" / "figures.html").read_text())
    assert read_json(checkout.results / "artefacts" / "toy" / "fig3b.json")["title"] in figures

    (checkout.folder / source).write_text(whole)
    again = checkout.snakemake("all")
    assert again.returncode == 0, again.stderr
    assert not (checkout.results / "failures.json").exists()
    assert "this page is incomplete" not in (checkout.results / "report" / "index.html").read_text()
    assert checkout.jobs("all") == set()


CLAIM = {"origin": "printed", "source": "§1", "statement": "One and one is two.", "kind": "consistency"}
CLAIM |= {"expression": "a + a", "numbers": {"a": 1}, "stated": 2, "tolerance": {"absolute": 0}}


def add_study(checkout: Checkout, name: str) -> None:
    """A second study: a copy of the figure fig3b with its experiment, and one claim."""
    folder = checkout.folder
    for home in ("config/studies", "src/fedrepro/studies"):
        copy_tree(folder / home / "toy", folder / home / name)
        rename(folder / home / name, "toy", name)
    (folder / "config/studies" / name / "experiments" / "faults.yaml").unlink()
    checkout.rewrite(f"config/studies/{name}/artefacts.yaml", lambda artefacts: artefacts.pop("faults"))
    checkout.rewrite(f"config/studies/{name}/claims.yaml", lambda file: file.update(claims={"sum": CLAIM}))
    checkout.rewrite(f"config/studies/{name}/study.yaml", lambda study: (study.pop("headlines"), study.pop("main")))
    for path in (folder / "src/fedrepro/studies" / name / "algorithms").glob("*.py"):
        if path.stem not in ("__init__", name):  # the names of methods are unique
            path.unlink()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 + 1")])
    notebook.cells[0].metadata["tags"] = ["parameters"]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")


def test_a_notebook_that_raises_is_kept_as_far_as_it_ran_and_the_other_study_finishes(checkout):
    path = checkout.folder / "notebooks" / "toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(2, nbformat.v4.new_code_cell("print('before')\nraise LookupError('on purpose')"))
    nbformat.write(notebook, path)
    add_study(checkout, "other")
    done = checkout.snakemake("all")
    assert done.returncode != 0
    assert "failed: execute notebook toy" in done.stderr
    assert "on purpose" in done.stderr

    kept = nbformat.read(checkout.results / "logs" / "execute_notebook" / "toy.failed.ipynb", as_version=4)
    outputs = [output for cell in kept.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any(output.get("text") == "before\n" for output in outputs)
    (error,) = [output for output in outputs if output.output_type == "error"]
    assert (error.ename, error.evalue) == ("LookupError", "on purpose")
    assert "on purpose" in (checkout.results / "logs" / "execute_notebook" / "toy.log").read_text()
    assert not (checkout.results / "notebooks" / "toy.html").exists()
    assert (checkout.results / "notebooks" / "other.html").exists()
    page = html.unescape((checkout.results / "report" / "index.html").read_text())
    assert "execute_notebook · execute notebook toy" in page
    assert "LookupError: on purpose" in page
    assert "other/fig3b" in (checkout.results / "report" / "figures.html").read_text()


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[None]:
    """Mount a file system in memory at `folder`; the test is skipped if that is not allowed."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("needs the right to mount a file system of its own")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_named_and_with_room_the_same_command_finishes(fresh, first_run):
    with mounted(fresh.folder / "results", "size=64k"):
        done = fresh.snakemake("toy/fig3b")
        assert done.returncode != 0
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        assert not list(fresh.results.rglob(".*.npz.*"))
        more = ["mount", "-o", "remount,size=200m", str(fresh.folder / "results")]
        subprocess.run(more, check=True)
        again = fresh.snakemake("toy/fig3b")
        assert again.returncode == 0, again.stderr
        assert runs(fresh) == {LINE: runs(first_run[0])[LINE]}


def test_a_file_system_without_room_for_names_is_named_and_with_room_the_same_command_finishes(fresh, first_run):
    """A results folder on another file system, whose inodes are used up."""
    with mounted(fresh.folder / "results", "size=200m,nr_inodes=40"):
        done = fresh.snakemake("toy/fig3b")
        assert done.returncode != 0
        assert "No space left on device" in done.stderr
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,nr_inodes=10000", str(fresh.folder / "results")], check=True)
        again = fresh.snakemake("toy/fig3b")
        assert again.returncode == 0, again.stderr
        assert runs(fresh) == {LINE: runs(first_run[0])[LINE]}


def test_a_read_only_results_folder_is_named_before_any_job(fresh):
    def refused() -> None:
        done = fresh.snakemake("all")
        assert done.returncode != 0
        told = [line for line in done.stderr.splitlines() if line.startswith("error:")]
        assert len(told) == 1, done.stderr
        assert told[0].startswith("error: results/smoke: cannot be written to: ")
        assert "done:" not in done.stderr
        assert "Traceback" not in done.stderr

    if os.geteuid():
        (fresh.folder / "results").mkdir()
        (fresh.folder / "results").chmod(0o555)
        refused()
    else:
        with mounted(fresh.folder / "results", "size=1m,ro"):
            refused()


COUNT = """
import sys
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.cli import main
looks = []
schedule = JobScheduler._schedule_reevalutation
JobScheduler._schedule_reevalutation = lambda self, delay: (looks.append(delay), schedule(self, delay))
try:
    main()
finally:
    print(f"{len(looks)} looks at the queue for nothing")
"""


def test_the_queue_is_looked_at_when_a_job_ends_and_not_every_second(checkout):
    """Otherwise every finished job starts a chain of looks, and the workflow costs more than its jobs."""
    (checkout.results / "ledger.csv").unlink()
    command = [sys.executable, "-c", COUNT, "--profile", "workflow/profiles/local", "--cores", "1"]
    done = subprocess.run(
        [*command, "--config", "scale=smoke", "--", "results/smoke/ledger.csv"],
        cwd=checkout.folder,
        env=checkout.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert " · merge ledgers\n" in done.stderr
    assert "\n0 looks at the queue for nothing" in f"\n{done.stdout}"
