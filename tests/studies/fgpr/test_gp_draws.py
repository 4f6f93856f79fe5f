"""Draws from a GP: the kernel by hand, the covariance of many draws, sizes, fixed and drawn parameters."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.datasets.gp_draws import correlation, gp_draws, gp_draws_size, sample


def make(seed: int = 0, **parameters) -> Dataset:
    return gp_draws(Source(np.random.default_rng(seed)), **parameters)


def test_kernels_by_hand():
    """r² = (0.3/0.5)² + (0.4/0.25)² = 2.92; the third column does not count."""
    x = np.array([[0.0, 0.0, 0.0], [0.3, 0.4, 0.9]])
    scales = np.array([0.5, 0.25, math.inf])
    np.testing.assert_allclose(correlation("rbf", x, scales), [[1, math.exp(-1.46)], [math.exp(-1.46), 1]], rtol=1e-14)
    a = math.sqrt(3 * 2.92)
    value = (1 + a) * math.exp(-a)
    np.testing.assert_allclose(correlation("matern32", x, scales), [[1, value], [value, 1]], rtol=1e-14)


@pytest.mark.parametrize("kernel", ["rbf", "matern32"])
def test_a_draw_has_the_kernel_as_its_covariance(kernel):
    """L z for the unit vectors z gives L itself, and L Lᵀ = k."""
    x = np.random.default_rng(1).random((6, 2))
    scales = np.array([0.3, 0.7])
    root = np.stack([sample(kernel, x, z, scales)[0] for z in np.eye(6)], axis=1)
    np.testing.assert_allclose(root @ root.T, correlation(kernel, x, scales), atol=1e-9)


def test_targets_are_theta1_f_plus_theta2_noise():
    """x far apart for l = 1e-6: y is white with variance θ1² + θ2²; each part alone if the other is 0."""
    common = {"total": 4000, "dimension": 2, "lengthscale": 1e-6}
    both = make(signal=3.0, noise=4.0, **common).train.y
    signal, noise = make(signal=3.0, noise=0.0, **common).train.y, make(signal=0.0, noise=4.0, **common).train.y
    np.testing.assert_allclose(both, signal + noise, rtol=1e-12)
    for y, sd in ((both, 5), (signal, 3), (noise, 4)):
        assert y.std() == pytest.approx(sd, rel=0.05)
    assert abs(np.corrcoef(signal, noise)[0, 1]) < 0.07


def test_clients_have_functions_of_their_own():
    """With l so long that f is constant, the sd of the clients' constants is θ1."""
    flat = {"clients": 100, "total": 300, "dimension": 1, "lengthscale": 1e4, "signal": 2.0, "noise": 0.0}
    own = make(**flat).train
    heights = np.array([own.y[own.client == k].mean() for k in range(100)])
    assert heights.std() == pytest.approx(2, rel=0.3)
    assert all(np.ptp(own.y[own.client == k]) < 0.01 for k in range(100))


def test_parameters_that_are_not_given_are_drawn_within_the_stated_ranges():
    facts = [make(seed, clients=1, total=3).facts for seed in range(300)]
    signal, noise, d = (np.array([float(f[name]) for f in facts]) for name in ("signal", "noise", "dimension"))
    assert 0.1 <= signal.min() < 0.4
    assert 9.7 < signal.max() <= 10
    assert 0.01 <= noise.min() < 0.04
    assert 0.97 < noise.max() <= 1
    assert set(d) == set(range(1, 11))
    for f in facts:
        own, rest = np.split(f["lengthscale"], [int(f["dimension"])])
        assert ((own >= 0.01) & (own <= 1)).all()
        assert len(np.unique(own)) == len(own)
        assert np.isinf(rest).all()


def test_fixing_one_parameter_leaves_the_others():
    free, fixed = make(seed=5).facts, make(seed=5, noise=0.3).facts
    assert float(fixed["noise"]) == 0.3
    assert float(free["signal"]) == float(fixed["signal"])
    assert np.array_equal(free["lengthscale"], fixed["lengthscale"])
    assert make(dimension=2, lengthscale=0.2).facts["lengthscale"].tolist() == [0.2, 0.2]


