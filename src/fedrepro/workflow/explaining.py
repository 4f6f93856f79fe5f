"""A claim under other assumptions: the experiments to run, and the claim's number on each.

An alternative is run as an experiment of its own (core/alternatives.py) beside the main run, in the same results
folder, with the same seeds. Algorithms that it does not change are the main run's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.core import parts
from fedrepro.core.alternatives import (
    Alternative,
    Assumption,
    assumptions_of,
    derived_name,
    held_by_scale,
    touched,
    varied,
    write_variant,
)
from fedrepro.core.experiment import Experiment, expanded, resolve
from fedrepro.core.study import study_of
from fedrepro.errors import UserError, nearest
from fedrepro.evidence.arms import COLUMNS
from fedrepro.evidence.cases import Sources
from fedrepro.evidence.claim_files import every_quantity, load_claims
from fedrepro.evidence.decisive import gaps, shortfalls
from fedrepro.evidence.explanation import Number, number_of
from fedrepro.evidence.published import Printed
from fedrepro.evidence.quantities import Measurements
from fedrepro.evidence.tables import collect_metrics
from fedrepro.evidence.verdicts import FEWEST
from fedrepro.files import read_json

MAIN = Alternative((), None, {})


@dataclass(frozen=True)
class Question:
    """A claim, <study>/<name>, at a scale. config: the folder; results: the folder of all scales."""

    config: Path
    results: Path
    claim: str
    scale: str
    divergence: Mapping[str, float]

    @property
    def folder(self) -> Path:
        """Of the scale's results."""
        return self.results / self.scale

    @cached_property
    def study(self) -> Any:
        return study_of(self.config, self.claim.partition("/")[0])

    @cached_property
    def _claims(self) -> Any:
        path = self.study.file("claims.yaml")
        if path is None:
            raise UserError(f"study '{self.study.name}' has no claims")
        return load_claims(path)

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The claim's main reading."""
        name = self.claim.partition("/")[2]
        if name not in self._claims.claims:
            raise UserError(f"claim '{self.claim}' is unknown{nearest(name, self._claims.claims)}")
        return {key: value for key, value in self._claims.claims[name].spec.items() if key != "borrow"}

    @cached_property
    def raw(self) -> dict[str, dict[str, Any]]:
        """The claim's experiments by name, before a scale is applied."""
        return {name: e.tree.plain() for name, e in self._expanded.items()}

    @cached_property
    def _expanded(self) -> dict[str, Any]:
        known = expanded(self.config, self.study.name)
        return {name: known[name] for name in dict.fromkeys(q["experiment"] for q in every_quantity(self.spec))}

    @cached_property
    def assumptions(self) -> list[Assumption]:
        """What the claim may hang on: assumptions of its experiments, of all algorithms that it names."""
        used: dict[str, set[str]] = {name: set() for name in self.raw}
        for quantity in every_quantity(self.spec):
            arms, wanted = self.raw[quantity["experiment"]]["algorithms"], quantity.get("algorithm", "")
            setting = str(quantity.get("setting", ""))
            for arm, about in arms.items():
                variants = about.get("variants", {})
                if wanted in ("", arm) or wanted in variants:
                    named = [v for v in variants if v in (wanted, setting) or v in setting]
                    used[quantity["experiment"]] |= {arm, *(named or variants)}
        return assumptions_of(self._expanded, used)

    def shortfalls(self) -> list[str]:
        """Settings of this scale, and numbers of seeds, that keep a run from judging the claim."""
        seeds = min((resolve(raw, self.scale, name)["seeds"] for name, raw in self.raw.items()), default=FEWEST)
        found: list[str] = [f"seeds {seeds} of at least {FEWEST}"] * (seeds < FEWEST)
        for quantity in every_quantity(self.spec):
            name = quantity["experiment"]
            own, paper = (resolve(self.raw[name], scale, name) for scale in (self.scale, "paper"))
            lacking = shortfalls(self.spec.get("needs", "all"), own, gaps(own, paper, quantity))
            found += [str(gap) for gap in lacking if str(gap) not in found]
        return found

    def held(self, alternative: Alternative) -> str:
        """A setting of the alternative that the scale sets itself; empty if it can be run."""
        keys = (held_by_scale(self.raw[e], change, self.scale) for e, change in alternative.changes.items())
        return next(filter(None, keys), "")

    def experiment(self, name: str, change: Mapping[str, Any]) -> Experiment:
        """The experiment that has the change; the main one if there is none."""
        spec = touched(varied(self.raw[name], change), change) if change else self.raw[name]
        named = derived_name(name, change) if change else name
        return Experiment(self.study.name, named, self.scale, Path(named), resolve(spec, self.scale, named))

    def write(self, alternative: Alternative) -> list[str]:
        """Write the config folders of its experiments."""
        folders = []
        for name, change in alternative.changes.items():
            named = derived_name(name, change)
            folder = self.folder / "explain" / "variants" / self.study.name / named
            write_variant(folder, self.study, named, touched(varied(self.raw[name], change), change))
            folders.append(str(folder))
        return folders

    def runs(self, alternative: Alternative) -> list[Path]:
        """The metrics of all its training jobs."""
        return [path for name in self.raw for path in self._runs(name, alternative.changes.get(name, {})).values()]

    def _runs(self, name: str, change: Mapping[str, Any]) -> dict[tuple[str, str], Path]:
        """(algorithm, shard) → metrics, of an experiment with the change."""
        main, own = self.experiment(name, {}), self.experiment(name, change)
        chosen = dict.fromkeys(main.jobs(), main) | dict.fromkeys(own.jobs(), own)
        return {(a, s): self.folder / "runs" / e.id / a / f"{s}.parquet" for (a, s), e in chosen.items()}

    def number(self, alternative: Alternative) -> Number:
        """The claim's number, judged on the alternative's runs against the alternative's own settings."""
        tables, manifests, settings = {}, [], {}
        for name, raw in self.raw.items():
            change = alternative.changes.get(name, {})
            shards = list(self._runs(name, change).values())
            settings[name] = resolve(varied(raw, change), self.scale, name)
            tables[name] = self._table(shards, {**self.divergence, **settings[name].get("divergence", {})})
            about = (read_json(shard.with_suffix(".json")) for shard in shards)
            manifests += [manifest | {"experiment": f"{self.study.name}/{name}"} for manifest in about]
        measurements = Measurements(self.study.name, tables, manifests)
        return number_of(self.spec, Sources(measurements, self.printed, self._claims.transforms, settings))

    @cached_property
    def printed(self) -> Printed:
        path = self.study.file("published.csv")
        return Printed(self.study.name, pd.read_csv(path) if path else None)

    def _table(self, shards: list[Path], divergence: Mapping[str, float]) -> pd.DataFrame:
        with tempfile.TemporaryDirectory(prefix="fedrepro-explain-") as folder:
            collect_metrics(shards, out := Path(folder) / "table.parquet", parts.measure(self.study.name), divergence)
            return pd.read_parquet(out, columns=COLUMNS)
