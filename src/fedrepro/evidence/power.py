"""What to run next: seeds for 80 % power, and the time that these, or the published settings, take.

Power of a one-sided test at α/2: P(t'(df, δ) > t(1 − α/2, df)), t' noncentral with δ = effect/se, se² = s²/n plus that
of a printed mean. Of two one-sided tests (a printed value): at least 2·power − 1. s is the spread seen; the effect is
the margin or tolerance where there is one; without one, or where the seeds had that power already, it is the distance
from the nearest limit that was seen. Within a family, α is divided by the number of its claims that are still
undecided, which is what Holm's correction leaves of it.

Times are those of the manifests: seconds per seed of the same experiment and algorithm. To a larger setting they are
scaled by the arithmetic: rounds, local epochs × samples or local steps × clients, and the square of a network's width.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from scipy import special

from fedrepro.evidence.decisive import Gap
from fedrepro.evidence.intervals import ALPHA, welch
from fedrepro.evidence.verdicts import FEWEST

POWER = 0.8
MOST_SEEDS = 10_000
CERTAIN = 30.0  # noncentrality beyond which the power is 1 for all that matters
UNITS = (("h", 3600.0, 5400.0), ("min", 60.0, 90.0), ("s", 1.0, 0.0))  # unit, seconds, from how many on


@dataclass(frozen=True)
class Plan:
    """What decides a claim: the effect to be shown, the spread over seeds, the printed standard error and its runs;
    `seen`: the distance from the nearest verdict's limits that was seen. `both`: two one-sided tests."""

    effect: float
    s: float
    seen: float = 0.0
    printed_se: float = 0.0
    printed_runs: float = math.inf
    both: bool = False

    def power(self, n: int, alpha: float = ALPHA) -> float:
        """Of `n` seeds, for the effect."""
        se, df = welch(self.s / math.sqrt(n), n - 1, self.printed_se, self.printed_runs)
        if self.effect > CERTAIN * se:
            return 1.0
        if se == 0:
            return 0.0
        shift = self.effect / se
        one = 1 - float(special.nctdtr(df, shift, special.stdtrit(df, 1 - alpha / 2)))
        return max(0.0, 2 * one - 1) if self.both else one

    def seeds(self, alpha: float = ALPHA, have: int = 0) -> int | None:
        """The smallest number of seeds, more than `have`, with 80 % power; None above MOST_SEEDS. Where `have` seeds
        have that power for the effect already, the truth lies nearer a limit, and the distance seen counts."""
        low = high = max(FEWEST, have + 1)
        if have >= FEWEST and self.power(have, alpha) >= POWER:
            return replace(self, effect=self.seen, both=False).seeds(alpha, have) if self.seen != self.effect else low
        while self.power(high, alpha) < POWER:
            low, high = high + 1, 2 * high
            if low > MOST_SEEDS:
                return None
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle, alpha) >= POWER else (middle + 1, high)
        return low


def seconds_per_seed(manifests: Iterable[Mapping[str, Any]]) -> float:
    """Of all settings of one algorithm; NaN without a run."""
    runs = list(manifests)
    seeds = sum(len(run["seeds"]) for run in runs)
    return sum(run["seconds"] for run in runs) / seeds if seeds else math.nan


def growth(gaps: Iterable[Gap], config: Mapping[str, Any]) -> float:
    """How many times longer a run takes once the gaps are closed."""
    by_epochs, factor = "epochs" in config["local"], 1.0
    for gap in gaps:
        last = gap.setting.rpartition(".")[2]
        numbers = all(isinstance(v, int | float) and v > 0 for v in (gap.has, gap.wants))
        counts = last in ("rounds", "epochs", "steps") or last in (("train", "samples") if by_epochs else ("clients",))
        if numbers and not gap.setting.startswith("algorithms"):
            factor *= (gap.wants / gap.has) ** (2 if last == "width" else counts)
    return factor


def told(seconds: float) -> str:
    """`about 3 min`; empty where unknown."""
    if not math.isfinite(seconds):
        return ""
    unit, size, _ = next(u for u in UNITS if seconds >= u[2])
    number = seconds / size
    return f"about {number:.1f} {unit}" if unit == "h" and number < 10 else f"about {max(1, round(number)):,} {unit}"


def seconds_in(text: str) -> float:
    """The time that `told` wrote at the end of a text; infinite where there is none."""
    _, found, end = text.rpartition("about ")
    number, _, unit = end.partition(" ")
    sizes = {unit: size for unit, size, _ in UNITS}
    return float(number.replace(",", "")) * sizes[unit] if found and unit in sizes else math.inf
