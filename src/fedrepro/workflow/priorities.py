"""The order of training jobs: those first that decide most headlines per hour.

An experiment's share in a headline is one over the number of experiments that the headline's claims rest on. Its cost
is the number of samples that its clients read in training. Only the order counts, so the unit does not matter.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from pathlib import Path

from fedrepro.core.experiment import Experiment
from fedrepro.core.study import Study
from fedrepro.evidence.claim_files import load_claims, quantities_of
from fedrepro.evidence.headlines import claims_of
from fedrepro.workflow.counts import samples_read


def priorities(experiments: Iterable[Experiment], headlines: Iterable[Iterable[str]]) -> dict[str, int]:
    """Id of each experiment → its priority, from 1 (least) on; 0 where no headline rests on it. headlines: the ids of
    the experiments behind each."""
    costs = {e.id: max(1, samples_read(e)) for e in experiments}
    decided = dict.fromkeys(costs, Fraction(0))
    for behind in (set(ids) & set(costs) for ids in headlines):
        for id in behind:
            decided[id] += Fraction(1, len(behind))
    ranked = sorted((id for id, share in decided.items() if share), key=lambda id: (decided[id] / costs[id], id))
    return {**dict.fromkeys(costs, 0), **{id: place for place, id in enumerate(ranked, 1)}}


def behind_headlines(studies: Iterable[Study]) -> list[set[str]]:
    """The ids of the experiments behind each headline."""
    found = []
    for study in studies:
        needed = needed_by_claims(path) if (path := study.file("claims.yaml")) else {}
        for headline in study.headlines.values():
            named = set[str]().union(*(needed[claim] for claim in claims_of(headline, needed)))
            found.append({f"{study.name}/{experiment}" for experiment in named})
    return found


@cache  # reading a study's claims takes a quarter of a second, and each of its artefacts asks
def needed_by_claims(path: Path) -> dict[str, set[str]]:
    """Id of each claim of a file → the experiments that its main reading needs; others may stay untested."""
    return {c.id: {e for e, _ in quantities_of(c.spec)} for c in load_claims(path).claims.values()}
