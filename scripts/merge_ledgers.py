"""Rule merge_ledgers: all studies' verdicts in one ledger."""

from pathlib import Path

import pandas as pd

from fedrepro.files import write_atomically
from fedrepro.jobs import logged


def main(ledgers, out):
    write_atomically(Path(out), pd.concat(map(pd.read_csv, ledgers)).to_csv(index=False))


if "snakemake" in globals():
    with logged(snakemake.log[0]):
        main(snakemake.input.ledgers, snakemake.output.ledger)
