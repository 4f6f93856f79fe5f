"""Rule merge_ledgers: all studies' verdicts in one ledger."""

from pathlib import Path

from fedrepro.jobs import logged
from fedrepro.ledger import merge


def main(ledgers, out):
    merge(map(Path, ledgers), Path(out))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        main(snakemake.input.ledgers, snakemake.output.ledger)
