"""FedProx synthetic(α, β): sizes, labels and distributions by hand; the data of a device depend on that device
alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.datasets.fedprox_synthetic import fedprox_synthetic, fedprox_synthetic_size
from fedrepro.errors import UserError


def make(seed: int = 0, **parameters) -> Dataset:
    return fedprox_synthetic(Source(np.random.default_rng(seed)), **parameters)


def sizes(data: Dataset) -> np.ndarray:
    return np.bincount(data.train.client) + np.bincount(data.test.client)


def test_shapes_and_the_cut():
    data = make(clients=4, features=7, classes=3)
    assert (data.kind, data.outputs) == ("synthetic", 3)
    assert data.train.x.shape == (len(data.train), 7)
    assert data.train.y.dtype == np.int64
    assert set(np.unique(data.train.y)) <= {0, 1, 2}
    assert data.facts["weight"].shape == (4, 7, 3)
    n = sizes(data)
    assert (n >= 50).all()
    assert np.bincount(data.train.client).tolist() == [int(0.9 * m) for m in n]


def test_the_label_is_the_largest_of_w_x_plus_b():
    data = make(clients=3, features=5, classes=4)
    for split in (data.train, data.test):
        for x, y, k in zip(split.x, split.y, split.client, strict=True):
            scores = [x @ data.facts["weight"][k][:, c] + data.facts["bias"][k][c] for c in range(4)]
            assert scores[y] == max(scores)


def test_sizes_are_lognormal_plus_50():
    """Median e⁴ + 50 ≈ 104.6; the log of the rest has sd 2 (rounding down blurs the smallest)."""
    n = sizes(make(clients=2000, features=1, classes=2))
    assert 98 <= np.median(n) <= 111  # ± 2.5 standard errors of the median: 54.6 · 2 · 1.2533 / √2000 = 3.1
    upper = np.log(n[n > 104] - 50)  # the upper half of N(4, 2²): mean 4 + 2 · 0.798
    assert upper.mean() == pytest.approx(4 + 2 * 0.7979, abs=4 * 2 * 0.6028 / np.sqrt(len(upper)))


def test_inputs_spread_as_j_to_the_minus_1_2_around_the_centre():
    data = make(clients=200, features=10, classes=2)
    noise = np.concatenate([s.x - data.facts["centre"][s.client] for s in (data.train, data.test)])
    np.testing.assert_allclose(noise.var(axis=0), np.arange(1, 11) ** -1.2, rtol=0.05)


@pytest.mark.parametrize("scale", [0.0, 3.0])
def test_alpha_and_beta_are_standard_deviations_between_devices(scale):
    """The mean of W_k is N(0, α² + 1/(features·classes)), that of v_k N(0, β² + 1/features)."""
    data = make(clients=400, features=20, classes=5, alpha=scale, beta=scale, largest=2)
    for means, entries in ((data.facts["weight"].mean(axis=(1, 2)), 100), (data.facts["centre"].mean(axis=1), 20)):
        assert means.std() == pytest.approx(np.sqrt(scale**2 + 1 / entries), rel=0.12)


def test_weights_and_bias_of_a_device_share_its_u():
    data = make(clients=400, features=20, classes=5, alpha=3.0, largest=2)
    together = np.corrcoef(data.facts["weight"].mean(axis=(1, 2)), data.facts["bias"].mean(axis=1))[0, 1]
    assert together > 0.97
    assert abs(np.corrcoef(data.facts["weight"].mean(axis=(1, 2)), data.facts["centre"].mean(axis=1))[0, 1]) < 0.2


def test_iid_devices_share_one_model_and_the_origin():
    data = make(clients=3, iid=True)
    assert (data.facts["weight"] == data.facts["weight"][0]).all()
    assert (data.facts["bias"] == data.facts["bias"][0]).all()
    assert not data.facts["centre"].any()
    assert not np.array_equal(data.train.x[data.train.client == 0][:5], data.train.x[data.train.client == 1][:5])


def test_a_device_does_not_depend_on_how_many_there_are():
    few, many = make(clients=2, features=6), make(clients=5, features=6)
    for a, b in ((few.train, many.train), (few.test, many.test)):
        mine = b.client < 2
        assert np.array_equal(a.x, b.x[mine])
        assert np.array_equal(a.y, b.y[mine])


def test_the_cap_keeps_the_first_samples():
    whole, capped = make(clients=6, features=3), make(clients=6, features=3, largest=60)
    assert sizes(capped).tolist() == np.minimum(sizes(whole), 60).tolist()
    for k in range(6):
        mine = capped.train.x[capped.train.client == k]
        assert np.array_equal(mine, whole.train.x[whole.train.client == k][: len(mine)])


def test_the_planned_size_is_typical():
    clients, samples = fedprox_synthetic_size(clients=30, alpha=0.5)
    totals = [len(make(seed, features=1, classes=2).train) for seed in range(40)]
    assert clients == 30
    assert np.quantile(totals, 0.25) < samples < np.quantile(totals, 0.75)
    assert fedprox_synthetic_size(clients=7, largest=50) == (7, 7 * 45)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"alpha": -1.0}, r"fedprox_synthetic: alpha = -1\.0: must not be negative"),
        ({"beta": float("nan")}, "fedprox_synthetic: beta = nan"),
        ({"clients": 0}, "fedprox_synthetic: clients = 0: must be at least 1"),
        ({"classes": 1}, "fedprox_synthetic: classes = 1: must be at least 2"),
        ({"largest": 1}, "fedprox_synthetic: largest = 1: must be at least 2"),
    ],
)
def test_a_wrong_value_is_named(wrong, said):
    with pytest.raises(UserError, match=said):
        make(**wrong)
