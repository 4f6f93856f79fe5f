"""Jobs that start warm: a process that has imported torch and pandas once, and forks for every job of a local run.

A study is many short jobs, and importing takes longer than most of them. `start` begins such a process beside a run;
`import fedrepro.warm`, the first line of every script's imports, hands the job over to it: script, folder, environment
and open files. What forks there runs the very same script, and the process that asked waits for its exit code.

Where there is none, or it does not answer, or it runs another Python, or a source file has changed since it started
(its imports would be old), the script simply goes on by itself. A job whose asker dies is ended, and so are all when
the run dies.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

VARIABLE = "FEDREPRO_WARM"  # the socket of the warm process; `off` for none
LARGEST_REQUEST = 2**20
SOURCES = Path(__file__).parent
#: imported before the first job: what training, tables and figures need, and what torch.func imports when first used
MODULES = (
    *(
        f"fedrepro.{name}"
        for name in ("training", "preparation", "rendering", "tables", "ledger", "execution", "report")
    ),
    "torch._dynamo",
)


# --- the run ----------------------------------------------------------------------------------------------------------


def start() -> None:
    """Begin a warm process for the jobs of this one, where that is possible, not switched off and none is there."""
    if os.environ.get(VARIABLE) or not sys.platform.startswith("linux"):
        return
    folder = Path(tempfile.mkdtemp(prefix="fedrepro-"))
    os.environ[VARIABLE] = str(folder / "socket")
    subprocess.Popen(
        [sys.executable, "-m", "fedrepro.warm", str(folder / "socket")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the terminal's interrupt is for the run, which then ends its jobs
    )


def several_asked_for(command: Sequence[str]) -> bool:
    """Whether a command line of snakemake names several jobs: a cluster's, in which several of ours share a place."""
    if "--target-jobs" not in command:
        return False
    asked = itertools.takewhile(lambda word: not word.startswith("--"), command[command.index("--target-jobs") + 1 :])
    return len(list(asked)) > 1


# --- a job ------------------------------------------------------------------------------------------------------------


def hand_over(script: str) -> None:
    """Let the warm process run `script`, and end with its exit code; returns where there is none."""
    address = os.environ.get(VARIABLE, "off")
    if address == "off":
        return
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
            request = {
                "script": script,
                "folder": os.getcwd(),
                "environment": dict(os.environ),
                "python": sys.executable,
            }
            body = json.dumps(request).encode()
            socket.send_fds(connection, [len(body).to_bytes(4, "big")], [0, 1, 2])
            connection.sendall(body)
            taken = connection.recv(1)
        except OSError:
            return
        if taken != b"+":
            return
        code = connection.recv(1)  # nothing: the warm process is gone, and the job with it
        os._exit(code[0] if code else 1)


# --- the warm process -------------------------------------------------------------------------------------------------


def serve(address: str) -> None:
    """Fork for every request until the parent is gone."""
    import importlib

    parent, stamp = os.getppid(), _stamp()
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()  # a job's search for unreachable objects would write to, and so copy, all of what it shares with others
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    waker, bell = socket.socketpair()
    waker.setblocking(False)
    bell.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ready = selectors.DefaultSelector()
    for source in (listener, bell):
        ready.register(source, selectors.EVENT_READ)
    jobs: dict[int, socket.socket] = {}  # process → who waits for it
    try:
        while os.getppid() == parent:
            for key, _ in ready.select(timeout=1.0):
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    pid = _begin(connection, stamp, [listener, waker, bell, *jobs.values()])
                    if pid is None:
                        connection.close()
                    else:
                        jobs[pid] = connection
                        ready.register(connection, selectors.EVENT_READ)
                elif key.fileobj is bell:
                    with contextlib.suppress(BlockingIOError):
                        bell.recv(4096)
                else:  # nobody waits any more
                    ready.unregister(key.fileobj)
                    _end(next(pid for pid, waiting in jobs.items() if waiting is key.fileobj))
            for pid, code in _ended():
                connection = jobs.pop(pid)
                with contextlib.suppress(KeyError):
                    ready.unregister(connection)
                with contextlib.suppress(OSError):
                    connection.send(bytes([code]))
                connection.close()
    finally:
        for pid in jobs:
            _end(pid)
        shutil.rmtree(Path(address).parent, ignore_errors=True)


def _begin(connection: socket.socket, stamp: int, others: list[socket.socket]) -> int | None:
    """Fork a job for a request: its process; None where the asker is to run it by itself."""
    files: list[int] = []
    try:
        request = _received(connection, files)
        if len(files) != 3 or request["python"] != sys.executable or _stamp() != stamp:
            return None
        connection.sendall(b"+")
        pid = os.fork()
        if not pid:
            _become(request, files, (*others, connection))
        return pid
    except (OSError, ValueError, KeyError):
        return None
    finally:
        for file in files:  # the job has them; held here, too, whoever reads from it would wait for ever
            os.close(file)


def _received(connection: socket.socket, files: list[int]) -> dict:
    """The request; its open files are added to `files`."""
    connection.settimeout(10.0)
    head, received, *_ = socket.recv_fds(connection, 4, 3)
    files += received
    size = int.from_bytes(head, "big")
    body = b""
    while len(body) < size <= LARGEST_REQUEST and (more := connection.recv(size - len(body))):
        body += more
    connection.settimeout(None)
    return json.loads(body)


def _become(request: dict, files: list[int], others: Sequence[socket.socket]) -> NoReturn:
    """Turn this fork into the job: its files, none of the warm process' own, and then the script."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for other in others:
            other.close()
        for place, file in enumerate(files):
            os.dup2(file, place)
            os.close(file)
        _run(request)
    finally:
        os._exit(1)


def _run(request: dict) -> None:
    """The script as if it had been started by itself; ends the process."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(request["environment"], **{VARIABLE: "off"})
        os.chdir(request["folder"])
        sys.argv = [request["script"]]
        runpy.run_path(request["script"], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _ended() -> list[tuple[int, int]]:
    """(process, exit code) of the jobs that have ended."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            code = os.waitstatus_to_exitcode(ended[1])
            found.append((ended[0], code if 0 <= code < 256 else 1))
    return found


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _stamp() -> int:
    """Changes with any source file of the package."""
    files = sorted(SOURCES.rglob("*.py"))
    return hash(tuple((str(path), path.stat().st_mtime_ns) for path in files))


if __name__ == "__main__":
    serve(sys.argv[1])
elif hasattr(sys.modules.get("__main__"), "snakemake"):  # a script of the workflow, whose first lines set it
    hand_over(os.path.abspath(sys.argv[0]))
