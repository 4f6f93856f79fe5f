"""Jobs that start warm: a process that has imported torch and pandas once, and forks for every job of a local run.

A study is many short jobs, and importing takes longer than most of them. `start` begins such a process
(fedrepro.workflow.warm_process) beside a run, and puts fedrepro/startup on the path of its jobs: Python imports the
`sitecustomize` that it finds there before anything else, and that hands the job over: script, folder, environment and
open files. What forks in the warm process runs the very same script; the process that asked waits for its exit code.

Where there is none, or it does not answer, or it runs another Python, or a source file has changed since it started
(its imports would be old), the script simply goes on by itself. A job whose asker dies is ended, and so are all when
the run dies.
"""

from __future__ import annotations

import os
import sys
from itertools import takewhile

VARIABLE = "FEDREPRO_WARM"  # the socket of the warm process; `off` for none; `early` for one from the very start
STARTUP = os.path.join(os.path.dirname(__file__), "startup")


def start() -> None:
    """Begin a warm process for the jobs of this one, where that is possible, not switched off and none is there."""
    import subprocess  # here: every job imports this module, and none begins a warm process
    import tempfile

    if os.environ.get(VARIABLE, "early") != "early" or not sys.platform.startswith("linux"):
        return
    address = os.path.join(tempfile.mkdtemp(prefix="fedrepro-"), "socket")
    os.environ[VARIABLE] = address
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (STARTUP, os.environ.get("PYTHONPATH"))))
    subprocess.Popen(
        [sys.executable, "-m", "fedrepro.workflow.warm_process", address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the terminal's interrupt is for the run, which then ends its jobs
    )


def wanted_early() -> bool:
    """Whether the run is known to be a local one before it has begun: its imports can go beside its planning."""
    return os.environ.get(VARIABLE) == "early"


def several_asked_for(command: list[str]) -> bool:
    """Whether a command line of snakemake names several jobs: a cluster's, in which several of ours share a place."""
    if "--target-jobs" not in command:
        return False
    asked = takewhile(lambda word: not word.startswith("--"), command[command.index("--target-jobs") + 1 :])
    return len(list(asked)) > 1


def script_of(command: list[str]) -> str | None:
    """The script that snakemake wrote for a job, if this command line of Python runs one."""
    if len(command) != 2 or os.path.dirname(command[1]).split(os.sep)[-2:] != [".snakemake", "scripts"]:
        return None
    return os.path.abspath(command[1])


def hand_over(script: str) -> None:
    """Let the warm process run `script`, and end with its exit code; returns where there is none."""
    address = os.environ.get(VARIABLE, "off")
    if address == "off":
        return
    import _socket  # `socket` and `json` would import for longer than all of the rest takes, in every job

    environment = (f"{name}={value}" for name, value in os.environ.items())
    body = os.fsencode("\0".join((sys.executable, script, os.getcwd(), *environment)))  # none of them can hold a \0
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        connection.connect(address)
        connection.sendmsg([len(body).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        connection.sendall(body)
        taken = connection.recv(1) == b"+"
    except OSError:
        taken = False
    if not taken:
        connection.close()
        return
    code = connection.recv(1)  # nothing: the warm process is gone, and the job with it
    os._exit(code[0] if code else 1)
