"""Data sets and federations as files, and cuts of each client's own samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedrepro.core import parts
from fedrepro.data import assignment as federation_files
from fedrepro.data.assignment import Assignment
from fedrepro.data.catalogue import Entry
from fedrepro.data.dataset import Dataset, Split, load
from fedrepro.data.partitions.k_classes import k_classes
from fedrepro.data.preparation import INSIDE, dealt, ordered, partition_data, prepare_data, shuffled
from fedrepro.errors import UserError
from fedrepro.files import read_json, sha256
from tests.unit.data.partitions.builders import all_rows, held, rng, sizes_of

SPEC = {"name": "dfl_line", "servers": 2, "clients": 3, "samples": 4}


def prepare(folder, seeds=(0, 1), dataset_id="dfl_line-1", spec=SPEC):
    out = folder / "data.npz"
    prepare_data(dataset_id, spec, list(seeds), "auto", [], out)
    return out


def test_each_seed_has_data_of_its_own_and_the_same_again(tmp_path):
    first, second = prepare(tmp_path / "a"), prepare(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes()
    data = load(first)
    assert sorted(data) == [0, 1]
    assert data[0].train.x.shape == (24, 1)
    assert not np.array_equal(data[0].train.x, data[1].train.x)


def test_a_seed_does_not_depend_on_its_shard(tmp_path):
    together, alone = load(prepare(tmp_path / "a")), load(prepare(tmp_path / "b", seeds=[1]))
    np.testing.assert_array_equal(together[1].train.y, alone[1].train.y)
    other = load(prepare(tmp_path / "c", seeds=[1], dataset_id="dfl_line-2"))
    assert not np.array_equal(alone[1].train.y, other[1].train.y)


def test_what_identifies_the_data_is_stored_next_to_it(tmp_path):
    out = prepare(tmp_path)
    assert read_json(tmp_path / "data.json") == {
        "name": "dfl_line",
        "kind": "synthetic",
        "parameters": {"servers": 2, "clients": 3, "samples": 4},
        "samples": {"train": 24},
        "sha256": sha256(out),
    }


def test_a_federation_lists_every_row_once(tmp_path):
    dataset = prepare(tmp_path)
    assignments, first = partition_data("f", {"name": "by_client"}, [0, 1], dataset, tmp_path / "federation.npz")
    about = read_json(tmp_path / "federation.json")
    assert {k: about[k] for k in ("name", "parameters", "clients", "smallest", "largest")} == {
        "name": "by_client",
        "parameters": {},
        "clients": 6,
        "smallest": 4,
        "largest": 4,
    }
    assert about["sha256"] == federation_files.content_sha256(assignments)
    np.testing.assert_array_equal(first.train.y, load(dataset)[0].train.y)
    stored = federation_files.load(tmp_path / "federation.npz")
    assert sorted(stored) == [0, 1]
    assert sorted(stored[1]["train/rows"]) == list(range(24))
    assert list(stored[1]["train/offsets"]) == [0, 4, 8, 12, 16, 20, 24]
    assert list(stored[1]["groups"]) == ["0", "0", "0", "1", "1", "1"]


@pytest.fixture
def fixed(monkeypatch):
    """A data set that does not depend on the seed, in two halves."""

    def halves(source) -> Dataset:
        client = np.array([0, 0, 0, 1])
        test = Split(np.zeros((2, 1)), np.zeros(2))
        return Dataset("real", Split(source.rng.random((4, 1)), np.arange(4), client=client), test=test)

    monkeypatch.setattr(parts, "dataset", {"halves": Entry(halves, seeded=False, size=lambda: (2, 2))}.__getitem__)
    return {"name": "halves"}


def test_data_for_all_seeds_is_stored_once_and_split_for_each(tmp_path, fixed):
    dataset = prepare(tmp_path, seeds=[-1], spec=fixed)
    assert list(load(dataset)) == [-1]
    about = read_json(tmp_path / "data.json")
    assert (about["kind"], about["samples"]) == ("real", {"train": 4, "test": 2})
    partition_data("f", {"name": "by_client"}, [0, 1, 2], dataset, tmp_path / "federation.npz")
    stored = federation_files.load(tmp_path / "federation.npz")
    assert sorted(stored) == [0, 1, 2]
    about = read_json(tmp_path / "federation.json")
    assert (about["clients"], about["smallest"], about["largest"]) == (2, 1, 3)


def test_a_cut_as_dealt_ends_with_the_last_class_of_each_client():
    """Two classes on each of two clients, five samples of each: the last fifth is of one class."""
    labels = np.repeat([0, 1, 2, 3], 5)
    dataset = Dataset("real", Split(np.zeros((20, 1)), labels), outputs=4)
    found = dealt(k_classes(dataset, np.random.default_rng(0), clients=2, classes=2), None, train=0.5, test=0.5)
    for train, test in zip(found.rows["train"], found.rows["test"], strict=True):
        assert len(set(labels[train])) == len(set(labels[test])) == 1
        assert set(labels[train]) != set(labels[test])


def test_a_cut_inside_the_clients_is_drawn_from_a_stream_of_its_own(tmp_path):
    dataset = prepare(tmp_path)
    spec = {"name": "by_client", "inside": {"name": "shuffled", "train": 0.5, "test": 0.5}}
    (whole, _), (cut, _) = (
        partition_data("f", s, [0], dataset, tmp_path / "f.npz") for s in ({"name": "by_client"}, spec)
    )
    about = read_json(tmp_path / "f.json")
    assert about["parameters"] == {"inside": spec["inside"]}
    assert (about["smallest"], about["largest"]) == (2, 2)
    for k, mine in enumerate(whole[0].rows["train"]):
        assert sorted([*cut[0].rows["train"][k], *cut[0].rows["test"][k]]) == sorted(mine)
    stored = federation_files.load(tmp_path / "f.npz")[0]
    assert (str(stored["train/of"]), str(stored["test/of"])) == ("train", "train")


def flip(path, at: float) -> None:
    """One bit, `at` of the way through the file."""
    raw = bytearray(path.read_bytes())
    raw[int(at * len(raw))] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("at", [0.0, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("kind", ["data", "federation"])
def test_a_damaged_file_is_named_and_never_used(tmp_path, kind, at):
    data, federation = prepare(tmp_path), tmp_path / "federation.npz"
    partition_data("f", {"name": "by_client"}, [0, 1], data, federation)
    path, read = {"data": (data, load), "federation": (federation, federation_files.load)}[kind]
    read(path)
    flip(path, at)
    with pytest.raises(UserError, match=rf"{kind}\.npz: damaged: .*; the next run makes it again"):
        read(path)


def test_a_cut_federation_is_named(tmp_path):
    data, federation = prepare(tmp_path), tmp_path / "federation.npz"
    partition_data("f", {"name": "by_client"}, [0, 1], data, federation)
    federation.write_bytes(federation.read_bytes()[:100])
    with pytest.raises(UserError, match="damaged"):
        federation_files.load(federation)


# --- cuts inside the clients ------------------------------------------------------------------------------------------

TWO = Assignment({"train": [np.arange(10), np.arange(100, 105)]}, groups=["a", "b"])


def test_head_and_tail_of_a_series():
    found = ordered(TWO, rng(), train=0.6, test=0.4)
    assert held(found) == [[0, 1, 2, 3, 4, 5], [100, 101, 102]]
    assert held(found, "test") == [[6, 7, 8, 9], [103, 104]]
    assert found.of == {"test": "train"}
    assert list(found.groups) == ["a", "b"]


def test_rows_keep_the_order_of_the_data():
    found = ordered(Assignment({"train": [np.array([7, 3, 9, 1])]}), rng(), train=0.5, test=0.5)
    assert (held(found), held(found, "test")) == ([[1, 3]], [[7, 9]])


def test_a_random_cut_in_seventy_ten_twenty():
    found = shuffled(
        Assignment({"train": [np.arange(500), np.arange(500, 600)]}), rng(), train=0.7, validation=0.1, test=0.2
    )
    assert [sizes_of(found, name) for name in ("train", "validation", "test")] == [[350, 70], [50, 10], [100, 20]]
    assert all_rows(found, "train", "validation", "test") == list(range(600))
    assert set(found.rows["test"][0]) <= set(range(500))
    assert found.of == {"validation": "train", "test": "train"}
    assert held(found)[0] != sorted(held(found)[0])
    assert 200 < np.mean(found.rows["test"][0]) < 300  # from all rows, not from the end


@pytest.mark.parametrize(
    ("size", "cut"), [(1, (1, 0, 0)), (2, (1, 1, 0)), (3, (2, 0, 1)), (5, (4, 0, 1)), (8, (6, 0, 2)), (15, (11, 1, 3))]
)
def test_halves_round_up(size, cut):
    """0.7 and 0.8 of the way: of 5 samples at 3.5 and 4, of 15 at 10.5 and 12."""
    found = shuffled(Assignment({"train": [np.arange(size)]}), rng(), train=0.7, validation=0.1, test=0.2)
    assert tuple(sizes_of(found, name)[0] for name in ("train", "validation", "test")) == cut


@pytest.mark.parametrize("name", INSIDE)
def test_all_for_training_is_all_for_training(name):
    found = INSIDE[name](TWO, rng(), train=1.0)
    assert all_rows(found) == all_rows(TWO)
    assert set(found.rows) == {"train"}


def test_a_global_test_set_stays_with_a_validation_cut():
    data = Assignment({"train": [np.arange(4)], "test": [np.arange(3)]})
    found = ordered(data, rng(), train=0.5, validation=0.5)
    assert (held(found), held(found, "validation"), held(found, "test")) == ([[0, 1]], [[2, 3]], [[0, 1, 2]])
    assert found.of == {"validation": "train"}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize(
    "shares",
    [
        {"train": 0.7, "test": 0.2},
        {"train": 1.2, "test": -0.2},
        {"train": 0.0, "test": 1.0},
        {"train": math.nan, "test": 0.2},
        {"train": 0.8, "validation": math.nan, "test": 0.2},
    ],
)
def test_shares_that_do_not_add_up_are_refused(name, shares):
    with pytest.raises(UserError, match=r"^inside: train must be above 0, no part negative, and their sum 1: train = "):
        INSIDE[name](TWO, rng(), **shares)


def test_a_client_that_would_have_nothing_to_learn_from_is_refused():
    with pytest.raises(UserError, match="client 1 has 1 samples, too few to leave one for training"):
        ordered(Assignment({"train": [np.arange(9), np.arange(1)]}), rng(), train=0.3, test=0.7)


def test_a_data_set_with_a_test_set_of_its_own_is_not_cut_for_another():
    data = Assignment({"train": [np.arange(4)], "test": [np.arange(3)]})
    with pytest.raises(UserError, match="the data set has a test set of its own; load it pooled"):
        shuffled(data, rng(), train=0.5, test=0.5)
