"""Checkpoints: content survives, damage is detected, code is never run, and a crash does not change a result."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import pickle
from functools import partial

import pytest
import torch

from fedrepro.algorithms.afl import AFL
from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.algorithms.fedpd import FedPD
from fedrepro.algorithms.fedprox import FedProx
from fedrepro.algorithms.local import Local
from fedrepro.core import checkpoint as checkpoint_module
from fedrepro.core.checkpoint import Checkpoint
from fedrepro.core.checkpoint_file import pack, read_header, unpack
from fedrepro.core.federation import LocalWork
from fedrepro.core.params import Params
from tests.builders import FULL_BATCH, RAGGED, federations, make_plan, make_task, params, run
from tests.crashes import Crash, Fragile, assert_resumes

PAYLOAD = {
    "round": 3,
    "replicates": [
        [{"w": params(a=[1.0, 2.0], b=[[3.0]]), "servers": [params(a=[4.0])], "size": 2}, {7: params(a=[5.0])}, None],
        [{"values": torch.arange(6).reshape(2, 3), "rate": 0.1}, {}, 2],
    ],
    "log": {"metric": ["loss", "mse"], "value": [0.25, float("inf")], "client": [-1, 3]},
}


def equal(a, b) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(equal, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "job.pt"


# --- the file ---------------------------------------------------------------------------------------------------------


def test_what_goes_in_comes_out(path):
    Checkpoint(path).save(PAYLOAD)
    loaded = Checkpoint(path).load()
    assert equal(loaded, PAYLOAD)
    assert isinstance(loaded["replicates"][0][0]["servers"][0], Params)
    assert equal(Checkpoint(path).load(), loaded)


def test_tuples_and_lists_stay_apart(path):
    Checkpoint(path).save({"round": 0, "initial": [(1, [2])]})
    assert Checkpoint(path).load() == {"round": 0, "initial": [(1, [2])]}


def test_the_header_is_read_without_the_payload(path):
    Checkpoint(path, {"strategy": "loop"}, {"job": "toy/line/fedavg/0-1"}).save(PAYLOAD)
    header = read_header(path)
    assert header.pop("seconds") >= 0
    way = {"strategy": "loop", "torch": torch.__version__}
    assert header == {"job": "toy/line/fedavg/0-1", "way": way, "round": 3}


def test_nothing_there_is_nothing(path):
    said = []
    assert Checkpoint(path, say=said.append).load() is None
    assert said == []
    Checkpoint(path).remove()


def test_removed_is_gone(path):
    saved = Checkpoint(path)
    saved.save(PAYLOAD)
    saved.remove()
    assert saved.load() is None


def test_a_new_checkpoint_replaces_the_old_and_leaves_nothing_else(path):
    saved = Checkpoint(path)
    saved.save({"round": 1})
    saved.save({"round": 2})
    assert saved.load() == {"round": 2}
    assert [p.name for p in path.parent.iterdir()] == ["job.pt"]


def damaged(raw: bytes) -> dict[str, bytes]:
    flipped = bytearray(raw)
    flipped[len(raw) // 2] ^= 1
    return {
        "empty": b"",
        "half of the hash": raw[:16],
        "only the hash": raw[:32],
        "truncated": raw[:-1],
        "half": raw[: len(raw) // 2],
        "one bit": bytes(flipped),
        "one bit of the hash": bytes([raw[0] ^ 1]) + raw[1:],
        "longer": raw + b"\0",
        "text": b"not a checkpoint at all, but long enough to have a hash in front",
    }


def signed(rest: bytes) -> bytes:
    """With the right hash in front."""
    return hashlib.sha256(rest).digest() + rest


def written(write, payload) -> bytes:
    buffer = io.BytesIO()
    write(payload, buffer)
    return buffer.getvalue()


def load_what_was_made_of(path, body: bytes) -> list[str]:
    """What is said about a checkpoint with the right hash and header, and that body."""
    saved, said = Checkpoint(path), []
    saved.save(PAYLOAD)
    header, _ = unpack(path.read_bytes())
    path.write_bytes(pack(header, body))
    assert Checkpoint(path, say=said.append).load() is None
    return said


@pytest.mark.parametrize("how", damaged(bytes(100)))
def test_a_damaged_file_is_ignored_with_a_message(path, how):
    Checkpoint(path).save(PAYLOAD)
    path.write_bytes(damaged(path.read_bytes())[how])
    said = []
    assert Checkpoint(path, say=said.append).load() is None
    assert said == ["checkpoint job.pt is damaged: ignored, starting from round 0"]


class Malicious:
    """Creates a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = str(folder)

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("write", [torch.save, partial(pickle.dump, protocol=2)], ids=["torch.save", "pickle"])
def test_code_in_a_checkpoint_is_not_run(path, tmp_path, write):
    """Even if the hash of the file is right."""
    body = written(write, {"round": Malicious(tmp_path / "code was run")})
    (told,) = load_what_was_made_of(path, body)
    assert "holds more than numbers, text and tensors: ignored" in told
    assert not (tmp_path / "code was run").exists()
    with contextlib.suppress(RuntimeError):  # torch runs the pickle before it rejects the format
        torch.load(io.BytesIO(body), weights_only=False)
    assert (tmp_path / "code was run").exists()


