"""Centralised and separate fits: small cases by hand, and the results of scikit-learn in its own form."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Federation
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.algorithms.linear_reference import LinearReference
from fedrepro.studies.fedlin.linear.devices import scale_of
from tests.builders import federate, make_plan, make_task, run


def fit(federation, algorithm, model="linear", **hyper):
    task = make_task(model, features=federation.train.samples.x.shape[1], **hyper)
    return run(task, federation, make_plan(2), algorithm)


def simulated(sizes=(30, 20), seed=0, facts=None):
    rng = np.random.default_rng(seed)
    pairs = []
    for n in sizes:
        x = rng.normal(size=(n, 3)) * [1.0, 5.0, 1.0] + [0.0, 10.0, 0.0]
        x[:, 2] = x[:, 2] > 0
        pairs.append((x, 3 + 2 * x[:, 0] + 0.5 * rng.normal(size=n)))
    plain = federate(*pairs)
    facts = {"numeric": np.array([True, True, False])} if facts is None else facts
    return Federation(plain.train, facts=facts)


def test_separate_is_least_squares_on_every_device():
    federation = simulated()
    (r,) = fit(federation, LinearReference(fit="separate"), bias=False).replicates
    for k in (0, 1):
        x, y, *_ = federation.train.full_batch(k)
        torch.testing.assert_close(r.algorithm.model(r.state, None, k)["w"], torch.linalg.lstsq(x, y).solution)


@pytest.mark.parametrize("kind", ["lasso", "ridge"])
def test_a_centralised_fit_is_one_model_of_all_samples(kind):
    found = fit(simulated(), LinearReference(fit=kind, scaling="thesis"))
    (r,) = found.replicates
    assert r.algorithm.model(r.state, None, 0) is r.algorithm.model(r.state, None, 1)
    assert r.state["included"][0, 0]  # the first predictor matters
    slope = r.algorithm.model(r.state, None, 0)["w"]
    assert slope[0].item() == pytest.approx(2, abs=0.2)
    assert set(found.frame["round"]) == {2}


def test_scaling_leaves_dummies_alone_and_undoes_itself():
    federation = simulated()
    scale = scale_of(federation, None, "thesis")
    assert scale.shift[2] == 0
    assert scale.factor[2] == 1
    x, _ = scale.apply(federation.train.full_batch(0))
    everyone = torch.cat([scale.apply(federation.train.full_batch(k))[0] for k in (0, 1)])
    torch.testing.assert_close(everyone[:, :2].mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-12, rtol=0)
    torch.testing.assert_close(everyone[:, :2].std(0, correction=0), torch.ones(2, dtype=torch.float64))
    theta = torch.tensor([0.3, -0.2, 0.5], dtype=torch.float64)
    raw = scale.raw(theta, torch.zeros(4))
    design = torch.cat([federation.train.full_batch(0).x, torch.ones(30, 1, dtype=torch.float64)], 1)
    torch.testing.assert_close(design @ raw, scale.y_shift + scale.y_factor * (x @ theta))


def test_centred_scaling_gives_every_device_an_intercept():
    federation = simulated()
    for k in (0, 1):
        x, y = scale_of(federation, k, "centred").apply(federation.train.full_batch(k))
        torch.testing.assert_close(x.mean(0), torch.zeros(3, dtype=torch.float64), atol=1e-12, rtol=0)
        assert y.mean().item() == pytest.approx(0, abs=1e-12)


def test_a_constant_column_is_not_divided_by_0():
    federation = simulated()
    federation.train.samples.x[:, 1] = 4.0
    assert scale_of(federation, None, "thesis").factor[1] == 1


def test_scaling_needs_to_know_which_columns_are_numbers():
    with pytest.raises(UserError, match="LinearReference: scaling = 'thesis': this data set does not say"):
        fit(simulated(facts={}), LinearReference(scaling="thesis"))


@pytest.mark.parametrize("kind", ["lasso", "ridge", "separate"])
def test_constant_targets_and_one_sample_run(kind):
    federation = simulated(sizes=(4, 1))
    federation.train.samples.y.fill_(0.0)
    (r,) = fit(federation, LinearReference(fit=kind), bias=False).replicates
    assert not r.algorithm.model(r.state, None, 0)["w"].any()
    assert not r.state["included"].any()


def test_inclusion_and_the_trivial_predictor_by_hand():
    """Two devices, test targets 1 and 3 on each; the mean training target is 2, so the error is 1."""
    x, y = np.eye(3), np.array([0.0, 2.0, 4.0])
    plain = federate((x, y), (x, y))
    test = federate((x[:2], np.array([1.0, 3.0])), (x[:2], np.array([1.0, 3.0]))).train
    facts = {"active": np.array([False, True, True]), "test_mean": np.array([1.0, 2.0, 1.0, 2.0])}
    federation = Federation(plain.train, test=test, facts=facts)
    found = fit(federation, LinearReference(fit="lasso"), bias=False)
    assert found.values("a_rmse_trivial", split="test").tolist() == [pytest.approx(1)]
    assert found.values("rmse_trivial", split="test").tolist() == [pytest.approx(1)]
    assert found.values("a_rmse_floor").tolist() == [pytest.approx(np.sqrt(0.5))]
    assert found.values("false_inclusion").tolist() == [0]
