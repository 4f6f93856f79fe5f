"""DGP: predictions of experts that share hyper-parameters, combined at a server (Deisenroth & Ng 2015).

With N(m_k, v_k) expert k's law of the function at an input and v_0 the prior's variance there, all rules give a law of
precision Σ β_k/v_k + (prior term) and mean (Σ β_k m_k/v_k) / precision:

| rule | β_k | prior term |
|---|---|---|
| poe | 1 | – |
| gpoe | 1/K | – |
| bcm | 1 | (1 − K)/v_0 |
| rbcm | ½ (log v_0 − log v_k) | (1 − Σ β_k)/v_0 |

Hyper-parameters maximise the sum of the experts' likelihoods (shared.py). β_k stands in rbcm's precision too: without
it there, as in one released code, the law does not fall back to the prior where no expert knows anything.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp.shared import Law, SharedGP

RULES = ("poe", "gpoe", "bcm", "rbcm")


def combine(rule: str, mean: Tensor, variance: Tensor, prior: Tensor) -> Law:
    """mean, variance [K, m], prior [m] → the joint law, [m] and [m]."""
    if rule not in RULES:
        raise UserError(f"rule: '{rule}' is unknown; one of {', '.join(RULES)}")
    beta = torch.ones_like(variance)
    if rule == "gpoe":
        beta = beta / len(variance)
    elif rule == "rbcm":
        beta = 0.5 * (prior.log() - variance.log()).clamp_min(0)  # rounding may put v_k above v_0
    precision = (beta / variance).sum(0)
    if rule in ("bcm", "rbcm"):
        precision = precision + (1 - beta.sum(0)) / prior
    return (beta * mean / variance).sum(0) / precision, 1 / precision


class DistributedGP(SharedGP):
    """One expert a device."""

    def predict_together(self, x: Tensor, rule: str = "rbcm", noise: bool = True) -> Law:
        laws = [self.predict(x, device, noise=False) for device in range(len(self.data))]
        mean, variance = (torch.stack(part) for part in zip(*laws, strict=True))
        prior = self.theta.variance.expand(len(x))
        mean, variance = combine(rule, mean, torch.minimum(variance.clamp_min(1e-12), prior), prior)
        return mean, variance + self.theta.noise if noise else variance
