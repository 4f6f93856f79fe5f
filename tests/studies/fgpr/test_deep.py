"""Deep: its bound where it is exact, a nonlinear pair, independent repeats, awkward data."""

import numpy as np
import pytest
import torch

from fedrepro.studies.fgpr.gp.autoregressive import AutoregressiveGP
from fedrepro.studies.fgpr.gp.deep import MultiFidelityDeepGP, layer_kernel
from fedrepro.studies.fgpr.gp.device_errors import rmse
from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP
from fedrepro.studies.fgpr.gp.search import no_jitter_warnings


def points(n, seed, d=1):
    return torch.from_numpy(np.random.default_rng(seed).random((n, d)))


def low(x):
    return torch.sin(8 * np.pi * x[:, 0])


def high(x):
    """A nonlinear function of the low fidelity (Perdikaris et al. 2017)."""
    return (x[:, 0] - 2**0.5) * low(x) ** 2


def pair(seed=0, n=30, few=14):
    x, z = points(n, seed), points(few, seed + 100)
    return [(x, low(x)), (z, high(z))]


def batched(*runs):
    """Runs of equal sizes → levels with a batch axis."""
    return [tuple(torch.stack(part) for part in zip(*level, strict=True)) for level in zip(*runs, strict=True)]


def fit(data, seed=0, **options):
    return MultiFidelityDeepGP(**{"steps": 5, "evaluations": 40} | options).fit(data, np.random.default_rng(seed))


def test_it_learns_a_nonlinear_pair_that_ar_and_separate_do_not():
    new, rng = points(300, 7), np.random.default_rng(0)
    truth = high(new)
    deep = rmse(fit(batched(pair())).predict(new[None])[0][0], truth).item()
    alone = rmse(SharedGP().fit(pair()[1:], rng).predict(new)[0], truth).item()
    linear = rmse(AutoregressiveGP(starts=1).fit(pair(), rng).predict(new)[0], truth).item()
    trivial = rmse(torch.zeros_like(truth) + pair()[1][1].mean(), truth).item()
    assert deep < 0.25 * min(alone, linear, trivial)


def test_an_identical_pair_needs_few_samples_above():
    x, z, new = points(40, 0), points(5, 1), points(200, 2)
    mean, _ = fit(batched([(x, low(x)), (z, low(z))])).predict(new[None])
    alone, _ = SharedGP().fit([(z, low(z))], np.random.default_rng(0)).predict(new)
    assert rmse(mean[0], low(new)) < 0.1
    assert rmse(mean[0], low(new)) < 0.2 * rmse(alone, low(new))


def test_the_bound_of_one_level_with_all_samples_as_inducing_points_is_the_likelihood():
    x = points(25, 3, 2)
    y = torch.sin(5 * x.sum(1)) + 0.1 * torch.from_numpy(np.random.default_rng(4).normal(size=25))
    model = fit([(x[None], y[None])], steps=0)
    kernel, noise = model.layers[0].covar_module, model.likelihoods[0].noise
    with torch.no_grad():
        c = kernel(x[None]).to_dense()[0] + noise[0] * torch.eye(25)
        exact = torch.distributions.MultivariateNormal(torch.zeros(25).double(), c).log_prob(y).item() / 25
    assert model.start_bounds.item() == pytest.approx(exact, abs=1e-3)


def test_steps_never_lower_a_bound():
    model = fit(batched(pair(0), pair(1)), steps=8)
    assert (model.bounds >= model.start_bounds).all()
    with torch.no_grad(), no_jitter_warnings():
        torch.testing.assert_close(model.bound(batched(pair(0), pair(1))), model.bounds, rtol=1e-6, atol=1e-6)


def test_repeats_do_not_meet():
    alone, together = fit(batched(pair(0))), fit(batched(pair(0), pair(1)))
    new = points(20, 9)
    one, two = alone.predict(new[None]), together.predict(new.expand(2, -1, -1))
    for a, b in zip(one, two, strict=True):
        torch.testing.assert_close(a[0], b[0], rtol=1e-4, atol=1e-5)


