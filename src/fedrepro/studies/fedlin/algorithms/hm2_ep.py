"""HM2 by federated expectation propagation (thesis "Federated Data Analytics", 2023, §3.4, Algorithms 3.2 and 3.3).

Devices' parameters come from one law, θ_k | φ ~ p(θ | φ); the server learns q(φ) = p(φ) Π_k q_k(φ), normal, in natural
parameters. A round:

    line 2    the server sends (r, Q) of q
    line 4    device k: cavity q_−k = q / q_k
    line 5    device k: tilted distribution f_k · q_−k, by draws of (θ_k, φ): eq. (3.10)
    line 6–8  device k: sends (Δr_k, ΔQ_k), from the moments of its draws
    line 10   server:  q ← q · Π_k Δq_k^η

`prior`: lasso, ridge, ridge_printed (§3.4.3; linear/gibbs.py), φ = (log λ, log σ²), each N(0, prior_sd²); normal, the
hierarchy (§3.4.1; linear/ep.py), φ = (μ, log τ), each N(0, 1). The draws of θ_k in (3.10) are its posterior: their mean
predicts, their quantiles are the credible intervals.

Where the box is open or wrong:
- Line 6 leaves "obtain new r_k, Q_k" open: they are tilted − cavity, so that Δ_k = tilted − q.
- η appears only in the header of the box. Here it is the damping: `damping` falls to `damping_last` over `anneal`
  rounds, and is smaller where q or a cavity would not stay positive definite (linear/ep.py).
- That needs all sites, so the server keeps them (it has seen every Δ_k) and sends each device its site with q.
- A device without samples, or with too few draws for a covariance, leaves its site unchanged (Δ = 0).
- σ in §3.4.3 is the noise sd; otherwise only σ/λ would be identified. In the hierarchy σ_k is not part of φ: a device
  with more samples than predictors takes it from its residuals, others from all devices'; `noise` (a sd) replaces it.
- The first fifth of a round's sweeps is dropped; chains continue from the round before.
- `predict: selected` sets coefficients whose 90 % interval covers 0 to 0 (§3.6.1).
The engine's steps of a round are sweeps of `chains` chains, or pairs of draws in `chains` columns.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from fedrepro.core.algorithm import Algorithm, Cohort, Metric, Problem, State, Trial, limited, one_of, positive
from fedrepro.core.federation import Batches
from fedrepro.core.params import Params, Uploads
from fedrepro.core.task import Task
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.linear import devices, ep, gibbs
from fedrepro.studies.fedlin.linear.devices import Scale, Statistics


@dataclass(frozen=True)
class HM2EP(Algorithm):
    prior: str = one_of("lasso", *gibbs.PENALTIES, "normal")
    chains: int = limited(4, lambda v: v >= 1, "at least one is needed")
    damping: float = limited(0.5, lambda v: 0 < v <= 1, "must lie in (0, 1]")
    damping_last: float = limited(0.2, lambda v: 0 < v <= 1, "must lie in (0, 1]")
    anneal: int = limited(20, lambda v: v >= 1, "at least one round is needed")
    prior_sd: float = positive(1.0)
    scaling: str = one_of("none", *devices.SCALINGS)
    noise: float = limited(0.0, lambda v: v >= 0, "must not be negative")
    predict: str = one_of("all", "all", "selected")

    noisy: ClassVar[bool] = True
    server_only = frozenset(["damping", "damping_last", "anneal", "prior_sd", "scaling", "noise", "predict"])
    trial: ClassVar[Trial] = Trial(
        ({"prior": "lasso", "chains": 12}, {"prior": "ridge", "chains": 12, "damping": 0.8}),
        cases=("linear, full batch",),
        gradients=0,
    )

    def dimension(self, predictors: int) -> int:
        """The dimension of φ."""
        return 2 * predictors if self.prior == "normal" else 2

    def noise_width(self, parameters: int) -> int:
        return self.chains * (4 * parameters if self.prior == "normal" else gibbs.width(parameters))

    def resolve(self, problem: Problem) -> Self:
        federation = problem.federation
        devices.check_scaling("HM2EP", self.scaling, federation)
        most, predictors = federation.train.sizes.max(), federation.train.samples.x.shape[1]
        if self.prior == "normal" and not self.noise and most <= predictors:
            why = f"no device has more samples ({most}) than predictors ({predictors})"
            raise UserError(f"HM2EP: noise = 0: σ cannot be estimated, as {why}; give it")
        return self

    def init(self, problem: Problem, w: Params) -> State:
        devices, x = len(problem.federation), problem.federation.train.samples.x
        D = self.dimension(x.shape[1])
        sd = x.new_ones(D) if self.prior == "normal" else x.new_full((D,), self.prior_sd)
        prior = Params(r=x.new_zeros(D), Q=torch.diag(sd**-2))
        sites = Params(r=x.new_zeros(devices, D), Q=x.new_zeros(devices, D, D))
        q = ep.total(prior, sites)
        return {"w": w, "prior": prior, "sites": sites, "q": q, "round": 0, "used": 0.0, "failed": 0}

    def init_client(self, problem: Problem, client: int, w: Params) -> Any:
        scale, data = self._scaled(problem, client)
        mean = torch.zeros_like(data.moment)
        local = {"data": list(data), "scale": list(scale), "mean": mean, "positive": mean + 0.5}
        local["quantiles"] = mean.new_zeros(len(devices.QUANTILES), len(mean))
        if self.prior == "normal":
            return {**local, "variance": self._variance(problem, client, data)}
        return {**local, "chains": list(gibbs.start(data, self.chains))}

    def message(self, state: State, client: int) -> Any:
        return state["q"], Params({name: part[client] for name, part in state["sites"].items()})

    def client_update(self, task: Task, message: Any, local: Any, batches: Batches) -> tuple[Any, Any]:
        assert batches.noise is not None  # for a noisy method
        q, site = message
        phi, theta, weights, local = self.draw(q, site, local, batches.noise)  # line 5
        tilted, sound = ep.tilted_from_draws(phi, weights, correction=self.prior != "normal")
        sound = sound & (local["data"][3] > 0)
        delta = Params({name: torch.where(sound, part, 0) for name, part in (tilted - q).items()})  # line 7
        posterior = {"mean": weights @ theta, "positive": weights @ (theta > 0).to(theta)}
        posterior["quantiles"] = devices.weighted_quantiles(theta, weights)
        return {"delta": delta, "sound": sound.to(q["r"])}, {**local, **posterior}

    def draw(self, q: Params, site: Params, local: dict, noise: Tensor) -> tuple[Tensor, Tensor, Tensor, dict]:
        """(φ [S, D], θ_k [S, d], weights [S], the device's new state): draws of the tilted distribution."""
        data, d = Statistics(*local["data"]), len(local["mean"])
        if self.prior == "normal":
            D, numbers = len(q["r"]), noise.reshape(len(noise) * self.chains, -1)
            z, both = numbers[:, :D], numbers[:, D : D + 2 * d]
            z_theta = both.reshape(-1, 2, d).transpose(0, 1).reshape(-1, d)
            return *ep.tilted(data, local["variance"], q, site, z, z_theta), local
        noise = noise[:, : self.chains * gibbs.width(d)]
        theta, phi, ends = gibbs.sweeps(self.prior, data, q - site, gibbs.Chains(*local["chains"]), noise)
        kept = slice(len(noise) // 5, None)
        theta, phi = theta[kept].flatten(0, 1), phi[kept].flatten(0, 1)
        return phi, theta, torch.full_like(phi[:, 0], 1 / len(phi)), {**local, "chains": list(ends)}

    def server_update(self, state: State, uploads: Uploads, cohort: Cohort) -> State:
        sent, sites, at = uploads.stack(), state["sites"], torch.from_numpy(cohort.clients)
        changes = Params({n: torch.zeros_like(v).index_copy(0, at, sent["delta"][n]) for n, v in sites.items()})
        eta = ep.schedule(state["round"], self.damping, self.damping_last, self.anneal)
        sites, used = ep.damped(state["prior"], sites, changes, eta)
        new = {"sites": sites, "q": ep.total(state["prior"], sites), "round": state["round"] + 1}
        return {**state, **new, "used": used, "failed": len(at) - int(sent["sound"].sum())}

    def model(self, state: State, local: Any, client: int) -> Params:
        if local is None:
            return state["w"]
        chosen = devices.included(local["quantiles"]) if self.predict == "selected" else torch.ones_like(local["mean"])
        theta = torch.where(chosen.bool(), local["mean"], 0)
        return Params(w=Scale(*local["scale"]).raw(theta, state["w"]["w"]))

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        if round == 0:
            yield from devices.phi_truth(self.prior, problem.federation.facts)
        mean, covariance = ep.moments(state["q"])
        for j, (m, v) in enumerate(zip(mean.tolist(), covariance.diagonal().tolist(), strict=True)):
            yield Metric("phi_mean", m, "server", step=j)
            yield Metric("phi_sd", math.sqrt(v), "server", step=j)
        yield Metric("damping", state["used"], "server")
        yield Metric("failed_sites", state["failed"], "server")

    def client_metrics(self, problem: Problem, local: Any, client: int) -> Iterator[Metric]:
        return devices.report(local["mean"], local["quantiles"], local["positive"], problem.federation.facts, client)

    def _variance(self, problem: Problem, client: int, data: Statistics) -> Tensor:
        """σ² of a device of a hierarchy, positive even for a perfect fit."""
        if self.noise:
            return torch.full_like(data.n, self.noise**2)
        found = ep.residual_variance([data])
        if found is None:
            found = ep.residual_variance(self._scaled(problem, k)[1] for k in range(len(problem.federation)))
        assert found is not None  # checked by resolve
        return found.clamp(min=1e-10)

    def _scaled(self, problem: Problem, client: int) -> tuple[Scale, Statistics]:
        scale = devices.scale_of(problem.federation, client, self.scaling)
        return scale, devices.statistics(*scale.apply(problem.federation.train.full_batch(client)))
