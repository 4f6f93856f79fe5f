"""DVI: exact if all data are inducing points, the bound of gpytorch, and independent of the split over nodes."""

import gpytorch
import numpy as np
import pytest
import torch

from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP
from fedrepro.studies.fgpr.gp.variational import DistributedVariationalGP


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood, kernel):
        super().__init__(x, y, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ZeroMean(), kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def data(n, seed, d=2, noise=0.1):
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    return torch.from_numpy(x), torch.from_numpy(np.sin(5 * x.sum(1)) + noise * rng.normal(size=n))


def joined(nodes):
    return [tuple(torch.cat(part) for part in zip(*nodes, strict=True))]


NODES = [data(9, 0), data(14, 1), data(1, 2)]


def test_with_all_data_as_inducing_points_it_is_the_exact_process():
    model = DistributedVariationalGP(inducing=24, move_inducing=False, evaluations=100)
    model.fit(NODES, np.random.default_rng(0))
    x, y = joined(NODES)[0]
    exact = Exact(x, y, model.likelihood, model.kernel)
    exact.train()
    with torch.no_grad():
        likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, exact)(exact(x), y) * len(y)
        assert model.bound(NODES).item() == pytest.approx(likelihood.item(), abs=1e-4)
    new, _ = data(30, 5)
    exact.eval()
    with torch.no_grad():
        law = exact.likelihood.eval()(exact(new))
    for ours, theirs in zip(model.predict(new), (law.mean, law.variance), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_its_maximum_is_that_of_the_exact_likelihood():
    sparse = DistributedVariationalGP(inducing=24, move_inducing=False).fit(NODES, np.random.default_rng(0))
    exact = SharedGP().fit(joined(NODES), np.random.default_rng(0))
    assert sparse.effort.value == pytest.approx(exact.effort.value, abs=1e-4)


def test_its_bound_is_gpytorchs():
    model = DistributedVariationalGP(inducing=5, move_inducing=False, evaluations=5)
    model.fit(NODES, np.random.default_rng(0))
    x, y = joined(NODES)[0]
    sparse = gpytorch.kernels.InducingPointKernel(model.kernel, model.points.detach(), model.likelihood)
    theirs = Exact(x, y, model.likelihood, sparse)
    theirs.train()
    with torch.no_grad():
        bound = gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, theirs)(theirs(x), y) * len(y)
        assert model.bound(NODES).item() == pytest.approx(bound.item(), rel=1e-4)


def test_the_bound_does_not_depend_on_the_split():
    model = DistributedVariationalGP(inducing=5, move_inducing=False, evaluations=5)
    model.fit(NODES, np.random.default_rng(0))
    with torch.no_grad():
        assert model.bound(NODES).item() == pytest.approx(model.bound(joined(NODES)).item(), rel=1e-12)


def test_moving_the_inducing_points_raises_the_bound():
    bounds = [
        DistributedVariationalGP(inducing=4, move_inducing=move).fit(NODES, np.random.default_rng(0)).effort.value
        for move in (False, True)
    ]
    assert bounds[1] > bounds[0] + 0.01


def test_it_counts_what_a_node_sends():
    assert DistributedVariationalGP(inducing=20).sent() == 400 + 20 + 3


@pytest.mark.parametrize("y", [torch.zeros(6).double(), torch.ones(6).double(), torch.arange(6).double()])
def test_duplicate_inputs_and_constant_targets_give_finite_laws(y):
    x = torch.full((6, 2), 0.5, dtype=torch.float64)
    model = DistributedVariationalGP(inducing=4, evaluations=50).fit([(x, y)], np.random.default_rng(0))
    mean, variance = model.predict(torch.cat([x, data(5, 1)[0]]))
    assert mean.isfinite().all()
    assert (variance > 0).all()
