"""Scores of a normal predictive law N(m, v) at held-out targets y, over the last axis: [..., n] → [...].

- rmse, the error reported in the thesis;
- nlpd, the mean of −log N(y; m, v);
- crps, the mean of ∫ (F(t) − 1{t ≥ y})² dt = s (z (2Φ(z) − 1) + 2φ(z) − 1/√π) with s² = v, z = (y − m)/s;
- coverage_p, the share of targets inside the central p % interval: p/100 where the law is calibrated.
"""

import math

import torch
from torch import Tensor
from torch.distributions import Normal

LEVELS = (50, 80, 90, 95)
SMALLEST_VARIANCE = 1e-12  # rounding may leave 0


def _sd(variance: Tensor) -> Tensor:
    return variance.clamp_min(SMALLEST_VARIANCE).sqrt()


def rmse(mean: Tensor, y: Tensor) -> Tensor:
    return (mean - y).square().mean(-1).sqrt()


def nlpd(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    return -Normal(mean, _sd(variance)).log_prob(y).mean(-1)


def crps(mean: Tensor, variance: Tensor, y: Tensor) -> Tensor:
    s = _sd(variance)
    z = (y - mean) / s
    density = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    return (s * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))).mean(-1)


def coverage(mean: Tensor, variance: Tensor, y: Tensor, level: float) -> Tensor:
    """level in percent."""
    half = math.sqrt(2) * torch.erfinv(torch.tensor(level / 100, dtype=torch.float64)).item()
    return ((y - mean).abs() <= half * _sd(variance)).to(mean.dtype).mean(-1)


def scores(mean: Tensor, variance: Tensor, y: Tensor) -> dict[str, Tensor]:
    """All scores by name."""
    found = {"rmse": rmse(mean, y), "nlpd": nlpd(mean, variance, y), "crps": crps(mean, variance, y)}
    return found | {f"coverage_{level}": coverage(mean, variance, y, level) for level in LEVELS}
