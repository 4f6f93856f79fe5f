"""Settings that we had to assume, and errata of the papers."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.core.expansion import Located, expand
from fedrepro.core.open_settings import SECTION
from fedrepro.core.schemas import validate
from fedrepro.errors import UserError
from fedrepro.files import read_yaml, write_json


def assumed_settings(experiments: Iterable[Path]) -> list[dict[str, str]]:
    """Every assumption of config/studies/<study>/experiments/*.yaml (core/open_settings.py): study, key with its
    parents, our value, the reason, the other values or why there are none, the experiments that have it, and the
    artefacts that vary it (`varies` in the study's artefacts.yaml names parts of a key)."""
    files = set(experiments)
    having: dict[tuple[str, ...], list[str]] = {}
    artefacts: dict[str, dict[str, Any]] = {}
    for folder in sorted({path.parent for path in files}):
        study, declared = folder.parent.name, folder.parent / "artefacts.yaml"
        artefacts[study] = read_yaml(declared) if declared.is_file() else {}
        for name, experiment in expand(sorted(folder.glob("*.yaml"))).items():
            for found in _assumed(experiment.tree) if experiment.path in files else ():
                having.setdefault((study, *found), []).append(name)
    rows = []
    for (study, *about), names in having.items():
        row = {"study": study, **dict(zip(("key", "value", "reason", "also", "because"), about, strict=True))}
        varying = {name: [f".{part}." for part in a.get("varies", ())] for name, a in artefacts[study].items()}
        key = f".{row['key']}."
        shown = ", ".join(f"{study}/{name}" for name, parts in varying.items() if any(part in key for part in parts))
        rows.append({**row, "experiments": ", ".join(names), "shown": shown})
    return rows


def _assumed(tree: Located) -> Iterator[tuple[str, str, str, str, str]]:
    """(key with its parents, value, reason, other values, why there are none) of every assumption of an experiment."""
    for key, about in tree.value[SECTION].value.items() if SECTION in tree.value else ():
        text = {name: part.value for name, part in about.value.items()}
        also = "; ".join(map(value_text, text.get("also", ())))
        yield key, tree.at(*key.split(".")).written(), text["why"], also, text.get("because", "")


def value_text(value: Any) -> str:
    """A setting's value, or a mapping of several settings, in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {value_text(child)}" for key, child in value.items())
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_registers(results: Path, studies: Sequence[Path]) -> None:
    """Write assumed.json and errata.json beside the ledger. studies: folders config/studies/<study>."""
    experiments = [path for folder in studies for path in folder.glob("experiments/*.yaml")]
    write_json(results / "assumed.json", assumed_settings(experiments))
    write_json(results / "errata.json", errata(results / "ledger.csv", studies))


def errata(ledger: Path, studies: Iterable[Path]) -> list[dict[str, str]]:
    """Errors in the papers of the ledger's studies, as study, place, printed, should_be, severity and how: the
    errata.yaml of each study, then the claims that the paper's own numbers contradict (severity `computed`), except
    those whose id an erratum of the study gives under `how`. studies: folders config/studies/<study>."""
    if not ledger.exists():
        return []
    folders, rows = {folder.name: folder for folder in studies}, pd.read_csv(ledger, dtype=str, keep_default_na=False)
    found: list[dict[str, str]] = []
    for study, claims in rows.groupby("study", sort=False):
        listed = listed_errata(folders[str(study)] / "errata.yaml") if study in folders else []
        known = " ".join(entry["how"] for entry in listed)
        contradicted = claims[claims["verdict"] == "contradicted by the source"].to_dict("records")
        computed = [_computed(claim) for claim in contradicted if not _names(known, claim["claim"])]
        found += [{"study": str(study), **entry} for entry in [*listed, *computed]]
    return found


def listed_errata(path: Path) -> list[dict[str, str]]:
    """The entries of an errata.yaml, each once."""
    if not path.is_file():
        return []
    entries: list[dict[str, str]] = read_yaml(path)
    validate(entries, "errata", path)
    seen = set()
    for entry in entries:
        if (what := (entry["place"], entry["printed"])) in seen:
            raise UserError(f"{path}: '{entry['place']}' is listed twice with the same text")
        seen.add(what)
    return entries


def _computed(claim: dict[str, str]) -> dict[str, str]:
    """A contradicted claim as an erratum."""
    printed = claim["paper_says"] or claim["statement"]
    how = f"computed, {claim['claim']}: {claim['reason']}"
    return {
        "place": claim["source"],
        "printed": printed,
        "should_be": claim["ours"],
        "severity": "computed",
        "how": how,
    }


def _names(text: str, claim: str) -> bool:
    """Whether the text has the claim's id, with or without its study, as a word."""
    study, _, name = claim.partition("/")
    return re.search(rf"(?<![\w/])({re.escape(study)}/)?{re.escape(name)}(?!\w)", text) is not None
