"""Small data sets, views of their federations, and helpers of the property tests."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from fedrepro.data.assignment import Assignment, content_sha256
from fedrepro.data.dataset import Dataset, Split
from fedrepro.errors import UserError


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def labelled(sizes, test: int = 0) -> Dataset:
    """sizes[c] training samples of class c, mixed; `test` samples of class 0 as the data set's own test set."""
    y = rng(12).permutation(np.repeat(np.arange(len(sizes)), sizes))
    own = Split(np.zeros((test, 1)), np.zeros(test, dtype=int)) if test else None
    return Dataset("synthetic", train=Split(np.zeros((len(y), 1)), y), test=own, outputs=len(sizes))


def measured(rows: int, test: int = 0) -> Dataset:
    """A regression: targets are numbers."""
    own = Split(np.zeros((test, 1)), np.zeros(test)) if test else None
    return Dataset("synthetic", train=Split(np.zeros((rows, 1)), np.linspace(0, 1, rows)), test=own)


def held(assignment: Assignment, name: str = "train") -> list[list[int]]:
    return [rows.tolist() for rows in assignment.rows[name]]


def sizes_of(assignment: Assignment, name: str = "train") -> list[int]:
    return list(map(len, assignment.rows[name]))


def counts(data: Dataset, assignment: Assignment, name: str = "train") -> np.ndarray:
    """[clients, classes]"""
    return np.array([np.bincount(data.train.y[rows], minlength=data.outputs) for rows in assignment.rows[name]])


def all_rows(assignment: Assignment, *names: str) -> list[int]:
    """Every row that a client holds, sorted; a row held twice appears twice."""
    return sorted(np.concatenate([rows for name in names or ("train",) for rows in assignment.rows[name]]).tolist())


# --- properties (hypothesis) ------------------------------------------------------------------------------------------

seeds = st.integers(0, 2**32)
data_sets = st.lists(st.integers(0, 40), min_size=1, max_size=8).filter(any).map(labelled)


def disjoint(rows: list[int], total: int) -> bool:
    return len(set(rows)) == len(rows) and set(rows) <= set(range(total))


def possible(make, data: Dataset, seed: int, **options) -> Assignment | None:
    """The federation, or None after a UserError; any other error fails the test."""
    try:
        found = make(data, rng(seed), **options)
    except UserError:
        return None
    assert content_sha256({0: found}) == content_sha256({0: make(data, rng(seed), **options)})
    assert min(sizes_of(found)) >= 1
    assert len(found.groups) in (0, len(found.rows["train"]))
    return found