def test_all_seeds_have_one_width_and_empty_columns_are_zero():
    for seed in range(5):
        data = make(seed, clients=2, total=10)
        d = int(data.facts["dimension"])
        assert data.train.x.shape == (10, 10)
        assert not data.train.x[:, d:].any()
        assert ((data.train.x[:, :d] > 0) & (data.train.x[:, :d] < 1)).all()
    assert make(dimension=3).train.x.shape[1] == 3


@pytest.mark.parametrize(("clients", "total", "each"), [(20, 5000, 250), (50, 2000, 40), (100, 800, 8)])
def test_balanced_sizes_are_n_over_k(clients, total, each):
    data = make(clients=clients, total=total)
    assert np.bincount(data.train.client).tolist() == [each] * clients
    assert gp_draws_size(clients=clients, total=total, kernel="rbf") == (clients, total)


def test_unbalanced_sizes_go_from_smallest_to_largest_evenly_in_their_logarithm():
    data = make(clients=3, balanced=False, smallest=10, largest=1000)
    assert sorted(np.bincount(data.train.client)) == [10, 100, 1000]
    assert gp_draws_size(clients=3, balanced=False, smallest=10, largest=1000) == (3, 1110)
    assert gp_draws_size(clients=4, balanced=False) == (4, 11_110)
    orders = {tuple(np.bincount(make(s, clients=3, balanced=False, largest=40).train.client)) for s in range(12)}
    assert len(orders) > 1
    assert gp_draws_size(clients=3, total=8) == (3, 8)


def test_a_client_keeps_its_data_when_others_join():
    few, many = make(clients=2, total=20), make(clients=5, total=50)
    mine = many.train.client < 2
    assert np.array_equal(few.train.x, many.train.x[mine])
    np.testing.assert_allclose(few.train.y, many.train.y[mine], rtol=1e-12)


def test_equal_inputs_have_equal_values_up_to_the_jitter():
    f, jitter = sample("rbf", np.full((400, 1), 0.5), np.random.default_rng(0).standard_normal(400), np.ones(1))
    assert jitter == 1e-10
    assert 0 < np.ptp(f) < 1e-4  # a dozen times √1e-10


def test_jitter_grows_until_the_matrix_factors(monkeypatch):
    """An eigenvalue of −5e-8, as left by rounding, needs 1e-7."""
    monkeypatch.setitem(sample.__globals__, "correlation", lambda *_: np.array([[1, 1 + 5e-8], [1 + 5e-8, 1]]))
    f, jitter = sample("rbf", np.zeros((2, 1)), np.ones(2), np.ones(1))
    assert jitter == pytest.approx(1e-7)
    assert np.isfinite(f).all()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kernel": "matern"}, "gp_draws: kernel = 'matern' is unknown; did you mean 'matern32'"),
        ({"signal": -1.0}, r"gp_draws: signal = -1\.0: must not be negative"),
        ({"clients": 0}, "gp_draws: clients = 0: must be at least 1"),
        ({"clients": 9, "total": 8}, "gp_draws: total = 8: 9 clients need a sample each"),
        ({"balanced": False, "largest": 9}, "gp_draws: largest = 9: must not be below smallest = 10"),
        ({"dimension": 1, "lengthscale": 0.0}, r"gp_draws: lengthscale = 0\.0: must be above 0"),
        ({"clients": 1, "total": 12_001}, "gp_draws: 12001 points are drawn together; at most 12000"),
        ({"balanced": False, "largest": 20_000}, "gp_draws: 20000 points are drawn together"),
    ],
)
def test_a_wrong_value_is_named(wrong, said):
    with pytest.raises(UserError, match=said):
        make(**wrong)


def test_several_processes_take_turns_and_have_no_common_truth():
    """White data (l = 1e-6) of even clients have the variance θ1² + θ2² of the first process, the others another."""
    common = {"clients": 4, "total": 8000, "dimension": 2, "lengthscale": 1e-6, "signal": 3.0, "noise": 4.0}
    one, two = make(**common), make(**common, processes=2)
    assert {"signal", "noise"} <= set(one.facts)
    assert not {"signal", "noise"} & set(two.facts)
    spread = [two.train.y[two.train.client == k].std() for k in range(4)]
    assert spread[0] == pytest.approx(5, rel=0.05)
    assert spread[2] == pytest.approx(5, rel=0.05)
    assert spread[1] == pytest.approx(spread[3], rel=0.08)
    assert abs(spread[1] - 5) > 0.5
    assert np.array_equal(one.train.y[one.train.client == 2], two.train.y[two.train.client == 2])
