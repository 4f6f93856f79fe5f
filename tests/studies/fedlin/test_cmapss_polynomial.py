"""Polynomials on the stand-in of C-MAPSS: the parts, powers of time, and each scaling by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.datasets.cmapss import cmapss
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.datasets.cmapss_polynomial import SCALINGS, cmapss_polynomial, cmapss_polynomial_size


def source(seed: int = 0) -> Source:
    return Source(np.random.default_rng(seed), mode="standin")


@pytest.fixture(scope="module")
def data():
    return cmapss_polynomial(source())


@pytest.fixture(scope="module")
def raw():
    return cmapss(source())


def column(data, split: str, sensor: int, scaling: str, engine: int) -> np.ndarray:
    own = getattr(data, split)
    return own.y[own.client == engine, data.facts["outputs"].tolist().index(f"sensor {sensor}, {scaling}")]


@pytest.mark.parametrize("engine", [0, 41, 99])
def test_the_first_part_in_time_is_for_training(data, raw, engine):
    signal = raw.train.y[raw.train.client == engine, 7 - 1]
    cut = int(np.floor(0.6 * len(signal) + 0.5))
    assert np.array_equal(column(data, "train", 7, "raw", engine), signal[:cut])
    assert np.array_equal(column(data, "test", 7, "raw", engine), signal[cut:])


def test_inputs_are_powers_of_time(data):
    assert data.train.x.shape[1] == 7
    first, last = data.train.x[data.train.client == 3], data.test.x[data.test.client == 3]
    np.testing.assert_allclose(first[0], [1, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(first[2], (2 / 299) ** np.arange(7))
    np.testing.assert_allclose(last[0], (len(first) / 299) ** np.arange(7))
    assert cmapss_polynomial(source(), degree=4).train.x.shape[1] == 5


@pytest.mark.parametrize("engine", [0, 99])
@pytest.mark.parametrize("sensor", [2, 3, 7, 8])
def test_every_scaling_by_its_definition(data, sensor, engine):
    train, test = (column(data, split, sensor, "raw", engine) for split in ("train", "test"))
    whole, low, width = np.concatenate([train, test]), train.min(), np.ptp(train)
    expected = {
        "raw": (train, test),
        "training z-score": ((train - train.mean()) / train.std(), (test - train.mean()) / train.std()),
        "training range": ((train - low) / width, (test - low) / width),
        "own range": ((train - low) / width, (test - test.min()) / np.ptp(test)),
        "whole z-score": ((train - whole.mean()) / whole.std(), (test - whole.mean()) / whole.std()),
    }
    assert set(expected) == set(SCALINGS)
    for scaling, parts in expected.items():
        for split, values in zip(("train", "test"), parts, strict=True):
            np.testing.assert_allclose(column(data, split, sensor, scaling, engine), values, atol=1e-12)


def test_a_constant_signal_is_not_divided():
    found = cmapss_polynomial(source(), sensors=[1], scalings=["training z-score", "own range"])
    for split in (found.train, found.test):
        assert np.abs(split.y).max() < 1e-12  # a mean may be off by rounding; divided by its spread it would be 1


def test_names_and_size(data):
    assert data.outputs == data.train.y.shape[1] == 20
    assert data.facts["outputs"][0] == "sensor 2, raw"
    clients, samples = cmapss_polynomial_size()
    assert clients == 100
    assert samples == pytest.approx(len(data.train), rel=0.1)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"scalings": ["own rang"]}, "scalings = 'own rang' is unknown; did you mean 'own range'"),
        ({"sensors": [22]}, "sensors = .*: must be whole numbers from 1 to 21"),
        ({"train": 1.0}, r"train = 1\.0: must lie between 0 and 1"),
        ({"train": 0.001}, r"train = 0\.001: engine 1 is left without a part"),
        ({"degree": -1}, "degree = -1: must not be negative"),
    ],
)
def test_what_it_refuses(parameters, said):
    with pytest.raises(UserError, match=said):
        cmapss_polynomial(source(), **parameters)
