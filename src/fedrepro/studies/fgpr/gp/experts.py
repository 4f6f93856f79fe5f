"""DGP: predictions of experts that share hyper-parameters, combined at a server (Deisenroth & Ng 2015).

N(m_k, v_k) is expert k's law of the function at an input and v_0 the prior's variance there. All rules give a law of
precision Σ β_k/v_k + (prior term) and mean (Σ β_k m_k/v_k) / precision:

| rule | β_k | prior term |
|---|---|---|
| poe | 1 | – |
| gpoe | 1/K | – |
| bcm | 1 | (1 − K)/v_0 |
| rbcm | ½ (log v_0 − log v_k) | (1 − Σ β_k)/v_0 |

β_k also stands in rbcm's precision. Without it, as in one released code, the law does not return to the prior where no
expert has data.
"""

import torch
from torch import Tensor

from fedrepro.errors import UserError
from fedrepro.studies.fgpr.gp.exact import Law

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
