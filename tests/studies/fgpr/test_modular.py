"""Modular GP: the upload of a module, one module alone, and outputs that share information."""

import numpy as np
import pytest
import torch

from fedrepro.studies.fgpr.gp.device_errors import rmse
from fedrepro.studies.fgpr.gp.exact import fit_covariance
from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP
from fedrepro.studies.fgpr.gp.modular import JITTER, ModularGP, as_module
from fedrepro.studies.fgpr.gp.variational import DistributedVariationalGP


def points(n, seed, d=1):
    return torch.from_numpy(np.random.default_rng(seed).random((n, d)))


def function(x):
    return torch.sin(8 * x[:, 0]) + x[:, 0]


def noisy(x, seed, sd=0.05):
    return function(x) + sd * torch.from_numpy(np.random.default_rng(seed).normal(size=len(x)))


def test_a_module_times_its_prior_is_its_posterior():
    """p(u) N(ỹ; Hu, I) has the mean and covariance of q(u), which gives the module's own predictions at Z."""
    x = points(30, 0)
    sparse = DistributedVariationalGP(inducing=6, evaluations=60).fit([(x, noisy(x, 1))], np.random.default_rng(0))
    module = as_module(sparse)
    with torch.no_grad():
        prior = sparse.kernel(module.points).to_dense()
        covariance = torch.linalg.inv(torch.linalg.inv(prior) + module.map.mT @ module.map)
        mean = covariance @ module.map.mT @ module.targets
        own_mean, own_variance = sparse.predict(module.points)
    torch.testing.assert_close(mean, own_mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(covariance.diagonal(), own_variance - sparse.likelihood.noise, rtol=1e-4, atol=1e-7)


def test_a_server_with_the_modules_own_prior_predicts_as_the_module_does():
    x = points(30, 0)
    model = ModularGP(inducing=8, latents=1, ard=False, evaluations=60).fit(
        [(x, noisy(x, 1))], np.random.default_rng(0)
    )
    sparse = DistributedVariationalGP(inducing=8, evaluations=60, jitter=JITTER).fit(
        [(x, noisy(x, 1))], np.random.default_rng(0)
    )
    with torch.no_grad():
        model.kernel.base_kernel.lengthscale = sparse.kernel.base_kernel.lengthscale
        model.mixing.copy_(sparse.kernel.outputscale.sqrt().view(1, 1))
        model.fitted = fit_covariance(model._covariance(), model.targets)
    new = points(20, 5)
    for ours, theirs in zip(model.predict(new), sparse.predict(new), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_coregionalised_covariance_by_hand():
    x = points(10, 0)
    model = ModularGP(inducing=3, latents=2, evaluations=2).fit(
        [(x, function(x)), (x, -function(x))], np.random.default_rng(0)
    )
    with torch.no_grad():
        model.mixing.copy_(torch.tensor([[1.0, 2.0], [3.0, -1.0]]))
        first, second = model.kernel(x[:1], x[1:2]).to_dense()[:, 0, 0]
        found = model.coregionalised(x[:1], torch.tensor([0]), x[1:2], torch.tensor([1]))
    assert found.item() == pytest.approx((3 * first - 2 * second).item())


def test_an_output_with_few_samples_learns_from_another():
    x, z, new = points(80, 0), points(5, 1), points(200, 2)
    data = [(x, function(x)), (z, 2 * function(z))]
    joint = ModularGP().fit(data, np.random.default_rng(0)).predict(new)[0]
    alone = SharedGP().fit(data[1:], np.random.default_rng(0)).predict(new)[0]
    assert rmse(joint, 2 * function(new)) < 0.3 * rmse(alone, 2 * function(new))


@pytest.mark.parametrize(
    "last",
    [
        (torch.full((1, 1), 0.5).double(), torch.zeros(1).double()),
        (torch.full((6, 1), 0.5).double(), torch.arange(6).double()),
        (points(5, 3), torch.ones(5).double()),
    ],
    ids=["one point", "duplicate inputs", "constant"],
)
def test_awkward_data_gives_finite_laws(last):
    x = points(30, 0)
    model = ModularGP(evaluations=40).fit([(x, function(x)), last], np.random.default_rng(0))
    mean, variance = model.predict(points(10, 5))
    assert mean.isfinite().all()
    assert (variance > 0).all()
