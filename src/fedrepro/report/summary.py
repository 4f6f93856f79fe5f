"""The README's table of results, made from the committed reference."""

import re
from pathlib import Path

import pandas as pd

from fedrepro.core.study import load_studies
from fedrepro.files import ROOT
from fedrepro.report.claims import ORIGINS, VERDICTS

CONTRADICTED = "contradicted by the source"
PLACE = re.compile(r"(<!-- summary -->\n).*?(<!-- /summary -->)", re.DOTALL)  # of the table in the README


def summary(ledger: pd.DataFrame, headlines: pd.DataFrame, config: Path = ROOT / "config") -> str:
    """The README's table, one row per study: its headlines, the paper's own claims by verdict, and the numbers of
    claims on printed numbers and of claims added by us."""
    studies = load_studies(config)
    heads = ("study", "paper", "scale", "headlines", *VERDICTS, "printed", "added")
    lines = [f"| {' | '.join(heads)} |", f"|---|---|---|---|{'---:|' * (len(heads) - 4)}"]
    for study, claims in ledger.groupby("study", sort=False):
        by_origin = {origin: own["verdict"].value_counts() for origin, own in claims.groupby("origin")}
        own, printed, added = (by_origin.get(origin, pd.Series(dtype=int)) for origin in ORIGINS)
        messages = headlines.loc[headlines["study"] == study, "verdict"].value_counts()
        told = ", ".join(f"{messages[v]} {v}" for v in VERDICTS if v in messages)
        wrong = printed.get(CONTRADICTED, 0)
        cells = [f"`{study}`", studies[str(study)].paper, claims["scale"].iloc[0], told]
        cells += [str(own.get(v, 0)) for v in VERDICTS]
        cells += [f"{printed.sum()}" + f", {wrong} contradicted" * bool(wrong), str(added.sum())]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_summary(readme: str, table: str) -> str:
    """The text with the table between its two marks."""
    if not PLACE.search(readme):
        raise ValueError("the README has no marks for the summary")
    return PLACE.sub(lambda m: m[1] + table + m[2], readme)
