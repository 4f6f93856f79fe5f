"""The test functions against published values and points worked by hand, and differences of thesis and code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedrepro.studies.fgpr.datasets.multi_fidelity import FUNCTIONS

PI = math.pi
# ln(x2/x1) = 10, x3/x5 = 1000, 2 x7 x3 / (ln x1² x8) = 300,000
BOREHOLE = [0.1, 0.1 * math.exp(10), 1e5, 1100, 100, 800, 1500, 1e4]
HARTMANN_MINIMUM = [0.114614, 0.555649, 0.852547]


def at(name: str, level: int, *x: float) -> float:
    return float(FUNCTIONS[name].levels[level](np.array([x]))[0])


def random_points(name: str, n: int = 50) -> np.ndarray:
    domain = np.array(FUNCTIONS[name].domain)
    return domain[:, 0] + np.random.default_rng(0).random((n, len(domain))) * np.ptp(domain, axis=1)


# --- published and worked values --------------------------------------------------------------------------------------


def test_one_dimensional_pairs():
    assert at("opposite_sines", 0, 1.0) == pytest.approx(math.sin(1))
    assert at("opposite_sines", 1, 1.0) == pytest.approx(-math.sin(1))
    assert at("equal_sines", 1, 1.0) == at("equal_sines", 0, 1.0) == pytest.approx(math.sin(1))
    assert [at("two_lines", k, 0.5) for k in (0, 1)] == [1.5, 0.5]


def test_linear_example():
    """Forrester et al. 2008: minimum −6.02074 at 0.757249; at 0.5, f = sin 2 and the low fidelity f/2 + 5."""
    assert at("linear", 1, 0.757249) == pytest.approx(-6.02074, abs=1e-5)
    assert at("linear", 1, 0.5) == pytest.approx(math.sin(2))
    assert at("linear", 0, 0.5) == pytest.approx(math.sin(2) / 2 + 5)
    assert at("linear", 0, 1.0) == pytest.approx(8 * math.sin(8) + 10)


def test_nonlinear_example():
    """At x = 0.1 the low fidelity is taken at 0, where it is 1."""
    assert at("nonlinear", 0, PI / 15) == pytest.approx(-1)
    assert at("nonlinear", 1, 0.1) == pytest.approx(0.1 * math.e - 1)
    assert at("nonlinear", 1, 1.0) == pytest.approx(math.exp(math.cos(27)) - 1)


def test_currin():
    """At (0, 1/2): 3 (1 − 1/e); at (1, 0) the limit 6352/624; maximum 13.7987 at x1 = 0.21667 for x2 → 0."""
    assert at("currin", 1, 0.0, 0.5) == pytest.approx(3 * (1 - 1 / math.e))
    assert at("currin", 1, 1.0, 0.0) == pytest.approx(6352 / 624)
    assert at("currin", 1, 0.21667, 1e-3) == pytest.approx(13.7987, abs=5e-5)
    corners = [(0.35, 0.55), (0.35, 0.45), (0.25, 0.55), (0.25, 0.45)]
    assert at("currin", 0, 0.3, 0.5) == pytest.approx(sum(at("currin", 1, *c) for c in corners) / 4)
    edge = [(0.35, 0.05), (0.35, 0.0), (0.25, 0.05), (0.25, 0.0)]
    assert at("currin", 0, 0.3, 0.0) == pytest.approx(sum(at("currin", 1, *c) for c in edge) / 4)


def test_park():
    """At (1, 1, 1, 1): (√3 − 1)/2 + 4 exp(1 + sin 1) = 25.589…"""
    top = (math.sqrt(3) - 1) / 2 + 4 * math.exp(1 + math.sin(1))
    assert at("park", 1, 1, 1, 1, 1) == pytest.approx(top)
    assert top == pytest.approx(25.589, abs=1e-3)
    assert at("park", 0, 1, 1, 1, 1) == pytest.approx((1 + math.sin(1) / 10) * top - 2 + 1 + 1 + 0.5)
    # as printed, with the quotient
    c = (0.3 + 0.6**2) * 0.8 / 0.5**2
    printed = 0.25 * (math.sqrt(1 + c) - 1) + (0.5 + 2.4) * math.exp(1 + math.sin(0.6))
    assert at("park", 1, 0.5, 0.3, 0.6, 0.8) == pytest.approx(printed)
    assert at("park", 1, 0, 0.25, 0, 1) == pytest.approx(0.25 + 3 * math.e)


@pytest.mark.parametrize("x", [(PI, 2.275), (-PI, 12.275), (3 * PI, 2.475)])
def test_branin_has_its_three_minima(x):
    assert at("branin", 2, *x) == pytest.approx(0.397887, abs=1e-6)
    assert at("branin", 2, *x) == pytest.approx(5 / (4 * PI), rel=1e-9)


def test_branins_lower_levels():
    """The medium level where its root is that of the minimum, (π + 2, 4.275); the low level where it is evaluated
    there."""
    medium = 10 * math.sqrt(5 / (4 * PI)) + 2 * (PI + 1.5) - 3 * (3 * 4.275 - 1) - 1
    assert at("branin", 1, PI + 2, 4.275) == pytest.approx(medium)
    x1, x2 = (PI + 2) / 1.2 - 2, 4.275 / 1.2 - 2
    assert at("branin", 0, x1, x2) == pytest.approx(medium - 3 * x2 + 1)


def test_hartmann():
    """Published minimum −3.86278 of its negative (the literature minimises)."""
    assert at("hartmann", 2, *HARTMANN_MINIMUM) == pytest.approx(3.86278, abs=1e-5)
    # at the second row of P its own term is α_2 exactly; all four by hand
    x = (0.4699, 0.4387, 0.7470)
    rows = [
        (3 * 0.1010**2 + 10 * 0.3217**2 + 30 * 0.4797**2, 1.0, 0.01),
        (0.0, 1.2, -0.01),
        (3 * 0.3608**2 + 10 * 0.4345**2 + 30 * 0.1923**2, 3.0, -0.1),
        (0.1 * 0.4318**2 + 10 * 0.1356**2 + 35 * 0.1358**2, 3.2, 0.1),
    ]
    for level, steps in ((2, 0), (1, 1), (0, 2)):
        by_hand = sum((alpha + steps * delta) * math.exp(-distance) for distance, alpha, delta in rows)
        assert at("hartmann", level, *x) == pytest.approx(by_hand, rel=1e-12)


def test_borehole():
    high = 2 * PI * 1e5 * 300 / (10 * (1 + 300_000 + 1000))
    assert at("borehole", 1, *BOREHOLE) == pytest.approx(high)
    assert at("borehole", 0, *BOREHOLE) == pytest.approx(5 * PI * 1e5 * 300 / (10 * (1.5 + 300_000 + 1000)))


# --- where they differ ------------------------------------------------------------------------------------------------


def test_the_levels_of_hartmann_differ_by_equal_steps():
    x = random_points("hartmann")
    low, medium, high = FUNCTIONS["hartmann"].levels
    assert np.abs(low(x) - high(x)).max() > 0.01
    np.testing.assert_allclose(low(x) - high(x), 2 * (medium(x) - high(x)), atol=1e-12)


# --- all functions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_is_finite_on_its_domain_and_corners(name):
    f = FUNCTIONS[name]
    assert len(f.sizes) == len(f.levels) == len(f.names)
    corners = np.array(np.meshgrid(*f.domain)).reshape(len(f.domain), -1).T
    for function in f.levels:
        for x in (corners, random_points(name)):
            y = function(x)
            assert y.shape == (len(x),)
            assert np.isfinite(y).all()


def test_the_thesis_sizes():
    """Table 4.2, there from high to low."""
    sizes = {name: FUNCTIONS[name].sizes for name in ("currin", "park", "branin", "hartmann", "borehole")}
    assert sizes == {
        "currin": (200, 40),
        "park": (300, 50),
        "branin": (200, 40, 20),
        "hartmann": (200, 100, 50),
        "borehole": (200, 50),
    }
    assert FUNCTIONS["linear"].sizes == FUNCTIONS["nonlinear"].sizes == (100, 20)
