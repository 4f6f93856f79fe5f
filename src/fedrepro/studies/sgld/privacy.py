"""The differential-privacy account of a node that runs the SGLD oracle: the paper promises one and leaves it out.

One step of a node adds noise of deviation √(η_q β) to −η_q·clip(h), where h is the *whole* gradient of a Poisson
mini-batch of rate B/n: the mean of its samples' gradients, plus λ + γ(x − x₀), which depend on earlier releases and on
no record. Adding or removing one record changes h arbitrarily, but both results are clipped to norm C, so they differ
by at most 2C (two opposite vectors of norm C). A step is therefore a Poisson-subsampled Gaussian mechanism with

    noise multiplier  z_q = √(η_q β) / (η_q · 2C) = √(β/η_q) / (2C)

and the run is their adaptive composition over T rounds of Q steps, whichever iterates are released. Clipping each
*record's* gradient to C, as DP-SGD does, would give the sensitivity C/B of a mean over an expected B records instead.

Assumed: neighbours differ by one record of a node (added or removed); n and B are public; the mean divides by the
expected B. The account is opacus' Rényi one, an upper bound on ε.
"""

import functools
import math
import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np

from fedrepro.errors import UserError

WHOLE_BATCH, EACH_RECORD = "whole batch", "each record"
#: of the Rényi divergence: little noise needs orders close to 1, much noise large ones
ORDERS = (1.0001, 1.001, 1.01, 1.1, 1.5, *range(2, 65), 96, 128, 192, 256)
ROUNDING = 1.1  # steps of a round that differ by less are counted as equal


def sensitivity(clip: float, batch: float, clipping: str = WHOLE_BATCH) -> float:
    """The largest change of the clipped gradient by one record."""
    return 2 * clip if clipping == WHOLE_BATCH else clip / batch


def noise_multipliers(steps: Sequence[float], beta: float, sensitivity: float) -> list[float]:
    """z_q, the noise's deviation in units of one record's largest change: √(η_q β)/(η_q · sensitivity)."""
    return [math.sqrt(beta / eta) / sensitivity for eta in steps]


def epsilon(multipliers: Sequence[float], rate: float, rounds: int, delta: float) -> float:
    """ε(δ) of `rounds` rounds, each a sequence of Poisson-subsampled Gaussian steps with these noise multipliers.

    Infinite without noise. Multipliers are rounded down to powers of ROUNDING, which keeps ε an upper bound.
    """
    if not 0 < delta < 1:
        raise UserError(f"delta = {delta}: must lie in (0, 1)")
    if not 0 <= rate <= 1:
        raise UserError(f"rate = {rate}: must lie in [0, 1]")
    if rate == 0:
        return 0.0
    if min(multipliers) <= 0:
        return math.inf
    from opacus.accountants.analysis import rdp  # here: it takes seconds to import

    if len(set(multipliers)) > 1:
        multipliers = [ROUNDING ** math.floor(math.log(z) / math.log(ROUNDING)) for z in multipliers]
    counts = Counter(multipliers)
    spent = sum(rounds * count * np.array(_renyi(z, rate)) for z, count in counts.items())
    with warnings.catch_warnings():  # a better order may lie beyond the ends: ε remains an upper bound
        warnings.filterwarnings("ignore", message="Optimal order is the (smallest|largest) alpha")
        return float(rdp.get_privacy_spent(orders=list(ORDERS), rdp=spent, delta=delta)[0])


@functools.cache
def _renyi(multiplier: float, rate: float) -> tuple[float, ...]:
    """Rényi divergence of one step, at each of ORDERS."""
    from opacus.accountants.analysis import rdp

    return tuple(map(float, rdp.compute_rdp(q=rate, noise_multiplier=multiplier, steps=1, orders=list(ORDERS))))
