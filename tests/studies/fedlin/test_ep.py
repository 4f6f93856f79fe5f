"""Natural parameters, damping, and the safeguards, by hand."""

from __future__ import annotations

import pytest
import torch

from fedrepro.core.params import Params
from fedrepro.studies.fedlin.linear import ep


def one(r, Q) -> Params:
    return Params(r=torch.tensor([r], dtype=torch.float64), Q=torch.tensor([[Q]], dtype=torch.float64))


def stacked(*sites: Params) -> Params:
    return Params({name: torch.stack([s[name] for s in sites]) for name in ("r", "Q")})


def test_natural_parameters_and_moments_are_each_others_inverse():
    mean = torch.tensor([1.0, -2.0], dtype=torch.float64)
    covariance = torch.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=torch.float64)
    found = ep.natural(mean, covariance)
    assert torch.allclose(found["Q"], torch.tensor([[1.0, -0.5], [-0.5, 2.0]], dtype=torch.float64) / 1.75)
    for ours, theirs in zip(ep.moments(found), (mean, covariance), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_product_of_two_normal_laws_adds_natural_parameters():
    """N(0, 1) · N(3, ½): precision 1 + 2, mean (0·1 + 3·2)/3 = 2."""
    mean, variance = ep.moments(ep.natural(*_law(0, 1)) + ep.natural(*_law(3, 0.5)))
    assert mean.item() == pytest.approx(2)
    assert variance.item() == pytest.approx(1 / 3)


def _law(mean, variance):
    return torch.tensor([float(mean)], dtype=torch.float64), torch.tensor([[float(variance)]], dtype=torch.float64)


def test_the_total_is_the_prior_times_all_sites():
    q = ep.total(one(1, 1), stacked(one(2, 3), one(4, 5)))
    assert (q["r"].item(), q["Q"].item()) == (7, 9)


def test_weighted_moments_by_hand():
    draws = torch.tensor([[0.0], [2.0], [4.0]], dtype=torch.float64)
    weights = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    mean, covariance = ep.moments(ep.tilted_from_draws(draws, weights, correction=False)[0])
    assert mean.item() == pytest.approx(1.5)
    assert covariance.item() == pytest.approx(0.5 * 1.5**2 + 0.25 * 0.5**2 + 0.25 * 2.5**2)


def test_the_precision_of_draws_is_corrected_for_their_number():
    draws = torch.tensor([[-1.0], [1.0]] * 5, dtype=torch.float64)  # S = 10, D = 1: (10 − 1 − 2)/10
    weights = torch.full((10,), 0.1, dtype=torch.float64)
    assert ep.tilted_from_draws(draws, weights, correction=True)[0]["Q"].item() == pytest.approx(0.7)
    assert ep.tilted_from_draws(draws, weights, correction=False)[0]["Q"].item() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("draws", "weights"),
    [
        ([[0.0], [1.0], [2.0]], [1 / 3] * 3),  # no more than D + 2
        ([[0.0], [1.0], [2.0], [3.0], [4.0]], [0.96, 0.01, 0.01, 0.01, 0.01]),  # as good as one
        ([[1.0]] * 8, [1 / 8] * 8),  # no spread
        ([[float("nan")]] + [[1.0]] * 7, [1 / 8] * 8),
    ],
)
def test_draws_that_do_not_suffice_for_a_covariance_are_reported(draws, weights):
    given = torch.tensor(draws, dtype=torch.float64), torch.tensor(weights, dtype=torch.float64)
    assert not ep.tilted_from_draws(*given, correction=True)[1]


def test_enough_draws_are_sound():
    draws = torch.tensor([[-1.0], [1.0]] * 5, dtype=torch.float64)
    assert ep.tilted_from_draws(draws, torch.full((10,), 0.1, dtype=torch.float64), correction=True)[1]


def test_damping_takes_that_share_of_the_change():
    sites, used = ep.damped(one(0, 1), stacked(one(0, 0), one(0, 1)), stacked(one(4, 2), one(-2, 2)), 0.5)
    assert used == 0.5
    assert sites["r"].flatten().tolist() == [2, -1]
    assert sites["Q"].flatten().tolist() == [1, 2]


def test_damping_shrinks_by_fifths_until_every_cavity_keeps_half_of_the_prior():
    """Prior 1, sites 0 and 0, changes −2 and +1 at η: q = 1 − η, cavities 1 + η and 1 − 2η ≥ ½: η ≤ ¼, so 0.5·0.8⁴."""
    sites, used = ep.damped(one(0, 1), stacked(one(0, 0), one(0, 0)), stacked(one(0, 1), one(0, -2)), 0.5)
    assert used == pytest.approx(0.5 * 0.8**4)
    assert sites["Q"].flatten().tolist() == pytest.approx([used, -2 * used])


def test_where_no_damping_helps_nothing_changes():
    """One cavity is unsound from the start, and changes of another site cannot repair it."""
    before = stacked(one(0, 5), one(0, -0.9))
    sites, used = ep.damped(one(0, 1), before, stacked(one(1, 0), one(0, 0)), 1.0)
    assert used == 0
    assert sites is before


def test_the_schedule_falls_by_one_factor():
    found = [ep.schedule(c, 0.8, 0.2, 2) for c in range(4)]
    assert found == pytest.approx([0.8, 0.4, 0.2, 0.2])
    assert ep.schedule(5, 0.1, 0.2, 2) == 0.1
