"""What every script does around its work: write to the job's log, and end with one line where the user erred."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from fedrepro.errors import UserError


@contextmanager
def logged(path: str) -> Iterator[None]:
    """Send all output, also that of libraries, to the log. An error ends in the log and, short, on the terminal."""
    terminal = os.dup(2)
    with open(path, "w", buffering=1) as log:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            yield
        except UserError as error:
            _end(terminal, f"error: {error}")
        except BaseException as error:
            traceback.print_exc()
            last = (str(error).strip().splitlines() or [""])[0][:300]
            _end(terminal, f"{type(error).__name__}: {last} (see {path})")


def _end(terminal: int, line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
    os.write(terminal, (line + "\n").encode())
    os._exit(1)  # at once: the line above is all there is to say
