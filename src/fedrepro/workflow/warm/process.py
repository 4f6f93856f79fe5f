"""The process that forks for jobs: `python -m fedrepro.workflow.warm.process NAME PARENT`."""

import contextlib
import gc
import importlib
import os
import runpy
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from fedrepro.core import parts
from fedrepro.evidence import provenance
from fedrepro.workflow import code_inputs, interrupts
from fedrepro.workflow.warm import VARIABLE, of_this_user

LARGEST_REQUEST = 2**20
#: imported before the first job: all modules that jobs need
MODULES = (
    *("snakemake.script", "fedrepro.data.fetch", "fedrepro.data.preparation"),
    *("fedrepro.evidence.judging", "fedrepro.evidence.tables", "fedrepro.report.page", "fedrepro.report.rendering"),
    *("fedrepro.workflow.jobs", "fedrepro.workflow.run_notebook", "fedrepro.workflow.train_job"),
    *(module for kind in parts.SHARED for module in parts.modules(kind).values()),
    *parts.result_modules(),
    *("jsonschema", "torch._dynamo", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.pandas_compat"),
    *("pandas.core.arrays.arrow.extension_types", "pandas.io.formats.csvs"),
    *("matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "PIL.JpegImagePlugin", "PIL.features"),
    *("black", "opacus.accountants.analysis.rdp", "scipy.integrate", "scipy.ndimage", "scipy.optimize", "scipy.stats"),
    "sklearn.linear_model",
)


class Request(NamedTuple):
    python: str
    script: str
    folder: str
    environment: dict[str, str]


def serve(name: str, parent: int) -> None:
    """Fork for every request until the parent is gone."""
    _end_with(parent)
    stamp = _stamp()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{name}")
    listener.listen(64)  # later jobs wait for the imports; importing on their own would be no faster
    for name in MODULES:
        with contextlib.suppress(Exception):  # a job that needs it reports the error
            importlib.import_module(name)
    code_inputs.read_all()
    provenance.versions()
    gc.freeze()  # garbage collection in a fork would copy the shared memory
    waker, bell = socket.socketpair()
    waker.setblocking(False)
    bell.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    ready = selectors.DefaultSelector()
    for source in (listener, bell):
        ready.register(source, selectors.EVENT_READ)
    jobs: dict[int, socket.socket] = {}  # process → the connection of the job that waits for it
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
                else:  # the waiting job has ended
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


def _end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, and end now if it has ended already."""
    interrupts.signal_at_parents_end(signal.SIGKILL)  # where it cannot: `serve` looks for its parent every second
    if os.getppid() != parent:
        os._exit(1)


def _begin(connection: socket.socket, stamp: int, others: list[socket.socket]) -> int | None:
    """Fork for a request: the process, or None if the job must run its script itself."""
    files: list[int] = []
    warm = os.getpid()
    try:
        if not of_this_user(connection):
            return None
        request = _received(connection, files)
        if len(files) != 3 or request.python != sys.executable or _stamp() != stamp:
            return None
        connection.sendall(b"+")
        pid = os.fork()
        if not pid:
            _end_with(warm)
            _become(request, files, (*others, connection))
        return pid
    except (OSError, ValueError):
        return None
    finally:
        for file in files:  # the fork has them; while they are open here, readers of its output wait
            os.close(file)


def _received(connection: socket.socket, files: list[int]) -> Request:
    """The request; its open files are added to `files`."""
    connection.settimeout(10.0)
    head, received, *_ = socket.recv_fds(connection, 4, 3)
    files += received
    size = int.from_bytes(head, "big")
    body = b""
    while len(body) < size <= LARGEST_REQUEST and (more := connection.recv(size - len(body))):
        body += more
    connection.settimeout(None)
    if len(body) != size:
        raise ValueError("a request that is too large or cut short")
    python, script, folder, *environment = os.fsdecode(body).split("\0")
    return Request(python, script, folder, dict(pair.split("=", 1) for pair in environment))


def _become(request: Request, files: list[int], others: Sequence[socket.socket]) -> NoReturn:
    """Turn this fork into the job: take its files, close those of the warm process, run the script."""
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


def _run(request: Request) -> None:
    """Run the script as a command of its own, and end the process."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(request.environment, **{VARIABLE: "off"})
        os.chdir(request.folder)
        sys.argv = [request.script]
        runpy.run_path(request.script, run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def _ended() -> list[tuple[int, int]]:
    """(process, exit code) of ended jobs."""
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
    """Changes with any source file of the package and of the studies outside it."""
    return hash(tuple((str(path), path.stat().st_mtime_ns) for path in parts.sources()))


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