def of_another_device(payload, buffer):
    """As if the tensors had been on a GPU."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.serialization, "location_tag", lambda storage: "cuda:0")
        torch.save(payload, buffer)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", "EOFError"),
        (written(of_another_device, {"round": 1, "w": torch.ones(2)}), "RuntimeError"),
        (written(torch.save, [1, 2]), "TypeError"),
        (written(torch.save, {"rounds": 1}), "KeyError"),
    ],
    ids=["empty", "on another device", "a list", "without a round"],
)
def test_whatever_a_wrong_payload_raises_the_run_starts_over(path, body, error):
    assert load_what_was_made_of(path, body) == [
        f"checkpoint job.pt cannot be read ({error}): ignored, starting from round 0"
    ]


@pytest.mark.parametrize("rest", [b"", b"\n", b"[]\n", b"{\n", b"\xff\n"])
def test_a_file_without_a_header_is_ignored(path, rest):
    said = []
    path.parent.mkdir()
    path.write_bytes(signed(rest))
    assert Checkpoint(path, say=said.append).load() is None
    assert said == ["checkpoint job.pt has no header: ignored, starting from round 0"]


WAY = {"strategy": "vmap", "device": "cpu", "threads": 1}


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"strategy": "loop"}, "strategy loop, not vmap"),
        ({"device": "cuda"}, "device cuda, not cpu"),
        ({"threads": 2}, "threads 2, not 1"),
    ],
)
def test_a_checkpoint_made_in_another_way_is_refused_by_name(path, other, told):
    said = []
    Checkpoint(path, WAY | other).save(PAYLOAD)
    assert Checkpoint(path, WAY, say=said.append).load() is None
    assert said == [f"checkpoint job.pt was made in another way ({told}): ignored, starting from round 0"]
    assert Checkpoint(path, WAY | other).load() is not None


def test_a_checkpoint_of_another_version_of_torch_is_refused_by_name(path, monkeypatch):
    said = []
    monkeypatch.setattr(checkpoint_module.torch, "__version__", "1.0")
    Checkpoint(path, WAY).save(PAYLOAD)
    monkeypatch.undo()
    assert Checkpoint(path, WAY, say=said.append).load() is None
    assert f"(torch 1.0, not {torch.__version__}): ignored" in said[0]


def test_due_after_some_seconds(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint_module.time, "monotonic", lambda: now[0])
    saved = Checkpoint(path, seconds=10)
    monkeypatch.setattr(checkpoint_module, "write_atomically", lambda *_: None)
    due = []
    for now[0] in (9.0, 10.0, 11.0):
        due.append(saved.due())
    saved.save(PAYLOAD)
    for now[0] in (20.0, 21.0):
        due.append(saved.due())
    assert due == [False, True, True, False, True]


def test_a_checkpoint_that_takes_long_to_save_is_due_less_often(path, monkeypatch):
    """A save of a second is due after 100 seconds: at most one per cent of the time."""
    now = [0.0]

    def write(*_):
        now[0] += 1.0

    monkeypatch.setattr(checkpoint_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(checkpoint_module, "write_atomically", write)
    saved = Checkpoint(path, seconds=30)
    saved.save(PAYLOAD)
    due = []
    for now[0] in (31.0, 100.0, 101.0):
        due.append(saved.due())
    assert due == [False, False, True]


def test_the_time_of_earlier_processes_counts(path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(checkpoint_module.time, "monotonic", lambda: now[0])
    first = Checkpoint(path)
    now[0] = 50.0
    first.save(PAYLOAD)
    now[0] = 1000.0
    second = Checkpoint(path)
    second.load()
    now[0] = 1020.0
    assert second.trained == 70.0


# --- crash and resume -------------------------------------------------------------------------------------------------


ROUNDS = 4
SHORT = LocalWork(epochs=1, batch=3)
CASES = {
    "fedavg": ("softmax", SHORT, [FedAvg(lr=0.1, decay=0.9)], {}),
    "a grid of fedprox, sampled": ("softmax", SHORT, [FedProx(lr=0.1), FedProx(lr=0.3)], {"clients": 4}),
    "local": ("softmax", SHORT, [Local(lr=0.1)], {}),
    "local, sampled": ("softmax", SHORT, [Local(lr=0.1)], {"clients": 2}),
    "fedpd": ("linear", FULL_BATCH, [FedPD(lr=0.1, gamma=0.5)], {"weights": "uniform"}),
    "afl": ("softmax", SHORT, [AFL(lr=0.1, gamma=0.1)], {"clients": 4}),
    "one of two diverges": ("linear", FULL_BATCH, [FedAvg(lr=1e200), FedAvg(lr=0.1)], {}),
}


def start(case: str, strategy: str, **options):
    model, work, algorithms, plan = CASES[case]
    by_seed = federations(model, {0: RAGGED, 1: RAGGED[::-1]})
    plan = make_plan(ROUNDS, work, client_metrics="always", **plan)
    return run(make_task(model), by_seed, plan, *algorithms, strategy=strategy, **options)


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_ends_with_the_same_bytes(path, case, strategy):
    assert_resumes(path, ROUNDS, lambda **options: start(case, strategy, **options))


def test_a_run_that_crashes_again_and_again_ends_with_the_same_bytes(path):
    undisturbed = start("local", "loop")
    for crash in range(1, ROUNDS):
        with pytest.raises(Crash):
            start("local", "loop", checkpoint=Checkpoint(path, seconds=0), progress=Fragile(crash))
    resumed = start("local", "loop", checkpoint=Checkpoint(path, seconds=0))
    assert resumed.counts["resumed_from"] == ROUNDS - 1
    assert resumed.parquet() == undisturbed.parquet()


def test_without_a_checkpoint_yet_a_run_starts_over(path):
    undisturbed = start("fedavg", "loop")
    with pytest.raises(Crash):
        start("fedavg", "loop", checkpoint=Checkpoint(path, seconds=3600), progress=Fragile(3))
    resumed = start("fedavg", "loop", checkpoint=Checkpoint(path, seconds=3600))
    assert resumed.counts["resumed_from"] == -1
    assert resumed.parquet() == undisturbed.parquet()


def test_a_run_whose_checkpoint_is_damaged_starts_over(path):
    said = []
    with pytest.raises(Crash):
        start("fedavg", "loop", checkpoint=Checkpoint(path, seconds=0), progress=Fragile(3))
    path.write_bytes(path.read_bytes()[:-10])
    resumed = start("fedavg", "loop", checkpoint=Checkpoint(path, seconds=0, say=said.append))
    assert len(said) == 1
    assert resumed.counts["resumed_from"] == -1
    assert resumed.parquet() == start("fedavg", "loop").parquet()
