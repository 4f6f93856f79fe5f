"""The training runs that a claim rests on."""

from collections.abc import Iterable
from pathlib import Path

from fedrepro.evidence.claim_files import Claim, quantities_of


def runs_behind(results: Path, study: str, claim: Claim) -> list[Path]:
    """The manifests of the runs whose numbers a claim or one of its readings uses, by experiment and algorithm."""
    specs: Iterable[dict[str, object]] = (claim.spec, *claim.readings.values())
    quantities = sorted({found for spec in specs for found in quantities_of(spec)})
    paths = (sorted(results.glob(f"runs/{study}/{e}/{algorithm or '*'}/*.json")) for e, algorithm in quantities)
    return list(dict.fromkeys(path for found in paths for path in found))
