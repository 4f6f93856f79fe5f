"""Clients of several fidelities: levels, designs, scaling, standardising, noise, the test set."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.datasets.multi_fidelity import FUNCTIONS, multi_fidelity, multi_fidelity_size

RAW = {"scaled": False, "standardised": False}


def make(seed: int = 0, **parameters) -> Dataset:
    return multi_fidelity(Source(np.random.default_rng(seed)), **parameters)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_client_holds_its_level_and_the_highest_is_tested(function):
    f = FUNCTIONS[function]
    data = make(function=function, test=30, **RAW)
    assert np.bincount(data.train.client).tolist() == list(f.sizes)
    assert data.facts["clients"].tolist() == list(f.names)
    assert np.array_equal(data.train.group, data.train.client)
    for level, evaluate in enumerate(f.levels):
        x = data.train.x[data.train.client == level]
        low, high = np.array(f.domain).T
        assert ((x >= low) & (x <= high)).all()
        assert np.array_equal(data.train.y[data.train.client == level], evaluate(x))
    tested = list(range(len(f.levels))) if f.peers else [len(f.levels) - 1]
    assert np.unique(data.test.client).tolist() == tested
    for level in tested:
        mine = data.test.client == level
        assert mine.sum() == 30
        assert np.array_equal(data.test.y[mine], f.levels[level](data.test.x[mine]))
    assert multi_fidelity_size(function=function, test=30) == (len(f.sizes), sum(f.sizes))


def test_several_devices_of_a_level_have_inputs_of_their_own_and_the_last_is_tested():
    one, two = (make(function="branin", devices_per_level=n, vertices=True, test=30) for n in (1, 2))
    assert two.facts["clients"].tolist() == ["low 1", "low 2", "medium 1", "medium 2", "high 1", "high 2"]
    assert two.facts["level"].tolist() == [0, 0, 1, 1, 2, 2]
    assert np.bincount(two.train.client).tolist() == [204, 204, 44, 44, 24, 24]
    assert np.array_equal(two.train.group, two.train.client // 2)
    assert set(two.test.client.tolist()) == {5}
    assert set(two.test.group.tolist()) == {2}
    inputs = [two.train.x[two.train.client == k] for k in range(6)]
    assert np.array_equal(inputs[4][:4], inputs[5][:4])  # the corners
    assert not np.isin(inputs[4][4:], inputs[5][4:]).any()
    assert np.array_equal(inputs[0], one.train.x[one.train.client == 0])  # the first is that of a single device
    assert multi_fidelity_size(function="branin", devices_per_level=2, vertices=True) == (6, 544)


def test_scaled_inputs_are_fractions_of_the_domain():
    raw, scaled = make(function="borehole", **RAW), make(function="borehole", standardised=False)
    low, high = np.array(FUNCTIONS["borehole"].domain).T
    for name in ("train", "test"):
        u = getattr(scaled, name).x
        assert 0 <= u.min() < 0.02
        assert 0.98 < u.max() <= 1
        np.testing.assert_allclose(low + u * (high - low), getattr(raw, name).x, rtol=1e-14)
        assert np.array_equal(getattr(raw, name).y, getattr(scaled, name).y)
    np.testing.assert_array_equal(raw.facts["domain"], np.array(FUNCTIONS["borehole"].domain))


def test_outputs_are_standardised_by_client_and_the_test_set_by_the_highest():
    raw, data = make(function="branin", scaled=False, standardised=False), make(function="branin", scaled=False)
    for k in range(3):
        y = raw.train.y[raw.train.client == k]
        assert data.facts["shift"][k] == pytest.approx(y.mean())
        assert data.facts["scale"][k] == pytest.approx(np.sqrt(np.sum((y - y.mean()) ** 2) / (len(y) - 1)))
        mine = data.train.y[data.train.client == k]
        assert mine.mean() == pytest.approx(0, abs=1e-12)
        assert mine.std(ddof=1) == pytest.approx(1)
    np.testing.assert_allclose(data.test.y * data.facts["scale"][2] + data.facts["shift"][2], raw.test.y, rtol=1e-12)
    assert raw.facts["shift"].tolist() == [0, 0, 0]
    assert raw.facts["scale"].tolist() == [1, 1, 1]


def test_one_sample_is_only_shifted():
    data = make(function="linear", sizes=[1, 1])
    assert data.train.y.tolist() == [0, 0]
    assert data.facts["scale"].tolist() == [1, 1]


def test_designs():
    grid = make(function="nonlinear", design="grid", sizes=[5, 3], **RAW).train
    assert grid.x[:, 0].tolist() == [0, 0.5, 1, 1.5, 2, 0, 1, 2]
    plane = make(function="currin", design="grid", sizes=[9, 4]).train
    assert sorted(map(tuple, plane.x[:9].tolist())) == [(a, b) for a in (0, 0.5, 1) for b in (0, 0.5, 1)]


def test_vertices_are_added_to_every_client_and_to_the_test_set():
    plain, data = make(function="currin", **RAW), make(function="currin", vertices=True, **RAW)
    assert np.bincount(data.train.client).tolist() == [204, 44]
    assert multi_fidelity_size(function="currin", vertices=True) == (2, 248)
    corners = {(0, 0), (0, 1), (1, 0), (1, 1)}
    for split, bare, client in ((data.train, plain.train, 0), (data.train, plain.train, 1), (data.test, plain.test, 1)):
        mine = split.x[split.client == client]
        assert set(map(tuple, mine[:4])) == corners
        assert np.array_equal(mine[4:], bare.x[bare.client == client])


def test_noise_is_on_training_targets_and_on_test_targets_if_asked():
    clean = make(function="equal_sines", sizes=[4000, 4000], test=4000, **RAW)
    noisy = make(function="equal_sines", sizes=[4000, 4000], test=4000, noise=0.2, **RAW)
    assert (noisy.train.y - clean.train.y).std() == pytest.approx(0.2, rel=0.03)
    assert np.array_equal(noisy.test.y, clean.test.y)
    as_variance = make(function="equal_sines", sizes=[4000, 4000], noise=0.2, noise_is="variance", **RAW)
    assert (as_variance.train.y - clean.train.y).std() == pytest.approx(0.2**0.5, rel=0.03)
    both = make(function="equal_sines", sizes=[4000, 4000], test=4000, noise=0.2, test_noise=True, **RAW)
    assert (both.test.y - clean.test.y).std() == pytest.approx(0.2, rel=0.03)
    assert np.array_equal(both.facts["test_mean"], clean.test.y)


def test_a_larger_design_contains_the_smaller():
    small, large = make(sizes=[10, 5], noise=0.1, **RAW), make(sizes=[20, 5], noise=0.1, **RAW)
    assert np.array_equal(small.train.x[:10], large.train.x[:10])
    assert np.array_equal(small.train.y[:10], large.train.y[:10])
    assert np.array_equal(small.train.x[10:], large.train.x[20:])
    assert np.array_equal(small.test.x, large.test.x)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"function": "curin"}, "multi_fidelity: function = 'curin' is unknown; did you mean 'currin'"),
        ({"design": "latin"}, "multi_fidelity: design = 'latin' is unknown"),
        ({"sizes": [10]}, r"multi_fidelity: sizes = \[10\]: currin has 2 levels, from low to high"),
        ({"sizes": [10, 0]}, "multi_fidelity: sizes = 0: must be at least 1"),
        ({"design": "grid", "sizes": [10, 4]}, "multi_fidelity: 10 points make no grid in 2 dimensions; 9 do"),
        ({"noise": -1.0}, r"multi_fidelity: noise = -1\.0: must not be negative"),
        ({"test": 0}, "multi_fidelity: test = 0: must be at least 1"),
    ],
)
def test_a_wrong_value_is_named(wrong, said):
    with pytest.raises(UserError, match=said):
        make(**wrong)


def test_spare_samples_are_those_of_a_larger_design_in_the_last_clients_units():
    small, large = (make(sizes=[5, n], **more) for n, more in ((4, {"spare": 6}), (10, {"standardised": False})))
    high = large.train.client == 1
    np.testing.assert_array_equal(small.facts["spare_x"], large.train.x[high][4:])
    unscaled = small.facts["spare_y"] * small.facts["scale"][1] + small.facts["shift"][1]
    np.testing.assert_allclose(unscaled, large.train.y[high][4:])
    assert "spare_x" not in large.facts


def test_spare_samples_need_a_design_that_goes_on():
    with pytest.raises(UserError, match="spare: only a uniform design"):
        make(design="grid", spare=3)
