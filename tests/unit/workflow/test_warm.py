"""Warm starts: the same script in a fork of a warm process, or in a process of its own where that fails."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from fedrepro.core import parts
from fedrepro.files import ROOT
from fedrepro.workflow.warm import STARTUP, VARIABLE, of_this_user, process, several_asked_for

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="jobs start warm on Linux only")

SERVER = """
import os
import sys
from pathlib import Path
import fedrepro.workflow.warm.process as warm
warm.MODULES = ("json",)
warm.parts.sources = lambda: sorted(Path(sys.argv[2]).rglob("*.py"))
warm.serve(sys.argv[1], os.getppid())
"""
#: in the form of snakemake: first the object, then the script
SCRIPT = """
snakemake = "set by the first lines"
import os
import sys
import time
print(os.getppid(), os.getcwd(), os.environ.get("COLOUR"), flush=True)
print("to the terminal", file=sys.stderr)
{end}
"""


def wait_for(done, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((STARTUP, str(ROOT / "src"))), **more}


def alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def listening(name: str) -> bool:
    """Whether a socket accepts connections: it has a name before that."""
    lines = (line.split() for line in Path("/proc/net/unix").read_text(encoding="utf-8").splitlines())
    return any(line[-1] == f"@{name}" and line[3] == "00010000" for line in lines)


@pytest.fixture
def server(tmp_path):
    """A warm process that watches the source files of a folder: (process, name of its socket, folder)."""
    sources, name = tmp_path / "sources", f"fedrepro-test-{uuid.uuid4().hex}"
    sources.mkdir()
    (sources / "a.py").touch()
    with subprocess.Popen([sys.executable, "-c", SERVER, name, str(sources)], env=environment()) as process:
        wait_for(lambda: listening(name))
        yield process, name, sources
        process.kill()


def script(folder: Path, end: str = "") -> Path:
    path = folder / ".snakemake" / "scripts" / "job.py"
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT.format(end=end))
    return path


def run(path: Path, name: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, str(path)]
    return subprocess.run(
        command, env=environment(**{VARIABLE: name}, COLOUR="blue"), capture_output=True, text=True, **options
    )


@pytest.mark.parametrize(
    ("words", "several"),
    [
        (["--cores", "2"], False),
        (["--target-jobs", "render:a=1", "--cores", "2"], False),
        (["--target-jobs", "render:a=1", "render:a=2", "--cores", "2"], True),
    ],
)
def test_a_clusters_job_with_several_of_ours_is_known_by_its_command(words, several):
    assert several_asked_for(["snakemake", "--snakefile", "Snakefile", *words]) is several


def test_a_job_runs_in_a_fork_with_its_own_folder_environment_and_files(server, tmp_path):
    process, name, _ = server
    ended = run(script(tmp_path), name, cwd=tmp_path)
    assert ended.stdout.split() == [str(process.pid), str(tmp_path), "blue"]
    assert ended.stderr == "to the terminal\n"
    assert ended.returncode == 0


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [("sys.exit(7)", 7, ""), ("os._exit(3)", 3, ""), ("1 / 0", 1, "ZeroDivisionError"), ("sys.exit('no')", 1, "")],
)
def test_its_exit_code_is_the_jobs(server, tmp_path, end, code, told):
    ended = run(script(tmp_path, end), server[1])
    assert ended.returncode == code
    assert told in ended.stderr


def test_a_job_that_is_killed_has_failed(server, tmp_path):
    assert run(script(tmp_path, "os.kill(os.getpid(), 9)"), server[1]).returncode == 1


def test_many_jobs_at_once(server, tmp_path):
    path = script(tmp_path, "time.sleep(0.3)")
    command, known = [sys.executable, str(path)], environment(**{VARIABLE: server[1]})
    jobs = [subprocess.Popen(command, env=known, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    assert [job.communicate()[0].split()[0] for job in jobs] == [str(server[0].pid)] * 6
    assert [job.returncode for job in jobs] == [0] * 6


def test_after_a_change_of_the_code_jobs_start_by_themselves(server, tmp_path):
    process, name, sources = server
    (sources / "b.py").touch()
    ended = run(script(tmp_path), name)
    assert ended.returncode == 0
    assert ended.stdout.split()[0] == str(os.getpid())
    assert process.poll() is None


@pytest.mark.parametrize("name", ["off", "fedrepro-nobody"])
def test_without_a_warm_process_jobs_start_by_themselves(tmp_path, name):
    ended = run(script(tmp_path, "sys.exit(5)"), name)
    assert ended.stdout.split()[0] == str(os.getpid())
    assert ended.returncode == 5


def test_a_warm_process_that_was_killed_is_no_obstacle(server, tmp_path):
    process, name, _ = server
    process.kill()
    process.wait()
    assert not listening(name)
    assert run(script(tmp_path, "sys.exit(5)"), name).returncode == 5


def test_only_processes_of_the_same_user_talk_to_each_other(monkeypatch):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert of_this_user(ours)
        monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
        assert not of_this_user(ours)


def test_a_job_ends_with_the_one_who_asked_for_it(server, tmp_path):
    mark = tmp_path / "mark"
    path = script(tmp_path, f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    asker = subprocess.Popen([sys.executable, str(path)], env=environment(**{VARIABLE: server[1]}))
    wait_for(lambda: mark.exists() and mark.read_text())
    asker.kill()
    asker.wait()
    wait_for(lambda: not alive(int(mark.read_text())))


def test_a_request_that_was_cut_short_starts_nothing(server):
    body = b"\0".join((os.fsencode(sys.executable), b"/a/script", b"/", b"COLOUR=blue"))
    with socket.socket(socket.AF_UNIX) as asker:
        asker.connect(f"\0{server[1]}")
        socket.send_fds(asker, [(len(body) + 1).to_bytes(4, "big")], [0, 1, 2])
        asker.sendall(body)
        asker.shutdown(socket.SHUT_WR)
        assert asker.recv(1) == b""


def test_a_job_that_hands_itself_over_imports_nothing_heavy():
    code = "import os, sys, itertools, __future__; before = set(sys.modules); import fedrepro.workflow.warm"
    code += "; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-S", "-c", code], env=environment(), capture_output=True, text=True)
    assert found.stdout.split() == ["fedrepro", "fedrepro.workflow", "fedrepro.workflow.warm"]


def test_what_is_imported_beforehand_exists():
    """The warm process ignores imports that fail, so they are checked here."""
    missing = [name for name in process.MODULES if importlib.util.find_spec(name) is None]
    assert missing == []
    assert {"fedrepro.algorithms.fedavg", "fedrepro.models.mlp", "fedrepro.data.datasets.mnist"} <= set(process.MODULES)
    assert set(parts.result_modules()) <= set(process.MODULES)
