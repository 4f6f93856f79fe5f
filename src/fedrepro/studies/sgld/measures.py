"""Federated SGLD: ends and roughness of the loss curves, the privacy account, the contraction of coupled runs.

- late_loss: mean training loss over the last tenth of the rounds (of those evaluated).
- generalisation_gap: the same of the test loss, minus late_loss.
- roughness: of the training loss over the last two thirds of the rounds (fedrepro.core.metrics).
- epsilon_smallest_node, …_median_node, …_largest_node: ε(δ) after the run, for the nodes with least, median and most
  data; epsilon_each_record: for the median node, if each record's gradient were (or is, `clip_each`) clipped instead.
- attack_bound: the largest advantage of any attack on a record of the median node that ε and δ leave,
  (e^ε − 1 + 2δ)/(e^ε + 1) (Humphries et al. 2020).
- contraction_first, contraction_second: −log of the factor per round by which the distance of coupled runs changes,
  over the first and the second half of the run; distance_left: the last distance over the first.

The paper promises a differential-privacy account and leaves it out. One step of a node adds noise of deviation √(η_q β)
to −η_q·clip(h), where h is the *whole* gradient of a Poisson mini-batch of rate B/n: the mean of its samples'
gradients, plus λ + γ(x − x₀), which depend on earlier releases and on no record. Adding or removing one record changes
h arbitrarily, but both results are clipped to norm C, so they differ by at most 2C. A step is therefore a
Poisson-subsampled Gaussian mechanism with noise multiplier z_q = √(η_q β) / (η_q · 2C) = √(β/η_q) / (2C), and the run
is their adaptive composition over T rounds of Q steps, whichever iterates are released. Clipping each *record's*
gradient to C, as DP-SGD does, would give the sensitivity C/B of a mean over an expected B records instead.
Assumed: neighbours differ by one record of a node (added or removed); n and B are public; the mean divides by the
expected B. The account is opacus' Rényi one, an upper bound on ε.
"""

import functools
import math
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from fedrepro.core.metrics import roughness
from fedrepro.errors import UserError
from fedrepro.evidence.tables import RUN, derived_rows

DELTA = 1e-5  # assumed: the paper gives no δ; below 1/n of every node
LATE = 0.1
#: of the Rényi divergence. The best order comes close to 1 as the noise vanishes, so that little noise needs a fine
#: grid there: on a coarse one ε has a kink wherever the best order changes.
ORDERS = (1.1, 1.2, 1.35, 1.5, 1.75, 2, 2.5, *range(3, 33), 40, 48, 64, 96, 128, 192, 256)
FINE_ORDERS = (*(1 + np.geomspace(1e-6, 0.8, 36)).tolist(), *ORDERS[4:])
LITTLE_NOISE = 0.3  # multipliers below this need the fine ones
ROUNDING = 1.1  # steps of a round that differ by less are counted as equal


def measure(table: pd.DataFrame) -> pd.DataFrame:
    """All measures above that the table's runs allow."""
    found: dict[str, list[dict]] = {}
    for run, frame in table.groupby(RUN, sort=False):
        last = int(frame["round"].max())
        for metric, value in (*_curve(frame), *_account(frame, last), *_contraction(frame)):
            found.setdefault(metric, []).append(dict(zip(RUN, run, strict=True), value=value, round=last))
    return derived_rows(found.items(), table)


