"""HM1 and HM2: the stated cases, the distribution of the parameters, the two readings of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.datasets.hm1 import covariance_root, hm1, hm1_size
from fedrepro.studies.fedlin.datasets.hm2 import hm2, hm2_size


def first(seed: int = 0, **parameters) -> Dataset:
    return hm1(Source(np.random.default_rng(seed)), **parameters)


def second(seed: int = 0, **parameters) -> Dataset:
    return hm2(Source(np.random.default_rng(seed)), **parameters)


def residuals(data: Dataset, split: str) -> np.ndarray:
    s = getattr(data, split)
    return s.y - np.sum(s.x * data.facts["theta"][s.client], axis=1)


# --- HM1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "d", "counts", "sigma", "scored"),
    [
        ("I", 5, [20, 200], 0.05**0.5, 1),
        ("II", 8, [40] * 30 + [275] * 70, 0.1**0.5, 30),
        ("III", 8, [20] * 100, 0.1**0.5, 100),
        ("IV", 8, [200] * 100, 0.1**0.5, 100),
    ],
)
def test_the_cases_are_as_stated(case, d, counts, sigma, scored):
    data = first(case=case, test=10)
    assert data.train.x.shape == (sum(counts), d)
    assert np.bincount(data.train.client).tolist() == counts
    assert np.bincount(data.test.client).tolist() == [10] * len(counts)
    assert float(data.facts["sigma"]) == pytest.approx(sigma, rel=1e-14)
    assert data.facts["theta"].shape == (len(counts), d)
    assert data.facts["scored"].tolist() == [True] * scored + [False] * (len(counts) - scored)
    for split in (data.train, data.test):
        assert split.group.tolist() == [0 if k < scored else 1 for k in split.client]
    assert hm1_size(case=case, test=10) == (len(counts), sum(counts))


def test_the_released_script_has_a_setting_of_its_own():
    data = first(case="script", test=1)
    counts = np.bincount(data.train.client)
    assert len(counts) == 100
    assert (counts.min(), counts.max()) == (190, 200)
    assert data.train.x.shape[1] == 5
    assert data.facts["scored"].sum() == 1
    assert hm1_size(case="script") == (100, 19_500)


def test_targets_are_linear_with_the_noise_asked_for():
    data = first(case="II")
    for split in ("train", "test"):
        noise = residuals(data, split)
        assert noise.std() == pytest.approx(0.1**0.5, rel=0.02)
        assert np.abs(np.corrcoef(noise, getattr(data, split).x[:, 0])[0, 1]) < 0.03
    np.testing.assert_allclose(data.facts["test_mean"], data.test.y - residuals(data, "test"), atol=1e-12)
    assert data.train.x.std() == pytest.approx(1, rel=0.02)
    as_sd = first(case="II", noise_is="sd")
    assert float(as_sd.facts["sigma"]) == 0.1
    assert np.array_equal(as_sd.facts["test_mean"], data.facts["test_mean"])
    np.testing.assert_allclose(residuals(as_sd, "train"), residuals(data, "train") * 0.1 / 0.1**0.5, atol=1e-12)
    assert np.abs(residuals(first(noise=0.0), "train")).max() < 1e-12


def test_devices_of_case_1_have_correlation_0_7_and_components_none():
    thetas = np.stack([first(seed, test=1).facts["theta"] for seed in range(1500)])  # [runs, K, d]
    across = np.mean(thetas[:, 0] * thetas[:, 1], axis=0)  # E θ_1i θ_2i
    np.testing.assert_allclose(across, 0.7, atol=0.13)  # 4 standard errors: 4 √(1 + 0.49) / √1500
    assert abs(np.mean(thetas[:, 0, 0] * thetas[:, 0, 1])) < 0.11
    assert abs(np.mean(thetas[:, 0, 0] * thetas[:, 1, 1])) < 0.11
    np.testing.assert_allclose(np.mean(thetas**2, axis=(0, 2)), 1, atol=0.07)


def test_omegas_have_the_eigenvalues_of_their_recipe():
    rng = np.random.default_rng(0)
    root = covariance_root("eigenvalues", 60, 0, rng)
    eigenvalues = np.linalg.eigvalsh(root @ root.T)
    assert 1 <= eigenvalues.min() < 2
    assert 9 < eigenvalues.max() <= 10
    assert eigenvalues.mean() == pytest.approx(5.5, abs=4 * 2.6 / np.sqrt(60))
    gram = covariance_root("gram", 60, 0, rng)
    assert -1 <= gram.min() < -0.99
    assert 0.99 < gram.max() <= 1
    assert np.mean(np.diag(gram @ gram.T)) == pytest.approx(60 / 3, rel=0.05)
    low = covariance_root("low_rank", 60, 4, rng)
    omega = low @ low.T
    assert np.linalg.matrix_rank(omega) == 4
    assert np.trace(omega) / 60 == pytest.approx(5.5, rel=1e-12)


@pytest.mark.parametrize("omega", ["eigenvalues", "gram", "low_rank"])
def test_parameters_follow_the_omega_that_is_named(omega):
    """θᵀ Ω⁺ θ summed over d components is χ² with d · rank degrees of freedom."""
    data = first(case="III", omega=omega, test=1)
    assert data.facts["omega"].shape == (100, 100)
    inverse = np.linalg.pinv(data.facts["omega"], rcond=1e-9)
    theta = data.facts["theta"]
    degrees = 8 * (5 if omega == "low_rank" else 100)
    assert np.trace(theta.T @ inverse @ theta) == pytest.approx(degrees, abs=4 * np.sqrt(2 * degrees))


def test_fewer_devices_keep_the_shares_and_their_inputs():
    data, whole = first(case="II", clients=10, test=3), first(case="II", test=3)
    assert np.bincount(data.train.client).tolist() == [40] * 3 + [275] * 7
    assert hm1_size(case="II", clients=10) == (10, 3 * 40 + 7 * 275)
    assert np.array_equal(data.test.x[:9], whole.test.x[:9])
    scarce, ample = first(case="III", test=3), first(case="IV", test=3)
    assert np.array_equal(scarce.test.x, ample.test.x)
    assert np.array_equal(scarce.test.y, ample.test.y)
    assert np.array_equal(scarce.train.y[:20], ample.train.y[:20])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"case": "ii"}, "hm1: case = 'ii' is unknown"),
        ({"case": "scripts"}, "hm1: case = 'scripts' is unknown; did you mean 'script'"),
        ({"omega": "lowrank"}, "hm1: omega = 'lowrank' is unknown; did you mean 'low_rank'"),
        ({"noise_is": "var"}, "hm1: noise_is = 'var' is unknown; did you mean 'variance'"),
        ({"noise": -0.1}, r"hm1: noise = -0\.1: must not be negative"),
        ({"clients": 3}, "hm1: omega 'pair' is for 2 devices, not 3"),
        ({"case": "III", "omega": "low_rank", "rank": 101}, "hm1: rank = 101: Ω of 100 devices"),
        ({"test": 0}, "hm1: test = 0: must be at least 1"),
    ],
)
def test_hm1_names_a_wrong_value(wrong, said):
    with pytest.raises(UserError, match=said):
        first(**wrong)


# --- HM2 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "theta", "counts", "test"),
    [
        ("I", [3, 1.5, 0, 0, 2, 0, 0, 0], [100] * 10, 1000),
        ("II", [3, 1.5, 0, 0, 2, 0, 0, 0], [20] * 2 + [200] * 8, 1000),
        ("III", [3] * 10 + [0] * 10 + [3] * 10, [40] * 20, 400),
    ],
)
def test_variable_selection_cases_are_as_stated(case, theta, counts, test):
    data = second(case=case)
    assert data.facts["theta"].tolist() == [theta] * len(counts)
    assert data.facts["active"].tolist() == [value != 0 for value in theta]
    assert np.bincount(data.train.client).tolist() == counts
    assert np.bincount(data.test.client).tolist() == [test] * len(counts)
    assert residuals(data, "test").std() == pytest.approx(0.05, rel=0.03)
    np.testing.assert_allclose(data.facts["test_mean"], data.test.x @ np.array(theta), atol=1e-12)
    assert hm2_size(case=case, noise=0.1) == (len(counts), sum(counts))


def test_the_noise_may_be_a_variance():
    assert float(second(noise_is="variance").facts["sigma"]) == pytest.approx(0.05**0.5, rel=1e-14)


def test_the_hierarchy_draws_every_device_its_own_parameters():
    data = second(case="hierarchy", clients=4000, test=1)
    theta = data.facts["theta"]
    assert data.facts["mean"].tolist() == [1, 3, 0.5, 2]
    assert data.facts["variance"].tolist() == [1.17, 2.35, 2.52, 0.67]
    np.testing.assert_allclose(theta.mean(axis=0), [1, 3, 0.5, 2], atol=4 * np.sqrt(2.52 / 4000))
    np.testing.assert_allclose(theta.var(axis=0), [1.17, 2.35, 2.52, 0.67], rtol=4 * np.sqrt(2 / 4000))
    assert data.facts["active"].all()
    assert np.abs(residuals(data, "train")).max() < 0.05 * 6
    whole = second(case="hierarchy", test=1)
    assert np.bincount(whole.train.client).tolist() == [100] * 100
    assert np.array_equal(whole.facts["theta"], theta[:100])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"case": "hierachy"}, "hm2: case = 'hierachy' is unknown; did you mean 'hierarchy'"),
        ({"noise_is": "std"}, "hm2: noise_is = 'std' is unknown"),
        ({"clients": 0}, "hm2: clients = 0: must be at least 1"),
    ],
)
def test_hm2_names_a_wrong_value(wrong, said):
    with pytest.raises(UserError, match=said):
        second(**wrong)
    if "noise_is" not in wrong:
        with pytest.raises(UserError, match=said):
            hm2_size(**wrong)
