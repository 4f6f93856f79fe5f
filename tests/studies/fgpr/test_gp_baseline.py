"""The baselines of Table 4.2 as methods without rounds: their data, their records, several repeats at once."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Federation, Holdings, Samples
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.algorithms.gp_baseline import FITS, GPBaseline
from fedrepro.studies.fgpr.gp.device_errors import scores
from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP
from tests.builders import make_plan, make_problem, make_task, run

SHORT = {"evaluations": 25, "steps": 2, "starts": 1}


def federation(seed=0, sizes=(20, 8), tested=(0, 30), spare=0):
    """Levels sin and 1.5 sin + x on [0, 1], the last of them tested."""
    rng = np.random.default_rng(seed)

    def split(numbers):
        x = rng.random((sum(numbers), 1))
        level = np.repeat(np.arange(len(numbers)), numbers)
        y = np.where(level == len(numbers) - 1, 1.5 * np.sin(5 * x[:, 0]) + x[:, 0], np.sin(5 * x[:, 0]))
        samples = Samples(torch.from_numpy(x), torch.from_numpy(y))
        return Holdings(samples, np.arange(len(y)), np.cumsum([0, *numbers]))

    train, test = split(sizes), split(tested)
    extra = rng.random((spare, 1))
    facts = {"spare_x": extra, "spare_y": 1.5 * np.sin(5 * extra[:, 0]) + extra[:, 0]} if spare else {}
    return Federation(train, test=test, facts=facts)


def trained(algorithm, *federations):
    by_seed = dict(enumerate(federations or [federation()]))
    return run(make_task("gaussian_process", features=1), by_seed, make_plan(2), algorithm)


@pytest.mark.parametrize("fit", [fit for fit in FITS if fit != "limit"])
def test_every_fit_beats_the_trivial_predictor_and_records_its_calibration(fit):
    found = trained(GPBaseline(fit=fit, **SHORT))
    (rmse,), (trivial,) = found.values("a_rmse", split="test"), found.values("a_rmse_trivial", split="test")
    assert rmse < 0.5 * trivial
    for metric in ("nlpd", "crps", "coverage_50", "coverage_95", "evaluations", "failed", "jittered"):
        assert np.isfinite(found.values(metric)).all()
        assert len(found.values(metric)) == 1
    assert set(found.frame["round"]) == {2}  # its result is recorded at the last round
    assert not found.frame["split"].eq("train").any()


def test_separate_does_not_see_the_other_clients():
    sole = federation(sizes=(20, 8))
    other = Federation(sole.train, test=sole.test)
    other.train.samples.y[:20] += 5.0
    assert trained(GPBaseline(**SHORT), federation()).values("a_rmse") == pytest.approx(
        trained(GPBaseline(**SHORT), other).values("a_rmse"), rel=1e-12
    )


def test_what_it_records_are_the_scores_of_its_law():
    own = federation()
    found, batch, test = trained(GPBaseline(ard=True, **SHORT), own), own.train.full_batch(1), own.test.full_batch(1)
    model = SharedGP(ard=True, starts=1, evaluations=25).fit([(batch.x, batch.y)], np.random.default_rng(0))
    expected = scores(*model.predict(test.x), test.y)
    for metric in ("nlpd", "crps", "coverage_80"):
        assert found.values(metric).item() == pytest.approx(expected[metric].item(), rel=1e-9)
    assert found.values("a_rmse").item() == pytest.approx(expected["rmse"].item(), rel=1e-9)


def test_held_takes_the_first_samples_and_then_the_spare_ones():
    algorithm = GPBaseline(held=11)
    ((x, y),) = algorithm._levels(_problem(federation(spare=5)))
    whole = federation(spare=5)
    np.testing.assert_array_equal(x[:8], whole.train.full_batch(1).x)
    np.testing.assert_array_equal(x[8:, 0], whole.facts["spare_x"][:3, 0])
    assert len(y) == 11
    low, high = GPBaseline(fit="ar", held=3)._levels(_problem(federation()))
    assert (len(low[1]), len(high[1])) == (20, 3)


def test_the_limit_uses_all_samples_of_the_function():
    ((_, y),) = GPBaseline(fit="limit")._levels(_problem(federation(spare=30)))
    assert len(y) == 38
    errors = [
        trained(GPBaseline(fit=fit, **SHORT), federation(sizes=(20, 5), spare=30)).values("a_rmse")
        for fit in ("limit", "separate")
    ]
    assert errors[0] < 0.5 * errors[1]


def test_deep_fits_repeats_together_as_it_would_alone():
    deep = GPBaseline(fit="deep", inducing=12, **SHORT)
    both = trained(deep, federation(0), federation(1)).values("a_rmse")
    assert both[0] == pytest.approx(trained(deep, federation(0)).values("a_rmse").item(), rel=1e-3)
    assert both[1] != both[0]
    other_size = trained(deep, federation(0), federation(1, sizes=(15, 7))).values("a_rmse")
    assert other_size[0] == pytest.approx(both[0], rel=1e-3)


def test_it_draws_a_curve():
    found = trained(GPBaseline(curve=7, **SHORT))
    np.testing.assert_allclose(found.values("curve_x"), np.linspace(0, 1, 7), atol=1e-7)
    assert len(found.values("curve_mean")) == len(found.values("curve_sd")) == 7
    truth = 1.5 * np.sin(5 * np.linspace(0, 1, 7)) + np.linspace(0, 1, 7)
    assert np.abs(found.values("curve_mean") - truth).max() < 0.5


def test_it_says_what_it_needs():
    with pytest.raises(UserError, match="no spare samples"):
        trained(GPBaseline(fit="limit"))
    with pytest.raises(UserError, match="no spare samples"):
        trained(GPBaseline(held=9))
    with pytest.raises(UserError, match="test set of the last client"):
        trained(GPBaseline(), federation(tested=(3, 3)))
    with pytest.raises(UserError, match="fit = 'magic': one of"):
        GPBaseline(fit="magic")
    with pytest.raises(UserError, match="inputs have 2 dimensions"):
        GPBaseline(curve=3)._grid(torch.zeros(1, 2))


def _problem(own):
    return make_problem(make_task("gaussian_process", features=1), own, make_plan(2))
