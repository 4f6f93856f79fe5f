"""Helpers of the notebooks: read results, show artefacts, tables and verdicts. Nothing here computes a result."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, display

from fedrepro.core.checksums import check
from fedrepro.core.study import study_folders, study_of
from fedrepro.evidence.assumptions import assumed_settings, errata
from fedrepro.files import ROOT, read_json
from fedrepro.report.claims import ORIGINS, VERDICTS
from fedrepro.report.formats import interval_text, p_texts, short_number
from fedrepro.report.notebook_tables import Table, as_html, folded, picture
from fedrepro.report.page import ERRATUM, by_severity

FEW = 5  # named claims that are also told in sentences
#: columns of the tables of claims
CLAIM = (
    "claim",
    "paper says",
    "our test",
    "ours",
    "interval",
    "p",
    "verdict",
    "reason",
    "evidence",
    "reading",
    "origin",
)


@dataclass(frozen=True)
class Study:
    """A study's results in one results/<scale> folder."""

    results: Path
    name: str

    def table(self, experiment: str) -> pd.DataFrame:
        """The tidy table of an experiment."""
        return pd.read_parquet(check(self.results / "tables" / self.name / f"{experiment}.parquet"))

    def ledger(self) -> pd.DataFrame:
        return pd.read_csv(check(self.results / "ledgers" / f"{self.name}.csv"))

    def show(self, artefact: str) -> None:
        """An artefact's picture (or table) with its title and caption."""
        base = self.results / "artefacts" / self.name / artefact
        about = read_json(check(base.with_suffix(".json")))
        data = ", ".join(about["data"]) or "none"
        _html("<p><strong>{}</strong> ({}; data: {})</p>", about["title"], about["source"], data)
        if about["kind"] == "figure":
            display(HTML(picture(check(base.with_suffix(".png")), f"{about['title']}: {about['caption']}")))
        else:
            display(Table(pd.read_csv(check(base.with_suffix(".csv")))))
        _html("<p>{}</p>", about["caption"])

    def opening(self, config: Path = ROOT / "config") -> None:
        """Who wrote the paper, the verdict on its main message, and on all headlines; computed from the results."""
        study = study_of(config, self.name)
        rows = _texts(self.results / "headlines" / f"{self.name}.csv")
        main = rows[rows["main"].str.lower() == "true"]
        held = f"{(rows['verdict'] == 'reproduced').sum()} of {len(rows)} headlines are reproduced"
        scale = ", ".join(sorted(set(_texts(self.results / "ledgers" / f"{self.name}.csv")["scale"])))
        _html("<p>{}: <em>{}</em> ({})</p>", ", ".join(study.authors), study.title, study.venue)
        for row in main.itertuples():
            verdict, why = f"{VERDICTS[row.verdict][1]} {row.verdict}", f"{row.reason[:1].upper()}{row.reason[1:]}"
            _html("<p><strong>{}</strong>: “{}” ({}). {}.</p>", verdict, row.quote, row.place, why)
        _html("<p>In this run (scale {}) {}. {}</p>", scale, held, study.caveat)
        _headlines(rows.drop(columns="study"))

    def headlines(self) -> None:
        """What the paper wants believed, in its words, each with its verdict and why."""
        _headlines(_texts(self.results / "headlines" / f"{self.name}.csv"))

    def verdicts(self, *claims: str) -> None:
        """The named claims (all if none) with what the paper says, our test and number, verdict and evidence. Of a few
        named ones, sentences tell first what became of them."""
        ledger = _texts(self.results / "ledgers" / f"{self.name}.csv")
        if claims:
            ledger = ledger[ledger["claim"].isin([f"{self.name}/{c}" for c in claims])]
        if claims and len(ledger) <= FEW:
            _sentences(ledger)
        _claims(ledger)

    def readings(self, claim: str) -> None:
        """The verdict on a claim as we read it, and on its other readings."""
        files = [self.results / folder / f"{self.name}.csv" for folder in ("ledgers", "readings")]
        main, others = (rows[rows["claim"] == f"{self.name}/{claim}"] for rows in map(_texts, files))
        shown = ("reading", "our test", "ours", "interval", "p", "verdict", "reason")
        _claims(pd.concat([main.assign(reading="as we read it"), others]), shown)

    def summary(self) -> pd.DataFrame:
        """Number of claims by verdict; those of the paper, on printed numbers and added by us apart."""
        counts = pd.crosstab(*(self.ledger()[key] for key in ("verdict", "origin")))
        return Table(counts.reindex(index=list(VERDICTS), columns=list(ORIGINS), fill_value=0).rename(columns=ORIGINS))

    def errata(self, config: Path) -> None:
        """Errors in the paper itself, the worst first."""
        _errata(self.results / "ledgers" / f"{self.name}.csv", [study_folders(config)[self.name]])

    def assumed(self, config: Path) -> pd.DataFrame:
        """The settings that the paper leaves open."""
        return Table(assumed_settings(study_folders(config)[self.name].glob("experiments/*.yaml")))

    def cost(self) -> pd.DataFrame:
        """The cost of each training job."""
        columns = ["experiment", "algorithm", "seeds", "gradient_steps", "seconds", "peak_memory_mb", "strategy"]
        jobs = pd.DataFrame(_manifests(self.results, self.name), columns=[*columns, "diverged"])
        jobs = jobs.assign(seeds=jobs["seeds"].map(len), diverged=jobs["diverged"].map(len))
        names = {"gradient_steps": "gradient steps", "peak_memory_mb": "memory (MB)", "diverged": "diverged runs"}
        return Table(jobs.rename(columns=names))


