"""What the notebooks call: read results, show artefacts, tables and verdicts. Nothing here computes a result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from IPython.display import HTML, Image, Markdown, display

from fedrepro.files import read_json
from fedrepro.register import assumed_settings


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
        columns = ["claim", "statement", "published", "ours", "verdict", "reason"]
        table = ledger[columns].to_html(index=False, na_rep="", justify="left", classes="verdicts")
        display(HTML("<style>table.verdicts td { text-align: left; vertical-align: top; }</style>" + table))

    def summary(self) -> pd.DataFrame:
        """How many claims have which verdict."""
        return self.ledger()["verdict"].value_counts().rename("claims").to_frame()

    def assumed(self, config: Path) -> pd.DataFrame:
        """The settings that the paper leaves open."""
        return pd.DataFrame(assumed_settings((config / "experiments" / self.name).glob("*.yaml")))

    def cost(self) -> pd.DataFrame:
        """What each training job took."""
        manifests = [read_json(p) for p in sorted((self.results / "runs" / self.name).rglob("*.json"))]
        rows = [
            {
                "experiment": m["experiment"],
                "algorithm": m["algorithm"],
                "seeds": len(m["seeds"]),
                "gradient steps": m["gradient_steps"],
                "seconds": m["seconds"],
                "memory (MB)": m["peak_memory_mb"],
                "strategy": m["strategy"].get("name"),
                "diverged runs": len(m["diverged"]),
            }
            for m in manifests
        ]
        return pd.DataFrame(rows)
