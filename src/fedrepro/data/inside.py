"""Cutting each client's own samples into training, validation and test samples, after a partition dealt them out.

In an experiment: `partition: {name: k_classes, …, inside: {name: shuffled, train: 0.7, validation: 0.1, test: 0.2}}`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedrepro.data.assignment import Assignment
from fedrepro.errors import UserError


def shuffled(
    assignment: Assignment, rng: np.random.Generator, *, train: float, validation: float = 0.0, test: float = 0.0
) -> Assignment:
    """A random cut of every client's samples (thesis §2.5: 70/10/20 on each device)."""
    return _cut(assignment, rng.permutation, train, validation, test)


def ordered(
    assignment: Assignment, rng: np.random.Generator, *, train: float, validation: float = 0.0, test: float = 0.0
) -> Assignment:
    """The first samples of every client for training, the last for testing, in the order of the data set
    (thesis §3.5: the first 60 % of an engine's life, then the rest)."""
    return _cut(assignment, np.sort, train, validation, test)


INSIDE: dict[str, Callable[..., Assignment]] = {"shuffled": shuffled, "ordered": ordered}


def _cut(
    assignment: Assignment,
    arrange: Callable[[np.ndarray], np.ndarray],
    train: float,
    validation: float,
    test: float,
) -> Assignment:
    fractions = {"train": train, "validation": validation, "test": test}
    if not (train > 0 <= min(validation, test) and abs(train + validation + test - 1) <= 1e-9):
        given = ", ".join(f"{name} = {fraction}" for name, fraction in fractions.items())
        raise UserError(f"inside: train must be above 0, no part negative, and their sum 1: {given}")
    wanted = {name: fraction for name, fraction in fractions.items() if fraction}
    taken = sorted((set(wanted) & set(assignment.rows)) - {"train"})
    if taken:
        raise UserError(f"inside: the data set has a {' and a '.join(taken)} set of its own; load it pooled")
    rows: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    ends = np.cumsum(list(wanted.values()))[:-1]
    for client, mine in enumerate(assignment.rows["train"]):
        cuts = np.floor(ends * len(mine) + 0.5 + 1e-9).astype(int)  # halves up, not to the even neighbour
        for name, part in zip(wanted, np.split(arrange(mine), cuts), strict=True):
            rows[name].append(part)
        if not len(rows["train"][-1]):
            raise UserError(f"inside: client {client} has {len(mine)} samples, too few to leave one for training")
    kept = {name: held for name, held in assignment.rows.items() if name not in wanted}
    cut_out = {name: assignment.of.get("train", "train") for name in wanted if name != "train"}
    return Assignment({**rows, **kept}, assignment.groups, {**assignment.of, **cut_out})
