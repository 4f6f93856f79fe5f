"""Warm jobs: one process imports torch and pandas once, and forks for every job of a local run.

Importing takes longer than most jobs. Smoke of all studies takes 2:43 on a quiet machine of two cores with this;
without it 62 % was done after 7:45. FEDREPRO_WARM=off switches it off.

`start` begins the process (`fedrepro.workflow.warm.process`) and puts startup/ on the PYTHONPATH of the jobs. Python
first imports the `sitecustomize` there, which hands the job over: script, folder, environment and open files. A fork
runs the script, and the job waits for its exit code. The job runs the script itself if no warm process answers, it has
another Python, or a source file has changed since it started. A fork ends with its job and with the warm process, which
ends with the run, however that ends: the kernel sees to it. Its socket has a name and no file: nothing is left behind.

Every job imports this module, so it must import nothing heavy.
"""

import os
import sys
from itertools import takewhile

TYPE_CHECKING = False  # `typing` takes longer to import than all of this
if TYPE_CHECKING:
    import _socket

VARIABLE = "FEDREPRO_WARM"  # the name of the warm process's socket; `off`: none; `early`: start it before planning
STARTUP = os.path.join(os.path.dirname(__file__), "startup")


def start() -> None:
    """Begin a warm process for this run, unless there is one, it is switched off, or this is not Linux."""
    import secrets  # here: no job needs them
    import subprocess

    if os.environ.get(VARIABLE, "early") != "early" or not sys.platform.startswith("linux"):
        return
    name = f"fedrepro-{secrets.token_hex(16)}"
    os.environ[VARIABLE] = name
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (STARTUP, os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "fedrepro.workflow.warm.process", name, str(os.getpid())]
    nowhere = subprocess.DEVNULL
    # in a session of its own: the terminal's interrupt is for the run, which then ends its jobs
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True)


def wanted_early() -> bool:
    """Whether the run is known to be local before planning, so that imports and planning overlap."""
    return os.environ.get(VARIABLE) == "early"


def several_asked_for(command: list[str]) -> bool:
    """Whether a snakemake command line names several jobs, as a cluster job that holds a group does."""
    if "--target-jobs" not in command:
        return False
    asked = takewhile(lambda word: not word.startswith("--"), command[command.index("--target-jobs") + 1 :])
    return len(list(asked)) > 1


def script_of(command: list[str]) -> str | None:
    """The script that snakemake wrote for a job, if this command line of Python runs one."""
    ours = len(command) == 2 and os.path.dirname(command[1]).split(os.sep)[-2:] == [".snakemake", "scripts"]
    return os.path.abspath(command[1]) if ours else None


def hand_over(script: str) -> None:
    """Have the warm process run `script`, and exit with its code; returns if no warm process takes it."""
    if (name := os.environ.get(VARIABLE, "off")) == "off":
        return
    import _signal  # `signal`, `socket` and `json` take longer to import than all of this
    import _socket

    interrupted = _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # while it waits, end without a traceback
    environment = (f"{name}={value}" for name, value in os.environ.items())
    body = os.fsencode("\0".join((sys.executable, script, os.getcwd(), *environment)))  # none can contain \0
    files = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection = _socket.socket(_socket.AF_UNIX)
    try:
        connection.connect(f"\0{name}")
        if not of_this_user(connection):
            raise OSError("somebody else's socket")
        connection.sendmsg([len(body).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        connection.sendall(body)
        taken = connection.recv(1) == b"+"
    except OSError:
        taken = False
    if not taken:
        connection.close()
        _signal.signal(_signal.SIGINT, interrupted)
        return
    code = connection.recv(1)  # empty: the warm process ended, and the job with it
    os._exit(code[0] if code else 1)


def of_this_user(connection: "_socket.socket") -> bool:
    """Whether the process at the other end is this user's: a name without a file has no permissions."""
    import _socket

    credentials = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # pid, uid, gid
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()
