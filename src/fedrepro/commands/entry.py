"""`fedrepro` begins here: SIGINT ends it with one line also while its modules are imported."""

import _signal  # `signal` takes longer to import than all of this, and until then SIGINT is not handled
import os

TOLD = b"stopped by SIGINT\n"
CODE = 128 + _signal.SIGINT


def main() -> int:
    before = _signal.getsignal(_signal.SIGINT)
    if before != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _end)
    from fedrepro.commands import cli  # here: this is what takes long

    try:
        _signal.signal(_signal.SIGINT, before)  # commands tidy up when they are interrupted
        return cli.main()
    except KeyboardInterrupt:
        os.write(2, TOLD)
        return CODE


def _end(_number: int, _frame: object) -> None:
    os.write(2, TOLD)
    os._exit(CODE)
