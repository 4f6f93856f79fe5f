"""Explanations of claims as files: results/<scale>/explain/<study>/<claim>.json, with a figure beside it.

A record holds the claim's number in the main run (`main`), under each alternative of an assumption (`alternatives`) and
under pairs of them (`pairs`), what was not varied (`fixed`), the answer in words, and `reading` for the ledger.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.core.checksums import check

if TYPE_CHECKING:
    import pandas as pd

FOLDER = "explain"
MARK = "assumptions: "  # begins the explanation's words in the ledger's column `reading`
COLUMNS = ("setting", "ours", "instead", "number", "interval", "moved by", "verdict")
Record = Mapping[str, Any]


def path_of(results: Path, claim: str) -> Path:
    return results / FOLDER / f"{claim}.json"


def load(results: Path, claim: str) -> dict[str, Any] | None:
    """The explanation of <study>/<claim> in a results folder."""
    path = path_of(results, claim)
    found: dict[str, Any] | None = json.loads(check(path).read_text(encoding="utf-8")) if path.is_file() else None
    return found


def load_all(results: Path) -> dict[str, dict[str, Any]]:
    """Claim → explanation, of all in a results folder."""
    names = (path.relative_to(results / FOLDER).with_suffix("") for path in sorted(results.glob(f"{FOLDER}/*/*.json")))
    return {claim.as_posix(): record for claim in names if (record := load(results, claim.as_posix()))}


def completed(
    ledger: pd.DataFrame, found: Mapping[str, Record], manifests: Iterable[Record] | None = None
) -> pd.DataFrame:
    """The ledger with the explanations' words in the column `reading`. With the manifests of its runs, explanations of
    other settings are left out."""
    now = None if manifests is None else {f"{m['experiment']}/{m['algorithm']}": m["config_sha256"] for m in manifests}
    words = {
        claim: f"{MARK}{record['reading']}"
        for claim, record in found.items()
        if now is None or all(now.get(job) == known for job, known in record["settings"].items())
    }
    plain = ledger["reading"].fillna("").map(lambda text: re.sub(rf"(; )?{MARK}.*", "", str(text)))
    pairs = zip(plain, ledger["claim"], strict=True)
    return ledger.assign(reading=["; ".join(filter(None, [text, words.get(claim)])) for text, claim in pairs])


def table_rows(record: Record) -> list[dict[str, str]]:
    """The main run, then the alternatives by how far they move the number, then pairs, then what was not varied."""

    def moved(one: Record) -> float:
        return -abs(one["moved"]) if one["moved"] is not None else math.inf

    rows = [_row("", "", "main run", record["main"])]
    rows += [
        _row(
            " with ".join(one["keys"]),
            one["value"].replace(" | ", " with "),
            one["other"].replace(" | ", " with "),
            one,
        )
        for part in ("alternatives", "pairs")
        for one in sorted(record[part], key=moved)
    ]
    fixed = (
        {"setting": one["key"], "ours": one["value"], "verdict": f"not varied: {one['because']}"}
        for one in record["fixed"]
    )
    return [*rows, *({column: row.get(column, "") for column in COLUMNS} for row in fixed)]


def _row(setting: str, ours: str, instead: str, one: Record) -> dict[str, str]:
    moved = f"{_number(one.get('moved'), '+')} {_interval(one.get('moved_low'), one.get('moved_high'), '+')}".strip()
    verdict = f"not run: {one['not_run']}" if one.get("not_run") else str(one["verdict"])
    texts = (setting, ours, instead, _number(one["mean"]), _interval(one["low"], one["high"]), moved, verdict)
    return dict(zip(COLUMNS, texts, strict=True))


def _number(value: float | None, sign: str = "") -> str:
    return "" if value is None else f"{value:{sign}.4g}"


def _interval(low: float | None, high: float | None, sign: str = "") -> str:
    return "" if low is None or high is None else f"[{low:{sign}.4g}, {high:{sign}.4g}]"
