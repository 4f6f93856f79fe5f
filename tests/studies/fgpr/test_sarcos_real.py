"""SARCOS on its real files: counts, ranges, known values and known dependences."""

from __future__ import annotations

import numpy as np
import pytest


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return np.corrcoef(a, b)[0, 1]


@pytest.fixture(scope="module")
def arm(real):
    return real("sarcos")


def test_sarcos_counts(arm):
    """The test file alone becomes the train split; with the training file there are both splits."""
    rows = (44484, 4449) if arm.found.complete else (4449, None)
    assert (len(arm.train), arm.test and len(arm.test)) == rows
    assert arm.train.x.shape[1] == 21
    assert arm.train.y.shape[1] == 7


def test_sarcos_test_file(arm):
    split = arm.test if arm.found.complete else arm.train
    assert split.x.shape[1] + split.y.shape[1] == 28
    assert np.isfinite(split.x).all()
    assert np.isfinite(split.y).all()
    first = np.concatenate([split.x[0], split.y[0]])
    assert first[[0, 1, 7, 14, 21, 27]].tolist() == [0.019478, -0.134218, -0.266791, 13.439378, 50.292652, 8.090739]
    assert np.abs(split.x[:, :7]).max() < np.pi
    assert np.abs(split.x[:, 7:14]).max() < 5
    assert np.abs(split.x[:, 14:]).max() < 75
    assert np.abs(split.y).max() < 125
    assert len(np.unique(np.column_stack([split.x, split.y]), axis=0)) == 4449


def test_sarcos_test_file_is_one_movement_at_even_steps(arm):
    """From row to row every joint moves by its mean velocity times the same 0.11 s: the rows are in the order of time,
    a few steps of a recording apart, not independent draws."""
    x = (arm.test if arm.found.complete else arm.train).x
    moved, velocity = np.diff(x[:, :7], axis=0), (x[1:, 7:14] + x[:-1, 7:14]) / 2
    step = (moved * velocity).sum(1) / (velocity**2).sum(1)
    missed = ((moved - step[:, None] * velocity) ** 2).sum(1) / (moved**2).sum(1)
    assert np.median(missed) < 0.02
    assert np.quantile(step, [0.25, 0.5, 0.75]) == pytest.approx(0.11, rel=0.1)


def test_sarcos_torques_follow_their_accelerations(arm):
    """Joints 1 and 4 turn with the acceleration of their own joint, and a linear model explains most of torques 1–4."""
    x, y = arm.train.x, arm.train.y
    assert correlation(x[:, 14], y[:, 0]) > 0.5
    assert correlation(x[:, 17], y[:, 3]) > 0.5
    design = np.column_stack([np.ones(len(x)), x])
    weights, *_ = np.linalg.lstsq(design, y, rcond=None)
    left = (y - design @ weights).var(0) / y.var(0)
    assert (left[:4] < 0.2).all()
