"""The DFL line by hand, and the file of a data set."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data import dataset as files
from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.datasets.dfl_line import dfl_line, dfl_line_size
from fedrepro.errors import UserError


def line(seed: int = 0, **parameters) -> Dataset:
    return dfl_line(Source(np.random.default_rng(seed)), **parameters)


# --- dfl_line ---------------------------------------------------------------------------------------------------------


def test_shapes_and_owners():
    data = line(servers=2, clients=3, samples=4)
    assert data.kind == "synthetic"
    assert data.outputs == 1
    assert data.train.x.shape == (24, 1)
    assert data.train.y.shape == (24,)
    assert data.train.client.tolist() == [k for k in range(6) for _ in range(4)]
    assert data.train.group.tolist() == [0] * 12 + [1] * 12
    assert data.test is None
    assert dfl_line_size(servers=2, clients=3, samples=4, noise=0.1) == (6, 24)


def test_without_noise_the_points_lie_on_the_line():
    data = line(noise=0.0, slope=-3.0, intercept=0.5)
    np.testing.assert_allclose(data.train.y, -3 * data.train.x[:, 0] + 0.5, rtol=1e-14)
    assert data.facts["w"].tolist() == [-3, 0.5]


def test_noise_has_the_deviation_it_is_given():
    data = line(servers=20, noise=0.5)
    residual = data.train.y - 5 * data.train.x[:, 0] - 2
    assert residual.mean() == pytest.approx(0, abs=4 * 0.5 / np.sqrt(len(residual)))
    assert residual.std() == pytest.approx(0.5, rel=0.03)


@pytest.mark.parametrize("h", [0.0, 0.5, 0.9])
def test_heterogeneity_gives_each_server_a_window_of_its_own(h):
    """Server i of 5 draws from [i·h/4, i·h/4 + 1 − h]."""
    data = line(servers=5, clients=5, samples=100, heterogeneity=h)
    for i in range(5):
        x = data.train.x[data.train.group == i, 0]
        low, high = i * h / 4, i * h / 4 + 1 - h
        assert low <= x.min() < low + 0.05 * (1 - h)
        assert high - 0.05 * (1 - h) < x.max() <= high


def test_a_single_server_draws_from_the_first_window():
    data = line(servers=1, heterogeneity=0.5)
    assert data.train.x.max() <= 0.5


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"heterogeneity": 1.0}, r"dfl_line: heterogeneity = 1\.0"),
        ({"heterogeneity": -0.1}, r"dfl_line: heterogeneity = -0\.1"),
        ({"noise": -1.0}, r"dfl_line: noise = -1\.0"),
    ],
)
def test_a_wrong_value_is_named(wrong, said):
    with pytest.raises(UserError, match=said):
        line(**wrong)


# --- the file ---------------------------------------------------------------------------------------------------------


def test_what_is_saved_comes_back(tmp_path):
    x = np.arange(12.0).reshape(4, 3)
    split = Split(x, np.array([0, 1, 1, 0]), client=np.array([0, 0, 1, 1]))
    data = {
        0: Dataset("real", train=split, test=Split(x[:2], np.array([1, 1])), outputs=2),
        -1: Dataset("standin", train=Split(x, x[:, 0]), validation=split, facts={"w": np.array([1.0, 2.0])}),
    }
    files.save(tmp_path / "data.npz", data)
    loaded = files.load(tmp_path / "data.npz")
    assert set(loaded) == {0, -1}
    for seed, expected in data.items():
        found = loaded[seed]
        assert (found.kind, found.outputs) == (expected.kind, expected.outputs)
        assert {k: v.tolist() for k, v in found.facts.items()} == {k: v.tolist() for k, v in expected.facts.items()}
        for name in files.SPLITS:
            mine, theirs = getattr(found, name), getattr(expected, name)
            assert (mine is None) == (theirs is None)
            for column in ("x", "y", "client", "group") if theirs is not None else ():
                a, b = getattr(mine, column), getattr(theirs, column)
                assert (a is None) == (b is None)
                assert b is None or (a.dtype == b.dtype and np.array_equal(a, b))


def test_a_file_with_code_in_it_is_refused(tmp_path):
    np.savez(tmp_path / "data.npz", **{"0/kind": np.array([print], dtype=object)})
    with pytest.raises(ValueError, match="allow_pickle"):
        files.load(tmp_path / "data.npz")


def test_the_same_data_gives_the_same_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        files.save(tmp_path / name, {0: line(seed=3)})
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_columns_must_agree_and_kinds_be_known():
    x = np.zeros((3, 1))
    for wrong in ({"y": np.zeros(2)}, {"y": np.zeros(3), "client": np.zeros(4)}, {"y": np.zeros(3), "group": x[:1]}):
        with pytest.raises(ValueError, match="rows, y has"):
            Split(x, **wrong)
    with pytest.raises(ValueError, match="kind 'fake' is none of"):
        Dataset("fake", train=Split(x, np.zeros(3)))
