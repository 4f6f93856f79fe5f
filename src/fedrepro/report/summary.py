"""Tables made from the committed reference: the README's, one row per study, and those of docs/findings/<study>.md, one
row per headline."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from fedrepro.core.study import Study, load_studies
from fedrepro.files import ROOT, write_atomically
from fedrepro.report.claims import ORIGINS, VERDICTS

PLACE = re.compile(r"(<!-- summary -->\n).*?(<!-- /summary -->)", re.DOTALL)  # of a table in a text
HEADS = ("study", "main message", "holds?", "evidence", "biggest caveat")
NOT_RUN = "not run yet"
FINDINGS = "docs/findings/{}.md"


def summary(ledger: pd.DataFrame, headlines: pd.DataFrame, config: Path = ROOT / "config") -> str:
    """The README's table: of each study its main message, the verdict on it, and what the verdict rests on."""
    return _table(HEADS, (_row(study, ledger, headlines) for study in load_studies(config).values()))


def _row(study: Study, ledger: pd.DataFrame, headlines: pd.DataFrame) -> list[str]:
    message = study.headlines[study.main].quote if study.main else study.title
    own = headlines[headlines["study"] == study.name]
    main = own[own["headline"] == study.main]
    link = f"[`{study.name}`]({FINDINGS.format(study.name)})"
    if main.empty:
        return [link, f"“{message}”", NOT_RUN, "", study.caveat]
    verdict, held = main["verdict"].iloc[0], (own["verdict"] == "reproduced").sum()
    holds = f"{VERDICTS[verdict][1]} {verdict}; {held} of {len(own)} headlines reproduced"
    return [link, f"“{message}”", holds, _evidence(study, ledger, main["claims"].iloc[0].split()), study.caveat]


def _evidence(study: Study, ledger: pd.DataFrame, claims: list[str]) -> str:
    """Scale, seeds and data of the claims that the main message rests on."""
    ids = [claim if "/" in claim else f"{study.name}/{claim}" for claim in claims]
    rows = ledger[ledger["claim"].isin(ids)]
    run = rows[rows["evidence"] != ""]
    if run.empty:
        return f"{_claims(len(rows))}, none run yet"
    numbers = sorted({int(seeds) for seeds in run["seeds"] if seeds})
    seeds = f"{numbers[0]}–{numbers[-1]} seeds" if len(numbers) > 1 else f"{numbers[0]} seeds" if numbers else ""
    kinds = " and ".join(sorted({kind for kind in run["data"] if kind}))
    settings = (
        "published settings" if set(run["evidence"]) == {"published settings"} else f"scale {run['scale'].iloc[0]}"
    )
    counted = _claims(len(rows)) if len(run) == len(rows) else f"{len(run)} of {_claims(len(rows))} run"
    return ", ".join(filter(None, [counted, settings, seeds, f"{kinds} data" * bool(kinds)]))


def _claims(number: int) -> str:
    return f"{number} claim{'s' * (number != 1)}"


def findings(study: Study, ledger: pd.DataFrame, headlines: pd.DataFrame) -> str:
    """A study's headlines with their verdicts, and its claims counted by origin and verdict."""
    own, claims = headlines[headlines["study"] == study.name], ledger[ledger["study"] == study.name]
    if own.empty:
        return (
            "This study has no reference run yet: its claims are open until it has been run at its decisive settings.\n"
        )
    rows = ([_sign(h.verdict), h.says, f"“{h.quote}” ({h.place})", h.reason] for h in own.itertuples())
    counts = (_counted(claims[claims["origin"] == origin], words) for origin, words in ORIGINS.items())
    scale = claims["scale"].iloc[0]
    return (
        _table(("verdict", "headline", "the paper's words", "because"), rows)
        + "\n"
        + (f"Reference run at scale `{scale}`. Claims: {'; '.join(filter(None, counts))}.\n")
    )


def _sign(verdict: str) -> str:
    return f"{VERDICTS[verdict][1]} {verdict}"


def _counted(claims: pd.DataFrame, words: str) -> str:
    found = claims["verdict"].value_counts()
    told = ", ".join(f"{found[verdict]} {verdict}" for verdict in VERDICTS if verdict in found)
    return f"{words}: {told}" if told else ""


def _table(heads: tuple[str, ...], rows: Iterator[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |\n" for line in lines)


def with_summary(text: str, table: str) -> str:
    """The text with the table between its two marks."""
    if not PLACE.search(text):
        raise ValueError("the text has no marks for the summary")
    return PLACE.sub(lambda m: m[1] + table + m[2], text)


def tables(ledger: pd.DataFrame, headlines: pd.DataFrame, root: Path = ROOT) -> Mapping[Path, str]:
    """File → its text with the table that belongs there: the README and the findings of every study."""
    readme = root / "README.md"
    written = {readme: with_summary(readme.read_text(encoding="utf-8"), summary(ledger, headlines, root / "config"))}
    for study in load_studies(root / "config").values():
        path = root / FINDINGS.format(study.name)
        written[path] = with_summary(path.read_text(encoding="utf-8"), findings(study, ledger, headlines))
    return written


def write_tables(ledger: pd.DataFrame, headlines: pd.DataFrame, root: Path = ROOT) -> None:
    for path, text in tables(ledger, headlines, root).items():
        write_atomically(path, text)
