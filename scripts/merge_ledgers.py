"""Rule merge_ledgers: the verdicts of all studies in one ledger."""

from pathlib import Path

from fedrepro.evidence.ledger import merge
from fedrepro.workflow.jobs import logged


def main(ledgers: list[str], out: str) -> None:
    merge(map(Path, ledgers), Path(out))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        main(snakemake.input.ledgers, snakemake.output.ledger)
