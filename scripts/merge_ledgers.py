"""Rule merge_ledgers: the verdicts, readings and headlines of all studies, in one table each."""

from pathlib import Path

from fedrepro.evidence.ledger import merge
from fedrepro.workflow.jobs import job


def main(ledgers: list[str], out: str, readings: str, headlines: str) -> None:
    merge(map(Path, ledgers), Path(out))
    merge(map(Path, ledgers), Path(readings), "readings")
    merge(map(Path, ledgers), Path(headlines), "headlines")


if "snakemake" in globals():
    with job(snakemake):
        o = snakemake.output
        main(snakemake.input.ledgers, o.ledger, o.readings, o.headlines)
