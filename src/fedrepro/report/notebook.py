"""Helpers of the notebooks: read results, show artefacts, tables and verdicts. Nothing here computes a result."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, Image, Markdown, display

from fedrepro.evidence.assumptions import assumed_settings, errata
from fedrepro.files import read_json
from fedrepro.report.claims import VERDICTS


@dataclass(frozen=True)
class Study:
    """A study's results in one results/<scale> folder."""

    results: Path
    name: str

    def table(self, experiment: str) -> pd.DataFrame:
        """The tidy table of an experiment."""
        return pd.read_parquet(self.results / "tables" / self.name / f"{experiment}.parquet")

    def ledger(self) -> pd.DataFrame:
        return pd.read_csv(self.results / "ledgers" / f"{self.name}.csv")

    def show(self, artefact: str) -> None:
        """An artefact's picture (or table) with its title and caption."""
        base = self.results / "artefacts" / self.name / artefact
        about = read_json(base.with_suffix(".json"))
        display(Markdown(f"**{about['title']}** ({about['source']}; data: {', '.join(about['data']) or 'none'})"))
        if about["kind"] == "figure":
            display(Image(str(base.with_suffix(".png"))))
        else:
            display(pd.read_csv(base.with_suffix(".csv")))
        display(Markdown(about["caption"]))

    def verdicts(self, *claims: str) -> None:
        """The named claims (all if none) with published value, ours, verdict and reason."""
        ledger = self.ledger()
        if claims:
            ledger = ledger[ledger["claim"].isin([f"{self.name}/{c}" for c in claims])]
        _prose(ledger[["claim", "statement", "published", "ours", "verdict", "reason"]])

    def summary(self) -> pd.DataFrame:
        """Number of claims by verdict."""
        return self.ledger()["verdict"].value_counts().rename("claims").to_frame()

    def assumed(self, config: Path) -> pd.DataFrame:
        """The settings that the paper leaves open."""
        return pd.DataFrame(assumed_settings(config.glob(f"studies/{self.name}/experiments/*.yaml")))

    def cost(self) -> pd.DataFrame:
        """The cost of each training job."""
        columns = ["experiment", "algorithm", "seeds", "gradient_steps", "seconds", "peak_memory_mb", "strategy"]
        jobs = pd.DataFrame(_manifests(self.results, self.name), columns=[*columns, "diverged"])
        jobs = jobs.assign(seeds=jobs["seeds"].map(len), diverged=jobs["diverged"].map(len))
        names = {"gradient_steps": "gradient steps", "peak_memory_mb": "memory (MB)", "diverged": "diverged runs"}
        return jobs.rename(columns=names)


@dataclass(frozen=True)
class Overview:
    """All studies of one results/<scale> folder."""

    results: Path

    def ledger(self) -> pd.DataFrame:
        return pd.read_csv(self.results / "ledger.csv")

    def studies(self) -> list[str]:
        return list(dict.fromkeys(self.ledger()["study"]))

    def summary(self) -> pd.DataFrame:
        """Claims by study and verdict, with their sums."""
        counts = _counts(self.ledger(), "study").reindex(index=self.studies())
        counts["claims"] = counts.sum(axis=1)
        return pd.concat([counts, counts.sum().to_frame("all").T])

    def by_kind(self) -> pd.DataFrame:
        """Claims by kind and verdict: do orderings hold more often than numbers?"""
        return _counts(self.ledger(), "kind")

    def untested(self) -> pd.DataFrame:
        """Why claims have no verdict: reasons, counted by study."""
        left = self.ledger().query("verdict == 'not tested'")
        why = left["reason"].astype(str).str.split(";").str[0].rename("reason")  # the rest is the claim's own note
        return left.groupby(["study", why], sort=False).size().rename("claims").reset_index()

    def verdicts(self, verdict: str) -> None:
        """The claims with a verdict, with the numbers and the reason."""
        chosen = self.ledger().query("verdict == @verdict")
        _prose(chosen[["claim", "source", "statement", "published", "ours", "reason"]])

    def errata(self, config: Path) -> None:
        """Errors in the papers themselves."""
        _prose(pd.DataFrame(errata(self.results / "ledger.csv", config.glob("studies/*"))))

    def assumed(self, config: Path) -> pd.DataFrame:
        """Settings that the papers leave open: how many per study, and for how many an artefact shows their effect."""
        files = [path for study in self.studies() for path in config.glob(f"studies/{study}/experiments/*.yaml")]
        found = pd.DataFrame(assumed_settings(files), columns=["study", "key", "shown"])
        found["varied"] = found["shown"] != ""
        return found.groupby("study", sort=False).agg(settings=("key", "size"), varied=("varied", "sum"))

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
        return pd.DataFrame(rows).set_index("study").round(1)


def _counts(ledger: pd.DataFrame, by: str) -> pd.DataFrame:
    """Claims by a column and verdict."""
    return pd.crosstab(ledger[by], ledger["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)


def _manifests(results: Path, study: str) -> list[dict[str, Any]]:
    return [read_json(path) for path in sorted((results / "runs" / study).rglob("*.json"))]


def _prose(table: pd.DataFrame) -> None:
    """Show a table whose cells are sentences."""
    html = table.to_html(index=False, na_rep="", justify="left", classes="prose")
    display(HTML("<style>table.prose td { text-align: left; vertical-align: top; }</style>" + html))
