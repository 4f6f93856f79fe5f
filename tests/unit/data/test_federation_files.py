"""A federation's file and its content hash."""

from __future__ import annotations

import numpy as np

from fedrepro.data import federation_files as files
from fedrepro.data.federation_files import Assignment

ASSIGNMENT = Assignment({"train": [np.array([4, 2]), np.array([], dtype=int), np.array([0])]}, groups=["a", "b", "a"])


def test_an_assignment_as_arrays():
    arrays = ASSIGNMENT.arrays()
    assert arrays["train/rows"].tolist() == [4, 2, 0]
    assert arrays["train/offsets"].tolist() == [0, 2, 2, 3]
    assert arrays["train/of"] == "train"
    assert arrays["groups"].tolist() == ["a", "b", "a"]


def test_what_is_saved_comes_back(tmp_path):
    cut = Assignment({"train": [np.arange(3)], "test": [np.arange(2)]}, of={"test": "train"})
    files.save(tmp_path / "f.npz", {0: ASSIGNMENT, 7: cut})
    loaded = files.load(tmp_path / "f.npz")
    assert set(loaded) == {0, 7}
    assert {k: v.tolist() for k, v in loaded[0].items()} == {k: v.tolist() for k, v in ASSIGNMENT.arrays().items()}
    assert loaded[7]["test/offsets"].tolist() == [0, 2]
    assert loaded[7]["test/of"] == "train"
    assert loaded[7]["train/rows"].dtype == np.int64


def test_the_hash_is_of_who_holds_what():
    one, two = Assignment({"train": [np.array([0, 1]), np.array([2])]}), Assignment({"train": [[0, 1], [2]]})
    known = files.content_sha256({0: one, 1: ASSIGNMENT})
    assert files.content_sha256({1: ASSIGNMENT, 0: two}) == known
    others = [
        {0: one},
        {1: one, 0: ASSIGNMENT},
        {0: Assignment({"train": [[0], [1, 2]]}), 1: ASSIGNMENT},
        {0: Assignment({"train": [[1, 0], [2]]}), 1: ASSIGNMENT},
        {0: Assignment({"test": [[0, 1], [2]]}), 1: ASSIGNMENT},
        {0: Assignment({"train": [[0, 1], [2]]}, of={"train": "test"}), 1: ASSIGNMENT},
        {0: Assignment({"train": [[0, 1], [2]]}, groups=["x", "y"]), 1: ASSIGNMENT},
    ]
    assert len({known, *map(files.content_sha256, others)}) == 1 + len(others)


def test_the_hash_of_a_known_federation_stays_what_it_is():
    """Results name a federation by this hash: a change of it would disown all that was run before."""
    known = Assignment({"train": [[0, 2], [1]], "test": [[3]]}, ["a", "b"], of={"test": "train"})
    assert files.content_sha256({0: known}) == "899c35a5093b909a596039aa8e1d50636dfaa40235ad351763d135c3c72ab631"
