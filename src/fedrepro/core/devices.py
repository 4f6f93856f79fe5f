"""Where a training job computes: cuda, mps or the cpu; one GPU per job on a machine with several.

Snakemake's resource `gpu` limits the jobs to the number of GPUs. Which GPU a job gets is decided here: it holds one
file per GPU locked (flock) until it ends. On a cluster a job sees only its own GPU.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from fedrepro.errors import UserError

_held: list[int] = []  # open files: closing one ends the claim


def pick_device(asked: str, say: Callable[[str], None] = lambda text: None) -> torch.device:
    """`auto` takes cuda, then mps, then the cpu; UserError if the device does not exist."""
    available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        asked = next(name for name in ("cuda", "mps", "cpu") if available[name])
    if not available[asked]:
        raise UserError(f"device: '{asked}' was asked for, but torch sees none on {os.uname().nodename}")
    if asked == "cuda" and (count := torch.cuda.device_count()) > 1:
        return torch.device("cuda", claim(count, say))
    return torch.device(asked)


def claim(count: int, say: Callable[[str], None], folder: Path | None = None, wait: float = 1.0) -> int:
    """The number of the first GPU that no other job of this user holds on this machine; waits if all are taken."""
    folder = folder or Path(tempfile.gettempdir()) / f"fedrepro-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.is_symlink():
        raise UserError(f"{folder}: not a folder of this user, so GPUs cannot be shared out there")
    # two runs may see different GPUs under the same number
    seen = "".join(c if c.isalnum() else "_" for c in os.environ.get("CUDA_VISIBLE_DEVICES", "all"))
    said = False
    while True:
        for number in range(count):
            handle = os.open(folder / f"{seen}-{number}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            _held.append(handle)
            return number
        if not said:
            say(f"all {count} GPUs are taken by other jobs: waiting")
            said = True
        time.sleep(wait)
