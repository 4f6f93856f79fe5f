"""Baselines of FGPR in multi-fidelity modelling (thesis §4.6, Table 4.2), without rounds.

Levels are fidelities. Where several clients share one, AR, Deep and Modular GP use the last of each: the thesis' sizes.

- `separate`: a process on the last client's data alone, to convergence (gp/maximum_likelihood.py);
- `shared`: one θ for all clients, Σ_k log p(y_k), to convergence: the end of FGPR with an unlimited budget;
- `ar`, `deep`, `modular`: Kennedy–O'Hagan, the multi-fidelity deep process, Modular GP (gp/autoregressive.py, …);
- `limit`: as separate, with the last client's data and all the data set's spare samples of the same function.

Isotropic or (`ard`) one lengthscale per input. Laws are of observations of the last client, noise included. `held`: the
number of samples of the last client, its first ones and, beyond its own, spare ones. `curve`: points of a prediction
along inputs of one dimension. Recorded besides errors and calibration (gp/device_errors.py): evaluations of the
objective, those that failed or took jitter, whether the best search converged, and AR's factors rho.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Predictor, Problem, State, not_negative, one_of, positive
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp.autoregressive import AutoregressiveGP
from fedrepro.studies.fgpr.gp.deep import MultiFidelityDeepGP
from fedrepro.studies.fgpr.gp.device_errors import curve, device_errors
from fedrepro.studies.fgpr.gp.maximum_likelihood import SharedGP
from fedrepro.studies.fgpr.gp.modular import ModularGP

FITS = ("separate", "shared", "limit", "ar", "deep", "modular")


@dataclass(frozen=True)
class GPBaseline(Predictor):
    fit: str = one_of("separate", *FITS)
    ard: bool = False
    held: int = not_negative(0)
    noise_floor: float = positive(1e-6)
    starts: int = positive(2)
    evaluations: int = positive(200)
    inducing: int = positive(20)
    latents: int = positive(3)
    steps: int = not_negative(100)
    curve: int = not_negative(0)

    iterative: ClassVar[bool] = False

    def resolve(self, problem: Problem) -> Self:
        federation = problem.federation
        if federation.test is None or np.flatnonzero(federation.test.sizes).tolist() != [len(federation) - 1]:
            raise UserError("GPBaseline: needs a test set of the last client, the highest fidelity, alone")
        if (self.fit == "limit" or self.held > federation.train.sizes[-1]) and "spare_x" not in federation.facts:
            raise UserError("GPBaseline: this data set has no spare samples")
        return self

    @classmethod
    def groups(cls, runs: Sequence[tuple[Self, Problem, Params]]) -> list[list[int]]:
        """Deep fits all repeats of a setting at once; the others run in sequence."""
        alike: dict[Any, list[int]] = {}
        for i, (algorithm, problem, _) in enumerate(runs):
            key = (algorithm, *problem.federation.train.sizes.tolist()) if algorithm.fit == "deep" else i
            alike.setdefault(key, []).append(i)
        return list(alike.values())

    @classmethod
    def init_all(cls, runs: Sequence[tuple[Self, Problem, Params]]) -> list[State]:
        return runs[0][0]._states([problem for _, problem, _ in runs])

    def init(self, problem: Problem, w: Params) -> State:
        return self._states([problem])[0]

    def assess(self, problem: Problem, state: State, split: str) -> tuple[np.ndarray, np.ndarray, list[Metric]] | None:
        if split != "test":
            return None
        last = len(problem.federation) - 1
        law = state["mean"][:, None], state["variance"][:, None]
        mse, metrics = device_errors({last: law}, problem.federation, split, [""])
        (density,) = (m.value for m in metrics if m.metric == "nlpd")
        return np.where(np.arange(last + 1) == last, density, 0.0), mse, metrics

    def metrics(self, problem: Problem, state: State, round: int) -> Iterator[Metric]:
        for name, value in state["effort"].items():
            yield Metric(name, float(value))
        for step, value in enumerate(state["rho"]):
            yield Metric("rho", value, step=step)
        if self.curve:
            yield from curve(len(problem.federation) - 1, **state["curve"])

    def _levels(self, problem: Problem) -> list[tuple[Tensor, Tensor]]:
        """(x, y) of each client (`shared`) or level, the last with `held` samples."""
        federation = problem.federation
        clients = np.arange(len(federation))
        if self.fit != "shared" and "level" in federation.facts:
            level = federation.facts["level"]
            clients = np.flatnonzero(np.append(level[1:] != level[:-1], True))
        levels = [(b.x, b.y) for b in map(federation.train.full_batch, clients.tolist())]
        if self.held or self.fit == "limit":
            (x, y), facts = levels[-1], federation.facts
            if "spare_x" in facts:
                x, y = (torch.cat([v, torch.from_numpy(facts[f"spare_{k}"]).to(v)]) for k, v in (("x", x), ("y", y)))
            levels[-1] = (x, y) if self.fit == "limit" else (x[: self.held], y[: self.held])
        return levels if self.fit not in ("separate", "limit") else levels[-1:]

    def _states(self, problems: list[Problem]) -> list[State]:
        rng = np.random.default_rng(0)  # of starts and inducing points: no part of an experiment's randomness
        levels = [self._levels(problem) for problem in problems]
        inputs = [self._inputs(problem) for problem in problems]
        common: dict[str, Any] = {"ard": self.ard, "noise_floor": self.noise_floor, "evaluations": self.evaluations}
        model: Any
        if self.fit == "deep":
            batched: Any = [tuple(map(torch.stack, zip(*level, strict=True))) for level in zip(*levels, strict=True)]
            model = MultiFidelityDeepGP(inducing=self.inducing, steps=self.steps, **common).fit(batched, rng)
            share = {k: v / len(problems) for k, v in asdict(model.effort).items() if k not in ("value", "converged")}
            gains = (model.bounds - model.start_bounds).tolist()
            laws = zip(*model.predict(torch.stack(inputs)), gains, strict=True)
            return [self._state(mean, variance, {**share, "bound_gain": gain}) for mean, variance, gain in laws]
        (data,), (x,) = levels, inputs
        if self.fit == "modular":
            model = ModularGP(inducing=self.inducing, latents=self.latents, **common)
        else:
            model = (AutoregressiveGP if self.fit == "ar" else SharedGP)(starts=self.starts, **common)
        model.fit(data, rng)
        mean, variance = model.predict(x, len(data) - 1) if isinstance(model, SharedGP) else model.predict(x)
        effort = {k: v for k, v in asdict(model.effort).items() if k != "value"}
        return [self._state(mean, variance, effort, model.rho.tolist() if self.fit == "ar" else ())]

    def _inputs(self, problem: Problem) -> Tensor:
        """Test inputs, then those of the curve."""
        test: Any = problem.federation.test
        x = test.samples.x[test.of(len(problem.federation) - 1)]
        return torch.cat([x, self._grid(x)]) if self.curve else x

    def _grid(self, like: Tensor) -> Tensor:
        if like.shape[1] != 1:
            raise UserError(f"GPBaseline: curve = {self.curve}: inputs have {like.shape[1]} dimensions, not one")
        return torch.linspace(0, 1, self.curve).to(like)[:, None]

    def _state(self, mean: Tensor, variance: Tensor, effort: dict[str, float], rho: Sequence[float] = ()) -> State:
        m = len(mean) - self.curve
        state: State = {"mean": mean[:m], "variance": variance[:m], "effort": effort, "rho": list(rho)}
        if self.curve:
            state["curve"] = {"x": self._grid(mean[:, None])[:, 0], "mean": mean[m:], "sd": variance[m:].sqrt()}
        return state