def test_a_repeat_whose_gradient_breaks_stays_finite_and_leaves_the_others_alone(monkeypatch):
    data = batched(pair(1, 10, 6), pair(2, 10, 6))
    whole, calls = fit(data, steps=4), []

    def breaking(self, given):
        calls.append(given)
        factor = torch.tensor([torch.nan if len(calls) == 3 else 1.0, 1.0])
        return bound(self, given) * factor

    bound = MultiFidelityDeepGP.bound
    monkeypatch.setattr(MultiFidelityDeepGP, "bound", breaking)
    broken = fit(data, steps=4)
    x = points(20, 3).expand(2, -1, -1)
    assert torch.stack(broken.predict(x)).isfinite().all()
    assert torch.equal(broken.predict(x)[0][1], whole.predict(x)[0][1])


def test_the_upper_kernel_is_the_papers():
    kernel = layer_kernel(2, True, True).double()
    x, z = points(4, 0, 3), points(3, 1, 3)
    product, inner = kernel.kernels
    corr, (previous, linear) = product.kernels[0], product.kernels[1].kernels
    with torch.no_grad():
        whole = kernel(x, z).to_dense()
        parts = [k(x, z).to_dense() for k in (corr, previous, linear, inner)]
    torch.testing.assert_close(whole, parts[0] * (parts[1] + parts[2]) + parts[3])
    # k_corr and k_in see the inputs only, k_prev and linear the level below only
    moved = x.clone()
    moved[:, 2] += 1
    with torch.no_grad():
        for k, same in zip((corr, previous, linear, inner), (True, False, False, True), strict=True):
            assert torch.equal(k(x, z).to_dense(), k(moved, z).to_dense()) == same


def test_three_levels_and_expectations_by_quadrature():
    x, z, u = points(30, 0), points(20, 1), points(10, 2)
    data = batched([(x, low(x)), (z, high(z)), (u, high(u) ** 2)])
    model = fit(data, steps=3, nodes=4)
    with no_jitter_warnings():
        mean, variance, weight = model.law(points(6, 5)[None], 2)
    assert mean.shape == variance.shape == (16, 1, 6)
    assert weight.sum().item() == pytest.approx(1)
    new = points(100, 7)
    assert rmse(model.predict(new[None])[0][0], high(new) ** 2) < 0.5 * (high(new) ** 2).std()


@pytest.mark.parametrize(
    "above",
    [
        (torch.full((1, 1), 0.5).double(), torch.zeros(1).double()),
        (torch.full((6, 1), 0.5).double(), torch.arange(6).double()),
        (points(5, 3), torch.ones(5).double()),
    ],
    ids=["one point", "duplicate inputs", "constant"],
)
def test_awkward_data_gives_finite_laws(above):
    x = points(20, 0)
    mean, variance = fit(batched([(x, low(x)), above]), steps=5).predict(points(10, 5)[None])
    assert mean.isfinite().all()
    assert (variance > 0).all()


def test_predictions_are_those_of_sampling_the_level_below():
    """There are few samples below, so most of the uncertainty above comes from there."""
    x, z, new = points(5, 0), points(12, 1), points(6, 5)[None]
    model = fit(batched([(x, low(x)), (z, low(z) + z[:, 0])]), steps=0, nodes=25)
    mean, variance = model.predict(new)
    with torch.no_grad(), no_jitter_warnings():
        below = model.layers[0](new)
        drawn = torch.randn(20_000, 1, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        f = below.mean + below.variance.sqrt() * drawn
        above = model.layers[1](torch.cat([new.expand(20_000, -1, -1, -1), f[..., None]], -1))
    assert below.variance.max() > 0.05
    torch.testing.assert_close(mean, above.mean.mean(0), rtol=0, atol=0.02)
    variance = variance - model.likelihoods[-1].noise
    torch.testing.assert_close(variance, above.variance.mean(0) + above.mean.var(0), rtol=0.05, atol=0.01)
    assert (above.mean.var(0) > 0.02).any()
