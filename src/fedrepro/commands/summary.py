"""The README's table of verdicts: `python -m fedrepro.commands.summary LEDGER README`."""

import re
import sys
from pathlib import Path

import pandas as pd

from fedrepro.core.study import load_studies
from fedrepro.evidence.ledger import VERDICTS
from fedrepro.files import ROOT, write_atomically

_PLACE = re.compile(r"(<!-- summary -->\n).*?(<!-- /summary -->)", re.DOTALL)


def summary(ledger: pd.DataFrame, config: Path = ROOT / "config") -> str:
    """A markdown table: one row per study, with its scale, and one column per verdict."""
    studies = load_studies(config)
    lines = [f"| study | paper | scale | {' | '.join(VERDICTS)} |", f"|---|---|---|{'---:|' * len(VERDICTS)}"]
    for study, claims in ledger.groupby("study", sort=False):
        counts = claims["verdict"].value_counts()
        cells = " | ".join(str(counts.get(v, 0)) for v in VERDICTS)
        lines.append(f"| `{study}` | {studies[study].paper} | {claims['scale'].iloc[0]} | {cells} |")
    return "\n".join(lines) + "\n"


def with_summary(readme: str, table: str) -> str:
    """The text with the table between its two marks."""
    if not _PLACE.search(readme):
        raise ValueError("the README has no marks for the summary")
    return _PLACE.sub(lambda m: m[1] + table + m[2], readme)


if __name__ == "__main__":
    ledger, readme = map(Path, sys.argv[1:3])
    write_atomically(readme, with_summary(readme.read_text(), summary(pd.read_csv(ledger))))
