"""Checkpoints: a job that is killed at any moment resumes and ends with the same bytes.

A checkpoint is one file (`checkpoint_file`), named by the hash of the job's settings, code and data. Its payload holds
tensors, numbers, strings, lists and dicts only, and is read with `weights_only`. It is written atomically. A file that
is damaged, or that was made in another way (loop or vmap, device, threads, version of torch), is ignored with a
message: continued in another way, a run would end with the bytes of neither.
"""

import io
import pickle
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from fedrepro.core.checkpoint_file import DamagedCheckpoint, pack, unpack
from fedrepro.core.params import Params
from fedrepro.files import write_atomically

SECONDS = 30.0  # between two checkpoints: half of the minute that a stop may cost, as they wait for a client's end
SHARE = 0.01  # of the time that saving may take
_PARAMS = "__params__"


class Checkpoint:
    """Is due every `seconds` seconds, or less often if saving would take more than SHARE of the time.

    way: how the run is computed; a checkpoint of another way is not loaded. about: what the header says besides; its
    `begun_on`, the machine, is that of the checkpoint that was loaded.
    """

    def __init__(
        self,
        path: Path,
        way: Mapping[str, Any] | None = None,
        about: Mapping[str, Any] | None = None,
        seconds: float = SECONDS,
        say: Callable[[str], None] = lambda text: None,
    ):
        self.path, self.seconds, self.say = Path(path), seconds, say
        self.way, self.about = {**(way or {}), "torch": torch.__version__}, dict(about or {})
        self.before = 0.0  # seconds of training before this process
        self._started = self._last = time.monotonic()
        self._cost = 0.0  # seconds, of the last save

    @property
    def trained(self) -> float:
        """Seconds of training, of this process and of those before it."""
        return self.before + time.monotonic() - self._started

    def due(self) -> bool:
        return time.monotonic() - self._last >= max(self.seconds, self._cost / SHARE if self.seconds else 0.0)

    def save(self, payload: dict[str, Any]) -> None:
        """Save the payload; its `round` and the time so far also go into the header."""
        began = time.monotonic()
        buffer = io.BytesIO()
        torch.save(_encode(payload), buffer)
        header = {**self.about, "way": self.way, "round": payload["round"], "seconds": round(self.trained, 3)}
        write_atomically(self.path, pack(header, buffer.getvalue()))
        self._last = time.monotonic()
        self._cost = self._last - began

    def load(self) -> dict[str, Any] | None:
        """The payload; None if there is no checkpoint that can be continued."""
        if not self.path.exists():
            return None
        try:
            header, body = unpack(self.path.read_bytes())
            if header.get("way") == self.way:
                payload: dict[str, Any] = _decode(torch.load(io.BytesIO(body), weights_only=True))
                payload["round"]  # an error here, where it is caught
                self.before = float(header["seconds"])
                self.about["begun_on"] = header.get("begun_on")
                return payload
            why = f"was made in another way ({_differences(header.get('way'), self.way)})"
        except DamagedCheckpoint as error:
            why = str(error)
        except pickle.UnpicklingError:
            why = "holds more than numbers, text and tensors"
        except Exception as error:  # torch.load raises whatever a wrong payload leads it to
            why = f"cannot be read ({type(error).__name__})"
        self.say(f"checkpoint {self.path.name} {why}: ignored, starting from round 0")
        return None

    def remove(self) -> None:
        """Also the unfinished file of a killed job."""
        for path in (self.path, *self.path.parent.glob(f".{self.path.name}.*")):
            path.unlink(missing_ok=True)


def _differences(theirs: Any, ours: Mapping[str, Any]) -> str:
    """`device cuda, not cpu; torch 2.1, not 2.2`."""
    theirs = theirs if isinstance(theirs, dict) else {}
    keys = [key for key in {**ours, **theirs} if theirs.get(key) != ours.get(key)]
    return "; ".join(f"{key} {theirs.get(key, 'unknown')}, not {ours.get(key, 'unknown')}" for key in keys)


def _encode(tree: Any) -> Any:
    if isinstance(tree, Params):
        return {_PARAMS: dict(tree)}
    if isinstance(tree, dict):
        return {k: _encode(v) for k, v in tree.items()}
    if isinstance(tree, tuple):
        return tuple(map(_encode, tree))
    return list(map(_encode, tree)) if isinstance(tree, list) else tree


def _decode(tree: Any) -> Any:
    if isinstance(tree, dict):
        return Params(tree[_PARAMS]) if _PARAMS in tree else {k: _decode(v) for k, v in tree.items()}
    return type(tree)(map(_decode, tree)) if isinstance(tree, list | tuple) else tree
