"""L-BFGS-B on the parameters of gpytorch's modules from several starts, and the likelihood that the baselines use.

For exact likelihoods of some hundred samples this takes 50 to 150 evaluations, ten times fewer than Adam, so runs in
sequence are faster than a batch of them. Counted, not hidden: jitter that gpytorch adds to a matrix which is not
positive definite, and evaluations that fail in spite of it.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gpytorch.constraints import GreaterThan
from gpytorch.likelihoods import GaussianLikelihood
from linear_operator.utils.errors import NanError, NotPSDError
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from fedrepro.studies.fgpr.gp.maximum_likelihood import NOISE_FLOOR, Effort

#: objective per sample of a failed evaluation: far above any likelihood, yet a number that a line search can bracket
FAILED = 1e6


def gaussian_likelihood(floor: float = NOISE_FLOOR, batch: tuple[int, ...] = ()) -> GaussianLikelihood:
    return GaussianLikelihood(noise_constraint=GreaterThan(floor), batch_shape=torch.Size(batch))


def maximise(
    objective: Callable[[], Tensor],
    parameters: Sequence[nn.Parameter],
    starts: Iterable[Callable[[], None]] = (lambda: None,),
    evaluations: int = 200,
) -> Effort:
    """Leave `parameters` at the best point found. objective: a scalar of the order of 1 (a likelihood per sample).

    starts: each sets the parameters in place; by default the search begins at their present values.
    """
    from scipy.optimize import minimize  # importing it takes half a second, and every job imports this module

    effort = Effort()
    best: Any = None

    def write(flat: np.ndarray) -> None:
        vector_to_parameters(torch.tensor(flat, dtype=parameters[0].dtype), parameters)

    def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
        write(flat)
        effort.evaluations += 1
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", NumericalWarning)
            try:
                value = -objective()
                found = torch.autograd.grad(value, parameters, allow_unused=True)
            except (NotPSDError, NanError, torch.linalg.LinAlgError):
                effort.failed += 1
                return FAILED, np.zeros_like(flat)
        effort.jittered += bool(caught)
        gradients = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, found, strict=True)]
        gradient = parameters_to_vector(gradients).double().numpy()
        if not (torch.isfinite(value) and np.isfinite(gradient).all()):
            effort.failed += 1
            return FAILED, np.zeros_like(flat)
        return value.item(), gradient

    options = {"maxfun": evaluations, "maxiter": evaluations, "ftol": 1e-9, "gtol": 1e-5}
    for start in starts:
        with torch.no_grad():
            start()
        begin = parameters_to_vector(parameters).detach().double().numpy().copy()
        found = minimize(evaluate, begin, jac=True, method="L-BFGS-B", options=options)
        if best is None or found.fun < best.fun:
            best = found
    write(best.x)
    effort.value, effort.converged = -float(best.fun), bool(best.success)
    return effort


@contextmanager
def no_jitter_warnings() -> Iterator[None]:
    """For predictions at parameters whose fit counted its jitter already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield
