"""The README's table of verdicts, made from a ledger: `python -m fedrepro.commands.summary LEDGER README`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd

from fedrepro.evidence.ledger import VERDICTS
from fedrepro.files import write_atomically

PAPERS = {
    "sa": "Stochastic approximation approach to federated machine learning (arXiv 2402.12945)",
    "omni": "Federated algorithm with Bayesian approach: Omni-Fedge (ICASSP 2021)",
    "sgld": "A stochastic gradient Langevin dynamics algorithm for noise intrinsic federated learning (ICLR 2021)",
    "gifair": "GIFAIR-FL: a framework for group and individual fairness in federated learning (thesis, ch. 2)",
    "fedlin": "Federated data analytics: a study on linear models (thesis, ch. 3)",
    "fgpr": "Federated Gaussian process regression (thesis, ch. 4)",
    "dfl": "Distributed federated learning by alternating periods of training (arXiv 2601.01793)",
}
_PLACE = re.compile(r"(<!-- summary -->\n).*?(<!-- /summary -->)", re.DOTALL)


def summary(ledger: pd.DataFrame) -> str:
    """A markdown table: a row a study with the scale it was run at, a column a verdict."""
    lines = [f"| study | paper | scale | {' | '.join(VERDICTS)} |", f"|---|---|---|{'---:|' * len(VERDICTS)}"]
    for study, claims in ledger.groupby("study", sort=False):
        counts = claims["verdict"].value_counts()
        cells = " | ".join(str(counts.get(v, 0)) for v in VERDICTS)
        lines.append(f"| `{study}` | {PAPERS[study]} | {claims['scale'].iloc[0]} | {cells} |")
    return "\n".join(lines) + "\n"


def with_summary(readme: str, table: str) -> str:
    """The text with the table between its two marks."""
    if not _PLACE.search(readme):
        raise ValueError("the README has no place for the summary")
    return _PLACE.sub(lambda m: m[1] + table + m[2], readme)


if __name__ == "__main__":
    ledger, readme = map(Path, sys.argv[1:3])
    write_atomically(readme, with_summary(readme.read_text(), summary(pd.read_csv(ledger))))