@dataclass(frozen=True)
class Overview:
    """All studies of one results/<scale> folder."""

    results: Path

    def ledger(self) -> pd.DataFrame:
        return pd.read_csv(check(self.results / "ledger.csv"))

    def studies(self) -> list[str]:
        return list(dict.fromkeys(self.ledger()["study"]))

    def headlines(self) -> None:
        """What the papers want believed, each with its verdict and why."""
        _headlines(_texts(self.results / "headlines.csv"))

    def summary(self) -> pd.DataFrame:
        """The papers' own claims by study and verdict, with their sums; and the numbers of the other claims."""
        ledger = self.ledger()
        counts = _counts(self._own(), "study").reindex(index=self.studies(), fill_value=0)
        counts["claims"] = counts.sum(axis=1)
        for origin, name in list(ORIGINS.items())[1:]:
            others = ledger.loc[ledger["origin"] == origin, "study"].value_counts()
            counts[name] = others.reindex(counts.index, fill_value=0)
        return Table(pd.concat([counts, counts.sum().to_frame("all").T]))

    def by_kind(self) -> pd.DataFrame:
        """The papers' own claims by kind and verdict: do orderings hold more often than numbers?"""
        return _counts(self._own(), "kind")

    def untested(self) -> pd.DataFrame:
        """Why claims of the papers are not tested: reasons, counted by study."""
        left = self._own().query("verdict == 'not tested'")
        why = left["reason"].astype(str).str.split(";").str[0].rename("reason")  # the rest is the claim's own note
        return Table(left.groupby(["study", why], sort=False).size().rename("claims").reset_index())

    def verdicts(self, verdict: str, origin: str = "paper") -> None:
        """The claims of one origin with a verdict, with the numbers and the reason."""
        ledger = _texts(self.results / "ledger.csv")
        chosen = (ledger["verdict"] == verdict) & (ledger["origin"] == origin)
        _claims(ledger[chosen], [name for name in CLAIM if name not in ("verdict", "origin")])

    def _own(self) -> pd.DataFrame:
        """The papers' own claims."""
        return self.ledger().query("origin == 'paper'")

    def errata(self, config: Path) -> None:
        """Errors in the papers themselves, the worst first."""
        _errata(self.results / "ledger.csv", study_folders(config).values())

    def assumed(self, config: Path) -> pd.DataFrame:
        """Settings that the papers leave open: how many per study, and for how many an artefact shows their effect."""
        folders = [folder for name, folder in study_folders(config).items() if name in self.studies()]
        files = [path for folder in folders for path in folder.glob("experiments/*.yaml")]
        found = pd.DataFrame(assumed_settings(files), columns=["study", "key", "shown"])
        found["varied"] = found["shown"] != ""
        return Table(found.groupby("study", sort=False).agg(settings=("key", "size"), varied=("varied", "sum")))

    def cost(self) -> pd.DataFrame:
        """Jobs, time, memory and gradient steps of each study."""
        rows = [
            {
                "study": study,
                "jobs": len(runs),
                "minutes": sum(m["seconds"] for m in runs) / 60,
                "largest memory (MB)": max(m["peak_memory_mb"] for m in runs),
                "gradient steps": sum(m["gradient_steps"] for m in runs),
                "diverged runs": sum(len(m["diverged"]) for m in runs),
            }
            for study in self.studies()
            if (runs := _manifests(self.results, study))
        ]
        return Table(pd.DataFrame(rows).set_index("study").round(1))


