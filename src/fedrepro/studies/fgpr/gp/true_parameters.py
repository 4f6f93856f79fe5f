"""The true parameters of simulated data, and the distance of an estimate from them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.core.federation import Federation
from fedrepro.core.params import Params
from fedrepro.errors import UserError


def true_lengthscale(federation: Federation, like: Tensor) -> Tensor:
    """l in the shape of `like` [S, p]; 1 for columns that are all 0, where any value will do."""
    if "lengthscale" not in federation.facts:
        raise UserError("fgpr: known = 'lengthscale': this data set does not know its true lengthscale")
    own = np.where(np.isfinite(federation.facts["lengthscale"]), federation.facts["lengthscale"], 1.0)
    if like.shape[-1] == 1 and len(set(own)) > 1:
        raise UserError("fgpr: known = 'lengthscale': there is one for each input; the model needs ard")
    return torch.from_numpy(own).to(like)[: like.shape[-1]].expand(like.shape).clone()


def parameter_errors(problem: Problem, models: Sequence[Params]) -> Iterator[Metric]:
    """Squared distances from the truth, averaged over `models`; nothing if the data set does not know it."""
    facts = problem.federation.facts
    if not {"signal", "noise", "lengthscale"} <= set(facts):
        return
    model: Any = problem.task.model
    thetas = [model.theta(w) for w in models]
    signal = np.mean([(t.variance.sqrt() - float(facts["signal"])).square().item() for t in thetas])
    noise = np.mean([(t.noise.sqrt() - float(facts["noise"])).square().item() for t in thetas])
    yield Metric("error_signal", signal)
    yield Metric("error_noise", noise)
    yield Metric("error", signal + noise)
    finite = np.isfinite(facts["lengthscale"])
    truth = torch.from_numpy(facts["lengthscale"][finite])
    off = [(t.lengthscale[0].expand(len(finite))[finite].cpu() - truth).square().sum().item() for t in thetas]
    yield Metric("error_lengthscale", np.mean(off))
