"""Federated expectation propagation: the conjugate case, products of sites, and long MCMC runs on the pooled model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Batches, LocalWork
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.algorithms.fedavg_newcomers import FedAvgNewcomers
from fedrepro.studies.fedlin.algorithms.hm2_ep import HM2EP
from fedrepro.studies.fedlin.algorithms.hm2_newcomers import HM2Newcomers
from fedrepro.studies.fedlin.linear import ep, gibbs
from fedrepro.studies.fedlin.linear.devices import Statistics, weighted_quantiles
from tests.builders import federate, holdings, make_plan, make_problem, make_task, params, run

TRUE = np.array([1.0, 0.0, -0.5])


def simulated(devices=6, n=25, d=2, spread=0.6, noise=0.5, seed=4):
    rng = np.random.default_rng(seed)
    pairs = []
    for size in [n] * devices if isinstance(n, int) else n:
        x = rng.normal(size=(size, d))
        theta = TRUE[:d] + spread * rng.normal(size=d)
        pairs.append((x, x @ theta + noise * rng.normal(size=size)))
    return federate(*pairs)


def learn(federation, algorithm, rounds=12, steps=60, strategy="vmap"):
    task = make_task("linear_outputs", features=federation.train.samples.x.shape[1], outputs=1)
    plan = make_plan(rounds, LocalWork(steps=steps), "uniform")
    return run(task, federation, plan, algorithm, strategy=strategy).only


# --- the conjugate case -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KnownVariances(HM2EP):
    """φ = μ, with τ = 1 and σ = `noise` known: f_k is a normal density in μ, and so is the tilted distribution. Instead
    of random draws, points with its exact moments."""

    prior: str = "normal"

    def dimension(self, predictors):
        return predictors

    def draw(self, q, site, local, noise):
        data = Statistics(*local["data"])
        eye = torch.eye(len(data.moment)).to(data.moment)
        shrunk = torch.linalg.inv(eye + data.gram / self.noise**2)
        exact = Params(r=shrunk @ data.moment / self.noise**2, Q=eye - shrunk)
        mean, covariance = ep.moments(q - site + exact)
        steps = torch.linalg.cholesky(len(mean) * covariance).T
        phi = torch.cat([mean + steps, mean - steps]).repeat(4, 1)
        return phi, phi, torch.full_like(phi[:, 0], 1 / len(phi)), local


def test_with_known_variances_one_pass_gives_the_exact_posterior():
    federation = simulated()
    found = learn(federation, KnownVariances(noise=0.5, damping=1.0, damping_last=1.0), rounds=1).state["q"]
    # y_k ~ N(X_k μ, X_k X_kᵀ + σ²I), μ ~ N(0, I)
    precision, r = torch.eye(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for k in range(6):
        x, y, *_ = federation.train.full_batch(k)
        inverse = torch.linalg.inv(x @ x.T + 0.25 * torch.eye(len(y), dtype=torch.float64))
        precision, r = precision + x.T @ inverse @ x, r + x.T @ inverse @ y
    torch.testing.assert_close(found["Q"], precision, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found["r"], r, rtol=1e-9, atol=1e-9)


def test_further_passes_leave_the_exact_posterior_alone():
    federation = simulated()
    first, third = (learn(federation, KnownVariances(noise=0.5, damping=1.0, damping_last=1.0), c) for c in (1, 3))
    torch.testing.assert_close(first.state["q"]["Q"], third.state["q"]["Q"], rtol=1e-8, atol=1e-8)


# --- invariants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", ["lasso", "ridge", "ridge_printed", "normal"])
def test_q_is_the_prior_times_the_sites_and_all_cavities_are_laws(prior):
    state = learn(simulated(), HM2EP(prior=prior, chains=8), rounds=4, steps=20).state
    product = ep.total(state["prior"], state["sites"])
    for name in ("r", "Q"):
        torch.testing.assert_close(state["q"][name], product[name])
    assert ep.positive_definite(state["q"]["Q"] - state["sites"]["Q"])
    assert not torch.equal(state["sites"]["Q"][0], state["sites"]["Q"][1])


def test_a_device_sends_the_change_of_q_and_nothing_else():
    task = make_task("linear_outputs", features=2, outputs=1)
    plan = make_plan(1, LocalWork(steps=20), "uniform")
    algorithm, problem = HM2EP(chains=8), make_problem(task, simulated(), plan)
    state, local = algorithm.init(problem, task.start), algorithm.init_client(problem, 0, task.start)
    noise = torch.randn(20, algorithm.noise_width(2), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q, site = algorithm.message(state, 0)
    upload, mine = algorithm.client_update(task, (q, site), local, Batches(round=0, steps=20, noise=noise))
    assert {k: tuple(v.shape) for k, v in upload["delta"].items()} == {"r": (2,), "Q": (2, 2)}
    phi, theta, weights, _ = algorithm.draw(q, site, local, noise)
    tilted, _ = ep.tilted_from_draws(phi, weights, correction=True)
    torch.testing.assert_close(upload["delta"]["Q"], tilted["Q"] - q["Q"])
    torch.testing.assert_close(mine["mean"], theta.mean(0))
    torch.testing.assert_close(mine["positive"], (theta > 0).double().mean(0))
    torch.testing.assert_close(mine["quantiles"], weighted_quantiles(theta, weights))


def test_a_device_divides_its_own_site_out_and_leaves_out_the_first_fifth_of_its_sweeps():
    """Line 4 with a site that is not flat: the draws come from the cavity r − r_k, Q − Q_k."""
    task = make_task("linear_outputs", features=2, outputs=1)
    algorithm = HM2EP(prior="ridge", chains=3)
    problem = make_problem(task, simulated(), make_plan(1, LocalWork(steps=10), "uniform"))
    local = algorithm.init_client(problem, 0, task.start)
    q = Params(r=torch.tensor([1.0, -2.0]).double(), Q=torch.diag(torch.tensor([3.0, 4.0]).double()))
    site = Params(r=torch.tensor([0.5, 1.0]).double(), Q=torch.diag(torch.tensor([1.0, 2.0]).double()))
    cavity = Params(r=torch.tensor([0.5, -3.0]).double(), Q=torch.diag(torch.tensor([2.0, 2.0]).double()))
    noise = torch.randn(10, algorithm.noise_width(2), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    phi, theta, weights, after = algorithm.draw(q, site, local, noise)
    starts = gibbs.Chains(*local["chains"])
    thetas, phis, ends = gibbs.sweeps("ridge", Statistics(*local["data"]), cavity, starts, noise)
    assert torch.equal(phi, phis[2:].flatten(0, 1))
    assert torch.equal(theta, thetas[2:].flatten(0, 1))
    assert weights.tolist() == pytest.approx([1 / 24] * 24)
    assert torch.equal(after["chains"][1], ends.phi)


def test_damping_falls_round_by_round():
    """From 0.8 to 0.2 over two rounds: 0.8, 0.4, 0.2. The sites take that share of their change."""
    task = make_task("linear_outputs", features=2, outputs=1)
    algorithm = KnownVariances(noise=0.5, damping=0.8, damping_last=0.2, anneal=2)
    plan = make_plan(3, LocalWork(steps=2), "uniform")
    found = run(task, simulated(), plan, algorithm)
    assert found.values("damping") == pytest.approx([0, 0.8, 0.4, 0.2])
    # the exact sites do not move: after the rounds each has reached 1 − 0.2 · 0.6 · 0.8 of its value
    whole = learn(simulated(), KnownVariances(noise=0.5, damping=1.0, damping_last=1.0), rounds=1).state["sites"]["Q"]
    torch.testing.assert_close(found.only.state["sites"]["Q"], (1 - 0.2 * 0.6 * 0.8) * whole, rtol=1e-8, atol=1e-8)


def test_a_device_without_samples_changes_nothing():
    federation = simulated(n=[25, 25, 0])
    r = learn(federation, HM2EP(chains=8), rounds=3, steps=20)
    assert r.state["failed"] == 1
    assert not r.state["sites"]["Q"][2].any()
    assert r.state["sites"]["Q"][0].any()
    assert r.local[2]["mean"].isfinite().all()


def test_a_single_sample_leans_on_the_others():
    """With one sample, θ_k follows from q(φ) and that sample: nearer to the common mean than to 0."""
    r = learn(simulated(devices=8, n=[40] * 7 + [1], spread=0.1, seed=1), HM2EP(prior="normal", chains=8), rounds=12)
    mean = ep.moments(r.state["q"])[0][:2]
    assert (r.local[7]["mean"] - mean).norm() < 0.5 * mean.norm()


def test_noise_that_cannot_be_estimated_is_asked_for():
    with pytest.raises(UserError, match=r"noise = 0: σ cannot be estimated, as no device has more samples \(2\)"):
        learn(simulated(n=[2, 1]), HM2EP(prior="normal"))
    learn(simulated(n=[2, 1]), HM2EP(prior="normal", noise=0.5, chains=8), rounds=2)


def test_too_few_draws_are_a_failed_site():
    state = learn(simulated(), HM2EP(chains=1), rounds=2, steps=3).state
    assert state["failed"] == 6
    assert not state["sites"]["Q"].any()


@pytest.mark.parametrize("awkward", ["collinear", "constant"])
def test_collinear_columns_and_constant_targets_run(awkward):
    federation = simulated()
    x, y = federation.train.samples[:2]
    if awkward == "collinear":
        x[:, 1] = x[:, 0]
    else:
        y.fill_(0.0)
    for prior in ("lasso", "ridge", "normal"):
        r = learn(federation, HM2EP(prior=prior, chains=8), rounds=3, steps=20)
        assert all(own["mean"].isfinite().all() for own in r.local.values())


# --- against MCMC on the pooled hierarchical model --------------------------------------------------------------------


def pooled_penalised(kind, devices, sd, sweeps=600, chains=40):
    """Gibbs sampling of all θ_k and the common φ, from the blocks that test_gibbs.py checks by quadrature."""
    generator = torch.Generator().manual_seed(9)
    penalty, d = gibbs.PENALTIES[kind], len(devices[0].moment)
    q, r = torch.eye(2, dtype=torch.float64) / sd**2, torch.zeros(2, dtype=torch.float64)
    draws = [gibbs.laplace_theta if kind == "lasso" else gibbs.normal_theta(own, penalty) for own in devices]
    theta = [gibbs.start(own, chains).theta for own in devices]
    phi, found = gibbs.start(devices[0], chains).phi, []
    n = sum(own.n for own in devices)

    def normals(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    for _ in range(sweeps):
        for k, (own, draw) in enumerate(zip(devices, draws, strict=True)):
            z, z1, z2 = normals(3, chains, d)
            theta[k] = draw(own, theta[k], phi, z, z1.square() / 2, gibbs.log_uniform(z2))
        residual = sum(gibbs.residual_square(own, mine) for own, mine in zip(devices, theta, strict=True))
        size = sum(map(penalty.size, theta))
        target = gibbs.Conditional(r, q, n / 2, residual / 2, penalty.share * d * len(devices), penalty.power, size)
        t = normals(chains, 2) * (4 / normals(chains, 4).square().sum(-1, keepdim=True)).sqrt()
        phi = gibbs.metropolis(target, r, phi, t, gibbs.log_uniform(normals(chains)))
        found.append(torch.cat([phi, *theta], 1))
    return torch.cat(found[sweeps // 5 :])


@pytest.mark.parametrize("kind", ["lasso", "ridge"])
def test_penalised_regression_agrees_with_a_long_run_on_the_pooled_model(kind):
    algorithm = HM2EP(prior=kind, chains=50, damping=0.4, damping_last=0.05, anneal=25)
    r = learn(simulated(devices=6, n=20, d=3), algorithm, rounds=30, steps=20)
    exact = pooled_penalised(kind, [Statistics(*r.local[k]["data"]) for k in range(6)], sd=1.0)
    mean, covariance = ep.moments(r.state["q"])
    sd = exact[:, :2].std(0)
    assert ((mean - exact[:, :2].mean(0)).abs() / sd).max() < 0.1
    assert (covariance.diagonal().sqrt() / sd - 1).abs().max() < 0.15
    theta, theta_sd = exact[:, 2:].mean(0).view(6, 3), exact[:, 2:].std(0).view(6, 3)
    ours = torch.stack([r.local[k]["mean"] for k in range(6)])
    assert ((ours - theta).abs() / theta_sd).max() < 0.2  # of 18 means, each from the draws of one round


def pooled_hierarchy(devices, variances, sweeps=8000):
    generator = torch.Generator().manual_seed(8)
    gram, moment = (torch.stack(part) for part in list(zip(*devices, strict=True))[:2])
    gram, moment = gram / variances[:, None, None], moment / variances[:, None]
    count, d = moment.shape

    def normals(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    mu, log_tau, found = normals(d), normals(d), []
    for _ in range(sweeps):
        inverse = (-log_tau).exp()
        factor = torch.linalg.cholesky(gram + torch.diag(inverse))
        mean = torch.cholesky_solve((moment + inverse * mu)[..., None], factor)
        theta = (mean + torch.linalg.solve_triangular(factor.mT, normals(count, d, 1), upper=True))[..., 0]
        variance = 1 / (1 + count * inverse)
        mu = variance * inverse * theta.sum(0) + variance.sqrt() * normals(d)
        square = (theta - mu).square().sum(0)

        def value(at, square=square):
            return -(at.square() + count * at + square * (-at).exp()) / 2

        proposal = log_tau + 0.8 * normals(d)
        accept = gibbs.log_uniform(normals(d)) < value(proposal) - value(log_tau)
        log_tau = torch.where(accept, proposal, log_tau)
        found.append(torch.cat([mu, log_tau]))
    return torch.stack(found[sweeps // 10 :])


def test_the_normal_hierarchy_agrees_with_a_long_run_on_the_pooled_model():
    algorithm = HM2EP(prior="normal", chains=16, damping=0.5, damping_last=0.1, anneal=15)
    r = learn(simulated(devices=20, n=12, d=2), algorithm, rounds=20, steps=100)
    devices = [Statistics(*r.local[k]["data"]) for k in range(20)]
    exact = pooled_hierarchy(devices, torch.stack([r.local[k]["variance"] for k in range(20)]))
    mean, covariance = ep.moments(r.state["q"])
    sd = exact.std(0)
    assert ((mean - exact.mean(0)).abs() / sd).max() < 0.1
    assert (covariance.diagonal().sqrt() / sd - 1).abs().max() < 0.15


# --- predictions ------------------------------------------------------------------------------------------------------


def test_only_selected_predictors_predict_where_that_is_asked():
    federation = simulated(devices=3, n=40, d=3, spread=0.05, noise=0.4)
    every, chosen = (learn(federation, HM2EP(chains=8, predict=p), rounds=4) for p in ("all", "selected"))
    models = [r.algorithm.model(r.state, r.local[0], 0)["w"][:, 0] for r in (every, chosen)]
    assert models[0].all()
    assert (models[1] == 0).tolist() == [False, True, False]  # the true coefficients are 1, 0 and −0.5
    assert torch.equal(models[0][::2], models[1][::2])


def test_new_devices_take_no_part():
    federation = simulated(devices=5)
    r = learn(federation, HM2EP(prior="normal", chains=8), rounds=2, steps=20)
    assert r.state["sites"]["Q"].any(dim=(1, 2)).all()
    with pytest.raises(UserError, match="needs the model linear_outputs and test samples"):
        learn(federation, HM2Newcomers(newcomers=1))
    assert HM2Newcomers(newcomers=2).participants(r.state, np.arange(5)).tolist() == [0, 1, 2]


def meeting(algorithm, **state):
    """Errors of a new device with samples (1, 3), (1, 5) and test sample (1, 2), per way and for 0, 1 and 2 samples."""
    old, new = ([[1.0], [2.0], [3.0]], [0.0, 1.0, 2.0]), ([[1.0], [1.0]], [3.0, 5.0])
    test = holdings(federate(([[1.0]] * 3, [2.0] * 3)).train.samples, [1, 1, 1])
    federation = dataclasses.replace(federate(old, old, new), test=test)
    task = make_task("linear_outputs", features=1, outputs=1)
    problem = make_problem(task, federation, make_plan(1, LocalWork(steps=2), "uniform"))
    state = {**algorithm.init(problem, task.start), **state}
    found = [m for m in algorithm.metrics(problem, state, 1) if m.metric == "newcomer_rmse"]
    return {way: [m.value for m in found if m.group == way] for way in dict.fromkeys(m.group for m in found)}


def test_a_new_device_meets_q_by_hand():
    """q has μ = 1 and log τ = log 2, σ = 1. With n samples θ = (Σy + ½)/(n + ½): 1, 7/3, 3.4; descent from 1 ends at
    the mean of y: 1, 3, 4."""
    q = ep.natural(torch.tensor([1.0, np.log(2)]).double(), 0.01 * torch.eye(2, dtype=torch.float64))
    found = meeting(HM2Newcomers(newcomers=1, noise=1.0), q=q)
    assert found["q(φ)"] == pytest.approx([1, 1 / 3, 1.4])
    assert found["mean of q"] == pytest.approx([1, 1, 2])
    assert set(found) == {"q(φ)", "mean of q"}  # without the truth there is no limit


def test_a_new_device_meets_fedavgs_model_by_hand():
    assert meeting(FedAvgNewcomers(newcomers=1), w=params(w=[[0.5]])) == {"model": pytest.approx([1.5, 1, 2])}