def _counts(ledger: pd.DataFrame, by: str) -> pd.DataFrame:
    """Claims by a column and verdict."""
    return Table(pd.crosstab(ledger[by], ledger["verdict"]).reindex(columns=list(VERDICTS), fill_value=0))


def _texts(path: Path) -> pd.DataFrame:
    """A csv file with its cells as they are written."""
    return pd.read_csv(check(path), dtype=str, keep_default_na=False)


def _claims(ledger: pd.DataFrame, columns: Sequence[str] = CLAIM) -> None:
    """Show rows of a ledger: intervals and p-values together, hint and next step after the reason."""
    rows = [_claim(row) for row in ledger.to_dict("records")]
    counts = ledger["verdict"].value_counts()
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if verdict in counts)
    _prose(pd.DataFrame(rows, columns=list(columns)), f"{len(rows)} claim{'s' * (len(rows) != 1)}: {told or 'none'}")


def _sentences(ledger: pd.DataFrame) -> None:
    """What became of each claim, as a list: `✓ reproduced: statement. Reason.`"""
    items = []
    for row in ledger.to_dict("records"):
        told = f"{row['statement'].rstrip('.')}. {row['reason'][:1].upper()}{row['reason'][1:]}".rstrip(". ")
        items.append(f"<li><strong>{VERDICTS[row['verdict']][1]} {row['verdict']}</strong>: {escape(told)}.</li>")
    if items:
        display(HTML(f"<ul>{''.join(items)}</ul>"))


def _errata(ledger: Path, folders: Iterable[Path]) -> None:
    """Show the errata of some studies, the worst first."""
    rows = pd.DataFrame([row for _, found in by_severity(errata(ledger, folders)) for row in found], columns=ERRATUM)
    _prose(rows[["severity", *(name for name in ERRATUM if name != "severity")]], f"{len(rows)} errors")


def _claim(row: dict[str, str]) -> dict[str, str]:
    seeds = f"{row['seeds']} seeds" if row["seeds"] not in ("", "0") else ""
    after = {"Hint": row["hint"], "To decide it": row["next"]}
    return row | {
        "paper says": row["paper_says"] or row["statement"],
        "our test": row["our_test"],
        "ours": short_number(row["ours"]),
        "interval": interval_text(row["ci_low"], row["ci_high"]),
        "p": ", ".join(value if words == "p" else f"{words} {value}" for words, value in p_texts(row)),
        "reason": " ".join([row["reason"], *(f"{words}: {text}." for words, text in after.items() if text)]),
        "evidence": ", ".join(filter(None, [row["evidence"], seeds, row["data"]])),
    }


def _headlines(headlines: pd.DataFrame) -> None:
    shown = headlines.assign(main=headlines["main"].str.lower().map({"true": "main"}).fillna(""))
    columns = [name for name in ("study", "main", "verdict", "says", "quote", "place", "reason") if name in shown]
    _prose(shown[columns].reset_index(drop=True))


def _manifests(results: Path, study: str) -> list[dict[str, Any]]:
    return [read_json(check(path)) for path in sorted((results / "runs" / study).rglob("*.json"))]


def _html(form: str, *texts: str) -> None:
    """Show texts of a config file, which are text in html, whatever they contain."""
    display(HTML(form.format(*map(escape, texts))))


def _prose(table: pd.DataFrame, summary: str = "") -> None:
    """Show a table whose cells are sentences, below its summary if it has one."""
    display(HTML(folded(summary, as_html(table)) if summary else as_html(table)))
