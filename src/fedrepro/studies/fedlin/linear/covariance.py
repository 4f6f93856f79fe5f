"""The covariance Ω between devices, of parameters Θ kept as rows: theta [K, P], P = d·S for S independent outputs."""

import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from fedrepro.core.algorithm import Metric


def by_output(theta: Tensor, outputs: int) -> Tensor:
    """[K, d·S] → [S, K, d]."""
    return theta.view(len(theta), -1, outputs).permute(2, 0, 1)


def pulls(theta: Tensor, omega: Tensor, jitter: float = 0.0) -> Tensor:
    """p_k = Σ_i θ_i Ω⁻¹_ik for every device: [K, P]; omega [S, K, K].

    The inverse is of Ω + jitter · mean(diag Ω) · I. If even this is singular, the result is not finite and the engine
    records a diverged run.
    """
    if jitter:
        omega = omega.clone()
        diagonal = omega.diagonal(dim1=-2, dim2=-1)
        diagonal += jitter * diagonal.mean(-1, keepdim=True)
    solved, _ = torch.linalg.solve_ex(omega, by_output(theta, len(omega)))
    return solved.permute(1, 2, 0).reshape(theta.shape)


def updated(omega: Tensor, theta: Tensor, kept: float, alpha: float) -> Tensor:
    """kept · Ω + (α/d) ΘᵀΘ for every output: [S, K, K]."""
    each = by_output(theta, len(omega)).contiguous()
    return torch.baddbmm(omega, each, each.mT, beta=kept, alpha=alpha / each.shape[-1])


def parameter_errors(theta: Tensor, facts: Mapping[str, np.ndarray]) -> Iterator[Metric]:
    """‖Θ̂ − Θ*‖/√K (§3.5.1) per output, for data with known true parameters: theta [K, P]."""
    if "theta" in facts:
        names = output_names(facts)
        off = by_output(theta - torch.from_numpy(facts["theta"]).to(theta).view(theta.shape), len(names))
        for name, error in zip(names, off.flatten(1).norm(dim=1).tolist(), strict=True):
            yield Metric("parameter_error", error / math.sqrt(len(theta)), "server", group=name)


def output_names(facts: Mapping[str, np.ndarray]) -> list[str]:
    """Names of a data set's outputs; a single one may have none."""
    return facts["outputs"].tolist() if "outputs" in facts else [""]
