"""Intervals and tests over seeds: by hand, against scipy, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedrepro.evidence.intervals import TRANSFORMS, Sample, above, at_least, difference, p_two_sided, welch, within

SEEDS = (3, 5, 10, 30)
DRAWS = 6000


def covered(draw, mean: float, n: int) -> float:
    """Share of 95 % intervals over n seeds that cover the mean."""
    samples = map(Sample.of, draw((DRAWS, n)))
    return float(np.mean([sample.low <= mean <= sample.high for sample in samples]))


@pytest.mark.parametrize("n", SEEDS)
def test_the_interval_covers_95_percent_for_normal_numbers(n):
    rng = np.random.default_rng(n)
    assert 0.93 <= covered(lambda shape: rng.normal(size=shape), 0.0, n) <= 0.97


@pytest.mark.parametrize(
    ("name", "mean", "stated"),
    [("exponential", 1.0, (0.88, 0.88, 0.90, 0.93)), ("lognormal", math.exp(0.5), (0.84, 0.82, 0.84, 0.88))],
)
def test_the_coverage_of_skewed_numbers_is_the_one_stated(name, mean, stated):
    rng = np.random.default_rng(1)
    found = [covered(lambda shape: getattr(rng, name)(size=shape), mean, n) for n in SEEDS]
    assert found == pytest.approx(stated, abs=0.018)  # stated to a point; three Monte-Carlo errors of 0.004


def test_the_log_scale_covers_95_percent_for_lognormal_numbers():
    rng = np.random.default_rng(2)
    assert covered(lambda shape: np.log(rng.lognormal(size=shape)), 0.0, 5) == pytest.approx(0.95, abs=0.02)


def test_student_t_by_hand():
    # 1, 2, 3: mean 2, s = 1, se = 1/√3; t(0.975, 2) = 4.3027
    sample = Sample.of(np.array([1.0, 2.0, 3.0]))
    assert (sample.mean, sample.se, sample.df) == (2.0, pytest.approx(1 / math.sqrt(3)), 2)
    assert sample.high - 2 == pytest.approx(4.3027 / math.sqrt(3), abs=1e-4)


def test_one_sided_tests_are_those_of_scipy():
    x = np.random.default_rng(0).normal(0.3, 1.0, size=8)
    sample = Sample.of(x)
    for limit in (-0.2, 0.0, 0.5):
        assert sample.p_above(limit) == pytest.approx(stats.ttest_1samp(x, limit, alternative="greater").pvalue)
        assert sample.p_below(limit) == pytest.approx(stats.ttest_1samp(x, limit, alternative="less").pvalue)
    assert p_two_sided(sample, 0.1) == pytest.approx(stats.ttest_1samp(x, 0.1).pvalue)


def test_welch_is_that_of_scipy():
    x, mean, sd, runs = np.array([1.0, 2.0, 4.0, 3.0]), 1.5, 0.4, 30
    sample = Sample.of(x).against(sd / math.sqrt(runs), runs)
    expected = stats.ttest_ind_from_stats(x.mean(), x.std(ddof=1), 4, mean, sd, runs, equal_var=False)
    assert p_two_sided(sample, mean) == pytest.approx(expected.pvalue)
    assert welch(0.0, 3, 0.5, 30) == (0.5, pytest.approx(29))
    assert welch(0.5, 3, 0.0, math.inf) == (0.5, pytest.approx(3))


def test_a_printed_spread_of_zero_or_none_changes_nothing():
    sample = Sample.of(np.array([1.0, 2.0, 4.0]))
    assert sample.against(0.0, 30) is sample
    assert sample.against(math.nan, math.nan) is sample


@pytest.mark.parametrize("x", [0.1, 1 / 3, 1e-30, -7.7, 0.0])
def test_equal_numbers_are_a_point(x):
    sample = Sample.of(np.full(7, x))
    assert (sample.low, sample.high) == (x, x)
    assert (sample.p_above(x), sample.p_above(x, closed=True)) == (1.0, 0.0)
    assert (sample.p_above(x - 1), sample.p_below(x - 1)) == (0.0, 1.0)


def test_numbers_that_differ_by_rounding_are_equal():
    assert Sample.of(np.array([0.1 + 0.2, 0.3, 0.3])).se == 0
    assert difference(np.array([0.1 + 0.2]), np.array([0.3])).tolist() == [0.0]
    assert at_least(0.3, 0.1 + 0.2)
    assert not above(0.1 + 0.2, 0.3)
    assert within(0.1 + 0.2, 0.1, 0.2)


def test_one_number_has_no_interval():
    assert math.isnan(Sample.of(np.array([1.0])).low)
    assert math.isnan(Sample.of(np.array([])).mean)


def test_a_borrowed_spread():
    # x ± t(0.975, 9)·s with t = 2.2622
    sample = Sample.of(np.array([5.0])).with_spread(2.0, 9)
    assert sample.high == pytest.approx(5 + 2.2622 * 2, abs=1e-3)
    assert Sample.of(np.array([4.0, 6.0])).with_spread(2.0, 9).se == pytest.approx(2 / math.sqrt(2))


def test_sign_flips_by_hand_and_by_scipy():
    # Six positive numbers: only the signs as seen reach the sum, 1 of 64.
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    assert Sample.of(x).flip_above(0.0) == 1 / 64
    assert Sample.of(x).flip_below(0.0) == 1.0
    mixed = np.array([1.0, -0.5, 2.0, 0.3, -1.0, 0.7, 1.1])
    expected = stats.permutation_test(
        (mixed,), np.mean, permutation_type="samples", n_resamples=10**6, alternative="greater"
    )
    assert Sample.of(mixed).flip_above(0.0) == pytest.approx(expected.pvalue)
    shifted = stats.permutation_test(
        (mixed - 1.2,), np.mean, permutation_type="samples", n_resamples=10**6, alternative="less"
    )
    assert Sample.of(mixed).flip_below(1.2) == pytest.approx(shifted.pvalue)


def test_sign_flips_begin_at_six_seeds_and_are_drawn_beyond_thirteen():
    assert math.isnan(Sample.of(np.arange(5.0)).flip_above(0.0))
    x = np.random.default_rng(3).normal(0.4, 1.0, size=20)
    t = stats.ttest_1samp(x, 0.0, alternative="greater").pvalue
    assert Sample.of(x).flip_above(0.0) == pytest.approx(t, abs=0.02)
    assert Sample.of(x).flip_above(0.0) == Sample.of(x.copy()).flip_above(0.0)
    assert Sample.of(np.full(20, 9.0)).flip_above(0.0) == 1 / 10_000


def test_sign_flips_of_ties():
    assert Sample.of(np.zeros(8)).flip_above(0.0) == 1.0
    assert Sample.of(np.zeros(8)).flip_above(0.0, closed=True) == 0.0
    assert Sample.of(np.zeros(8)).flip_above(-math.inf) == 0.0


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_go_there_and_back(name):
    f = TRANSFORMS[name]
    x = np.array([0.1, 0.5, 0.9])
    assert f.back(f.forward(x)) == pytest.approx(x)
    assert f.slope(0.3) == pytest.approx((f.forward(0.3 + 1e-6) - f.forward(0.3 - 1e-6)) / 2e-6, rel=1e-4)
    assert f.holds(x)
    assert not f.holds(np.array([0.0, 0.5]))
    assert f.limit(-1.0) == -math.inf


def test_the_domain_of_a_logit_ends_at_one():
    assert TRANSFORMS["logit"].limit(1.2) == math.inf
    assert not TRANSFORMS["logit"].holds(np.array([0.5, 1.0]))
    assert TRANSFORMS["log"].holds(np.array([0.5, 1.0]))
