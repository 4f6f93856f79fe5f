"""Maximum likelihood to convergence: L-BFGS-B on the parameters of gpytorch modules, from several starts.

For exact likelihoods of some hundred samples this takes 50 to 150 evaluations, ten times fewer than Adam, so that runs
one after the other are faster than a batch of them. Jitter that gpytorch adds to a matrix which is not positive
definite, and evaluations that fail in spite of it, are counted, not hidden.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor, nn

#: what a failed evaluation counts, as an objective a sample: far above any likelihood, yet a number that a line search
#: can bracket
FAILED = 1e6


@dataclass
class Effort:
    """What a fit took: evaluations of the objective, those that failed, those in which jitter was added."""

    value: float = -np.inf
    evaluations: int = 0
    failed: int = 0
    jittered: int = 0
    converged: bool = False

    def plus(self, other: Effort, last: bool = True) -> Effort:
        """Both together, ending where the higher value is; `last`: whether the other's end counts."""
        end = other if last and other.value > self.value else self
        counts = (getattr(self, name) + getattr(other, name) for name in ("evaluations", "failed", "jittered"))
        return Effort(end.value, *counts, end.converged)


def maximise(
    objective: Callable[[], Tensor],
    parameters: Sequence[nn.Parameter],
    starts: Iterable[Callable[[], None]] = (lambda: None,),
    evaluations: int = 200,
) -> Effort:
    """Leave `parameters` at the best point found. objective: a scalar, of the order of 1 (a likelihood a sample).

    starts: each sets the parameters in place; without any, the search begins where they stand.
    """
    effort, best = Effort(), None

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        _write(parameters, flat)
        effort.evaluations += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", NumericalWarning)
            try:
                value = -objective()
                gradients = torch.autograd.grad(value, parameters, allow_unused=True)
            except (NotPSDError, NanError, torch.linalg.LinAlgError):
                effort.failed += 1
                return FAILED, np.zeros_like(flat)
        effort.jittered += bool(caught)
        gradients = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, gradients, strict=True)]
        gradient = torch.cat([g.reshape(-1) for g in gradients]).double().numpy()
        if not (torch.isfinite(value) and np.isfinite(gradient).all()):
            effort.failed += 1
            return FAILED, np.zeros_like(flat)
        return value.item(), gradient

    from scipy.optimize import minimize  # here: it takes half a second to import, and every job imports this module

    for start in starts:
        with torch.no_grad():
            start()
        options = {"maxfun": evaluations, "maxiter": evaluations, "ftol": 1e-9, "gtol": 1e-5}
        found = minimize(evaluate, _read(parameters), jac=True, method="L-BFGS-B", options=options)
        if best is None or found.fun < best.fun:
            best = found
    _write(parameters, best.x)
    effort.value, effort.converged = -float(best.fun), bool(best.success)
    return effort


@contextmanager
def jitter_unsaid() -> Iterator[None]:
    """For predictions at parameters whose fit counted its jitter already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield


def _read(parameters: Sequence[nn.Parameter]) -> np.ndarray:
    return torch.cat([p.detach().reshape(-1) for p in parameters]).double().numpy().copy()


@torch.no_grad()
def _write(parameters: Sequence[nn.Parameter], flat: np.ndarray) -> None:
    start = 0
    for p in parameters:
        p.copy_(torch.from_numpy(flat[start : start + p.numel()]).view(p.shape))
        start += p.numel()