def _curve(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    keep = (frame["metric"] == "loss") & (frame["client"] == -1)  # the mean over the nodes
    curves = frame[keep].set_index("round").sort_index()
    losses, test = (curves.loc[curves["split"] == split, "value"] for split in ("train", "test"))
    late = losses.index > (1 - LATE) * losses.index[-1]
    yield "late_loss", float(losses[late].mean())
    if len(test) == len(losses):
        yield "generalisation_gap", float((test - losses)[late].mean())
    settled = losses[losses.index > losses.index[-1] / 3].to_numpy()
    if (np.diff(losses.index) == 1).all() and math.isfinite(rough := roughness(settled)):
        yield "roughness", rough


def _account(frame: pd.DataFrame, rounds: int) -> Iterator[tuple[str, float]]:
    steps = frame[frame["metric"] == "step_size"].sort_values("step")["value"].to_numpy()
    if not len(steps):
        return
    values = frame.set_index("metric")["value"]
    beta, clip, batch = (float(values[[name]].iloc[0]) for name in ("beta", "clip", "batch"))
    sizes = np.sort(values[["samples"]].to_numpy())
    nodes = {"smallest": sizes[0], "median": sizes[len(sizes) // 2], "largest": sizes[-1]}
    whole, each = (noise_multipliers(steps, beta, sensitivity) for sensitivity in (2 * clip, clip / batch))
    used = each if "clip_each" in values and float(values[["clip_each"]].iloc[0]) else whole
    yield "noise_multiplier", float(np.mean(used))
    found = {name: epsilon(used, min(1.0, batch / size), rounds, DELTA) for name, size in nodes.items()}
    yield from ((f"epsilon_{name}_node", value) for name, value in found.items())
    yield "epsilon_each_record", epsilon(each, min(1.0, batch / nodes["median"]), rounds, DELTA)
    yield "attack_bound", math.tanh(found["median"] / 2) + 2 * DELTA / (1 + math.exp(min(found["median"], 700)))


def _contraction(frame: pd.DataFrame) -> Iterator[tuple[str, float]]:
    distances = frame[frame["metric"] == "distance"].sort_values("round")["value"].to_numpy()
    if len(distances) < 3 or distances.min() <= 0:
        return
    middle = len(distances) // 2
    for name, half in (("first", distances[: middle + 1]), ("second", distances[middle:])):
        yield f"contraction_{name}", float(-math.log(half[-1] / half[0]) / (len(half) - 1))
    yield "distance_left", float(distances[-1] / distances[0])


def noise_multipliers(steps: Sequence[float], beta: float, sensitivity: float) -> list[float]:
    """z_q, the noise's deviation in units of one record's largest change: √(η_q β)/(η_q · sensitivity)."""
    return [math.sqrt(beta / eta) / sensitivity for eta in steps]


def epsilon(multipliers: Sequence[float], rate: float, rounds: int, delta: float) -> float:
    """ε(δ) of `rounds` rounds of Poisson-subsampled Gaussian steps with these noise multipliers; infinite without any.
    Multipliers are rounded down to powers of ROUNDING, which keeps ε an upper bound."""
    if not 0 < delta < 1:
        raise UserError(f"delta = {delta}: must lie in (0, 1)")
    if not 0 <= rate <= 1:
        raise UserError(f"rate = {rate}: must lie in [0, 1]")
    if rate == 0 or min(multipliers) <= 0:
        return math.inf if rate else 0.0
    from opacus.accountants.analysis import rdp  # here: it takes seconds to import

    if len(set(multipliers)) > 1:
        multipliers = [ROUNDING ** math.floor(math.log(z) / math.log(ROUNDING)) for z in multipliers]
    orders = FINE_ORDERS if min(multipliers) < LITTLE_NOISE else ORDERS
    spent = sum(rounds * count * np.array(_renyi(z, rate, orders)) for z, count in Counter(multipliers).items())
    with warnings.catch_warnings():  # a better order may lie beyond the ends: ε remains an upper bound
        warnings.filterwarnings("ignore", message="Optimal order is the (smallest|largest) alpha")
        return float(rdp.get_privacy_spent(orders=list(orders), rdp=spent, delta=delta)[0])


@functools.cache
def _renyi(multiplier: float, rate: float, orders: tuple[float, ...]) -> tuple[float, ...]:
    """Rényi divergence of one step, at each order."""
    from opacus.accountants.analysis import rdp

    return tuple(map(float, rdp.compute_rdp(q=rate, noise_multiplier=multiplier, steps=1, orders=list(orders))))
