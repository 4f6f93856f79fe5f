"""The report: one self-contained page made from what lies in `results/<scale>/`, and from nothing else.

The page opens from the file system, asks the network for nothing, and carries no time stamp: the same results
give the same bytes. Every text of a result file is shown as text (jinja2 escapes it; there is no JSON in a
script tag, the tables of the page are the script's data). Pictures are data URIs, an SVG file is never pasted
in as markup, and the page's own security policy runs no script but `page.js`.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fedrepro import __version__

__all__ = ["MAX_EMBED_BYTES", "MAX_ROWS", "VERDICTS", "build_report"]

MAX_ROWS = 200
# A csv or svg above this is linked by its path instead: a page of 100 MB opens in no browser.
MAX_EMBED_BYTES = 4_000_000

# verdict: (css class, symbol, meaning), in the order in which the page shows them
VERDICTS = {
    "reproduced": ("reproduced", "✓", "our interval agrees with the paper within the stated tolerance"),
    "direction": ("direction", "↗", "the ordering or the shape holds, the value does not"),
    "not reproduced": ("failed", "✗", "our result disagrees with the paper"),
    "contradicted by the source": ("contradicted", "≠", "the paper's own numbers disagree with each other"),
    "not tested": ("untested", "–", "no verdict at this scale or with this data; the reason is given"),
}
DATA_LABELS = {"real": "real data", "standin": "stand-in data", "synthetic": "synthetic data"}
SCALE_NOTES = {
    "smoke": "Smoke scale only shows that everything runs: its numbers say nothing about the papers.",
    "demo": "Demo scale keeps each paper's structure with smaller sizes and fewer seeds.",
    "paper": "Paper scale uses the published settings.",
}
HERE = Path(__file__).parent
MIME = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}


def build_report(results: Path, output: Path, *, scale: str, studies: list[str]) -> Path:
    """Write the page for the folder `results` (= results/<scale>) to the file `output`, which is returned.

    `studies` are shown in the given order; results of other studies are named but left out. An empty list
    shows every study that has results.
    """
    results, output = Path(results), Path(output)
    problems: list[str] = []  # files that could not be read: said on the page, never a crash
    claims = _claims(results, problems)
    manifests = _manifests(results, problems)
    artefacts = _artefacts(results, output.parent, manifests, problems)

    found = {item["study"] for item in [*claims, *artefacts, *manifests.values()]} - {""}
    shown = list(dict.fromkeys(studies)) or sorted(found)
    claims = [claim for claim in claims if claim["study"] in shown or not claim["study"]]
    artefacts = [artefact for artefact in artefacts if artefact["study"] in shown]
    runs = [run for run in manifests.values() if run["study"] in shown]
    _link_claims(claims, artefacts)
    notebooks = {path.stem: _relative_url(path, output.parent) for path in results.glob("notebooks/*.html")}
    errata = _records(results, "errata.json", ("study", "place", "statement", "reason"), problems)

    script, style = ((HERE / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("page.html.j2").render(
        artefacts=artefacts,
        assumed=_records(results, "assumed.json", ("file", "key", "value", "reason"), problems),
        claims=claims,
        cost=_cost(runs, shown),
        errata=errata if errata is None else [row for row in errata if row["study"] in ("", *shown)],
        failures=_failures(results, problems),
        gallery=[(study, [item for item in artefacts if item["study"] == study]) for study in shown],
        has_ledger=(results / "ledger.csv").is_file(),
        left_out=sorted(found - set(shown)),
        max_rows=MAX_ROWS,
        notebooks=notebooks,
        other_notebooks=sorted(set(notebooks) - found - set(shown)),
        problems=problems,
        scale=scale,
        scale_note=SCALE_NOTES.get(scale, ""),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        studies=shown,
        style=Markup(style),
        summary=_summary(claims, shown),
        version=__version__,
    )
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_name(output.name + ".tmp")
    unfinished.write_text(page, encoding="utf-8", newline="\n")
    unfinished.replace(output)
    return output


# --- reading ------------------------------------------------------------------------------------------------


def _read(path: Path, root: Path, parse: Callable[[str], object], problems: list[str]) -> object | None:
    """`parse` of the file's text; None where there is no file, or a broken one (then a sentence is kept)."""
    if not path.is_file():
        return None
    try:
        return parse(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, csv.Error) as error:
        problems.append(f"{path.relative_to(root).as_posix()} could not be read: {error}")
        return None


def _parse_csv(text: str) -> list[list[str]]:
    """Rows of strings, blank lines left out."""
    return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def _dicts(value: object) -> list[dict]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: object) -> dict:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Anything that JSON can hold, as one line for a reader."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{key}={_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(value)


def _float(value: object) -> float:
    """The number, or 0.0 for what is no finite number."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0
    return number if math.isfinite(number) else 0.0


def _records(results: Path, name: str, keys: tuple[str, ...], problems: list[str]) -> list[dict[str, str]] | None:
    """A JSON list of flat records as texts; None where the file is missing or broken."""
    records = _read(results / name, results, json.loads, problems)
    if records is None:
        return None
    return [{key: _text(record.get(key)) for key in keys} for record in _dicts(records)]


def _failures(results: Path, problems: list[str]) -> list[dict[str, str]]:
    """Jobs that failed: {title, log}."""
    failures = []
    for item in _dicts(_read(results / "failures.json", results, json.loads, problems)):
        job = _text(item.get("wildcards") or item.get("job"))
        log = item.get("log_tail")
        failures.append(
            {
                "title": " · ".join(filter(None, [_text(item.get("rule")), job])) or "a job",
                "log": "\n".join(map(_text, log)) if isinstance(log, list) else _text(log),
            }
        )
    return failures


def _claims(results: Path, problems: list[str]) -> list[dict]:
    """The rows of ledger.csv, with texts for the page and values to sort by."""
    rows = _read(results / "ledger.csv", results, _parse_csv, problems)
    if not rows:
        return []
    claims = []
    for row in rows[1:]:
        cell = dict(zip(rows[0], row, strict=False))
        claim = {
            key: cell.get(key, "") for key in ("claim", "study", "source", "kind", "statement", "verdict", "reason")
        }
        claim |= {key: cell.get(key, "") for key in ("scale", "seeds")}
        css, symbol, _ = VERDICTS.get(claim["verdict"], ("other", "?", ""))
        low, high = short_number(cell.get("ci_low", "")), short_number(cell.get("ci_high", ""))
        claim |= {
            "css": css,
            "symbol": symbol,
            "rank": [*VERDICTS, claim["verdict"]].index(claim["verdict"]),
            "published": short_number(cell.get("published", "")),
            "ours": short_number(cell.get("ours", "")),
            "interval": f"[{low or '?'}, {high or '?'}]" if low or high else "",
            "data": _data_labels(re.split(r"[\s,;+/]+", cell.get("data", ""))),
            "artefacts": [],
        }
        claims.append(claim)
    return claims


def _manifests(results: Path, problems: list[str]) -> dict[str, dict]:
    """Manifests of runs by their path relative to `results`; other JSON files under runs/ are passed over."""
    manifests = {}
    for path in sorted(results.glob("runs/**/*.json")):
        manifest = _dict(_read(path, results, json.loads, problems))
        if "experiment" in manifest and "algorithm" in manifest:
            study = _text(manifest["experiment"]).partition("/")[0]
            manifests[path.relative_to(results).as_posix()] = {**manifest, "study": study}
    return manifests


def _artefacts(results: Path, page_folder: Path, manifests: dict[str, dict], problems: list[str]) -> list[dict]:
    """Every artefact with picture or table, downloads and provenance; the paper's own first, in its order."""
    artefacts = []
    for path in sorted(results.glob("artefacts/*/*.json")):
        info = _read(path, results, json.loads, problems)
        if not isinstance(info, dict):
            continue
        name = f"{path.parent.name}/{path.stem}"
        kind = "table" if info.get("kind") == "table" else "figure"
        source = _text(info.get("source"))
        files = {suffix: path.with_suffix(f".{suffix}") for suffix in MIME}
        picture = _picture(files) if kind == "figure" else None
        artefact = {
            "id": name,
            "study": path.parent.name,
            "title": _text(info.get("title")) or name,
            "caption": _text(info.get("caption")),
            "kind": kind,
            "added": source == "added",
            "source": source,
            "scale": _text(info.get("scale")),
            "data": _data_labels(info.get("data") if isinstance(info.get("data"), list) else [info.get("data")]),
            "seeds": _text(info.get("seeds")),
            "diverged": int(_float(info.get("diverged"))),
            "picture": picture,
            "broad": kind == "table" or (picture is not None and picture["width"] > 1.8 * picture["height"] > 0),
            "table": _table(files["csv"], results, problems) if kind == "table" else None,
            "downloads": _downloads(name, files, page_folder, has_picture=kind == "figure"),
            "provenance": _provenance(info, manifests),
            "claims": [],
        }
        artefacts.append(artefact)
    return sorted(artefacts, key=lambda item: (item["added"], natural(item["id"])))


def _picture(files: dict[str, Path]) -> dict | None:
    """{uri, width, height} of the png, or of the svg where there is no png; None without either."""
    for suffix in ("png", "svg"):
        if files[suffix].is_file():
            content = files[suffix].read_bytes()
            # The size in a png's header lets the browser keep the place free until the picture is decoded.
            sized = suffix == "png" and content[12:16] == b"IHDR"
            width, height = (int.from_bytes(content[at : at + 4], "big") if sized else 0 for at in (16, 20))
            return {"uri": _data_uri(content, suffix), "width": width, "height": height}
    return None


def _table(path: Path, root: Path, problems: list[str]) -> dict | None:
    """{head, rows: [[(shown, exact)]], numeric: [bool a column], total} of a csv file, cut at MAX_ROWS."""
    rows = _read(path, root, _parse_csv, problems)
    if not rows:
        return None
    head, total = rows[0], len(rows) - 1
    # Lines may be of unequal length in a file that somebody has edited.
    body = [(row + [""] * len(head))[: len(head)] for row in rows[1 : MAX_ROWS + 1]]
    columns = [[row[at] for row in body] for at in range(len(head))]
    shown = [short_numbers(column) for column in columns]
    return {
        "head": head,
        "rows": [[(shown[at][line], row[at]) for at in range(len(head))] for line, row in enumerate(body)],
        "numeric": [any(column) and all(_is_number(cell) for cell in column if cell) for column in columns],
        "total": total,
    }


def _downloads(name: str, files: dict[str, Path], page_folder: Path, *, has_picture: bool) -> list[dict]:
    """{suffix, file, url, beside} for each file there is.

    The url of a png that the page already shows is empty: the script takes it from the picture, so that the
    page does not carry every picture twice.
    """
    downloads = []
    for suffix in ("csv", "svg", "png"):
        path = files[suffix]
        if not path.is_file():
            continue
        beside = suffix != "png" and path.stat().st_size > MAX_EMBED_BYTES
        if beside:
            url = _relative_url(path, page_folder)
        elif suffix == "png" and has_picture:
            url = ""
        else:
            url = _data_uri(path.read_bytes(), suffix)
        downloads.append({"suffix": suffix, "file": f"{name}.{suffix}".replace("/", "_"), "url": url, "beside": beside})
    return downloads


def _provenance(info: dict, manifests: dict[str, dict]) -> dict:
    """The chain artefact → code and inputs → runs → data; a run is completed from its manifest."""
    runs, data = [], {}
    for run in _dicts(info.get("runs")):
        path = _text(run.get("path"))
        manifest = manifests.get(path, {})
        source = _dict(manifest.get("data"))
        kind = DATA_LABELS.get(_text(source.get("kind")), _text(source.get("kind")))
        checksum = _text(run.get("data_sha256") or source.get("sha256"))
        known = {"name": _text(source.get("name")), "kind": kind, "sha256": checksum}
        if checksum and not data.get(checksum, {}).get("name"):
            data[checksum] = known
        runs.append(
            {
                "path": path,
                "experiment": _text(run.get("experiment")),
                "algorithm": _text(run.get("algorithm")),
                "seconds": duration(run.get("seconds", manifest.get("seconds"))),
                "config": _text(manifest.get("config_sha256")),
                "code": _text(manifest.get("code_sha256")),
                "commit": _text(manifest.get("commit")),
                "data": checksum,
            }
        )
    return {
        "code": sorted((_text(key), _text(value)) for key, value in _dict(info.get("code")).items()),
        "inputs": [(_text(item.get("path")), _text(item.get("sha256"))) for item in _dicts(info.get("inputs"))],
        "runs": runs,
        "data": list(data.values()),
    }


# --- what the page says -------------------------------------------------------------------------------------


def _link_claims(claims: list[dict], artefacts: list[dict]) -> None:
    """Tie a claim to the artefacts of its study whose place in the paper its own source names."""
    for artefact in artefacts:
        if artefact["added"] or not artefact["source"]:
            continue
        # "Fig. 3" is not named by "Fig. 3(b)", nor "Table 2.1" by "Table 2.10" or "Table 2.1.1".
        place = re.compile(r"(?<!\w)" + re.escape(artefact["source"]) + r"(?!\w|\(|\.\w)")
        for claim in claims:
            if claim["study"] == artefact["study"] and place.search(claim["source"]):
                claim["artefacts"].append({"id": artefact["id"], "kind": artefact["kind"]})
                artefact["claims"].append(claim)


def _summary(claims: list[dict], studies: list[str]) -> dict:
    """Counts by study and verdict: {verdicts: [(name, css, symbol, meaning)], total: row, rows: [row]}."""
    unknown = sorted({claim["verdict"] for claim in claims} - set(VERDICTS))
    verdicts = [(name, *details) for name, details in VERDICTS.items()]
    verdicts += [(name, "other", "?", "a verdict that this page does not know") for name in unknown]

    def row(study: str, chosen: Iterable[dict]) -> dict:
        counts = Counter(claim["verdict"] for claim in chosen)
        cells = [{"verdict": name, "css": css, "symbol": sign, "n": counts[name]} for name, css, sign, _ in verdicts]
        return {
            "study": study,
            "cells": cells,
            "n": counts.total(),
            "tested": counts.total() - counts["not tested"],
        }

    return {
        "verdicts": verdicts,
        "total": row("", claims),
        "rows": [row(study, [claim for claim in claims if claim["study"] == study]) for study in studies],
        "standin": sum(any(label["css"] == "standin" for label in claim["data"]) for claim in claims),
    }


def _cost(runs: list[dict], studies: list[str]) -> dict:
    """Time, memory and machines of the runs, by study and by (experiment, algorithm); diverged runs."""
    diverged = [
        {
            "experiment": _text(run["experiment"]),
            "algorithm": _text(run["algorithm"]),
            **{key: _text(item.get(key)) for key in ("setting", "seed", "round")},
        }
        for run in runs
        for item in _dicts(run.get("diverged"))
    ]
    by_study = []
    for study in studies:
        ours = [run for run in runs if run["study"] == study]
        if not ours:
            continue
        groups: dict[tuple[str, str], list[dict]] = {}
        for run in ours:
            groups.setdefault((_text(run["experiment"]), _text(run["algorithm"])), []).append(run)
        rows = [{"experiment": key[0], "algorithm": key[1], **_cost_row(group)} for key, group in groups.items()]
        rows.sort(key=lambda item: (natural(item["experiment"]), natural(item["algorithm"])))
        by_study.append({"study": study, "rows": rows, **_cost_row(ours)})
    machines = Counter(_machine(run) for run in runs)
    versions: dict[str, set[str]] = {}
    for run in runs:
        for name, version in _dict(run.get("versions")).items():
            versions.setdefault(_text(name), set()).add(_text(version))
    return {
        "total": _cost_row(runs) if runs else None,
        "studies": by_study,
        "machines": sorted(machines.items()),
        "versions": [(name, ", ".join(sorted(found))) for name, found in sorted(versions.items())],
        "commits": sorted({_text(run.get("commit")) for run in runs} - {""}),
        "diverged": diverged[:MAX_ROWS],
        "diverged_total": len(diverged),
    }


def _cost_row(runs: list[dict]) -> dict:
    """One line of the cost tables for several jobs together."""
    seconds = [_float(run.get("seconds")) for run in runs]
    seeds = {_text(seed) for run in runs for seed in (run.get("seeds") if isinstance(run.get("seeds"), list) else [])}
    strategies = {_text(_dict(run.get("strategy")).get("name")) for run in runs} - {""}
    return {
        "jobs": len(runs),
        "seeds": len(seeds),
        "seconds": duration(sum(seconds)),
        "longest": duration(max(seconds)),
        "memory": f"{max(_float(run.get('peak_memory_mb')) for run in runs):,.0f} MB",
        "strategy": ", ".join(sorted(strategies)) or "–",
        "steps": f"{sum(_float(run.get('gradient_steps')) for run in runs):,.0f}",
        "diverged": sum(len(_dicts(run.get("diverged"))) for run in runs),
        "resumed": sum(run.get("resumed_from") is not None for run in runs),
    }


def _machine(run: dict) -> str:
    machine = _dict(run.get("machine"))
    parts = [_text(machine.get("cpu"))]
    if machine.get("cores"):
        parts.append(f"{_text(machine['cores'])} cores")
    if machine.get("memory_gb"):
        parts.append(f"{_float(machine['memory_gb']):.3g} GB memory")
    parts.append(_text(machine.get("system")))
    if run.get("device"):
        parts.append(f"device {_text(run['device'])}")
    if run.get("threads"):
        parts.append(f"{_text(run['threads'])} thread{'' if run['threads'] == 1 else 's'} a job")
    return ", ".join(filter(None, parts)) or "not recorded"


def _data_labels(names: Iterable[object]) -> list[dict]:
    """{css, text} for each kind of data; the stand-in first, because a reader must not miss it."""
    names = sorted({_text(name) for name in names} - {""}, key=lambda name: (name != "standin", name))
    return [{"css": name if name in DATA_LABELS else "other", "text": DATA_LABELS.get(name, name)} for name in names]


# --- small formats ------------------------------------------------------------------------------------------


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def short_number(text: str) -> str:
    """A long number at four significant digits; a short one and other text stay as they are; nan is empty."""
    text = text.strip()
    if not _is_number(text):
        return text
    value = float(text)
    if math.isnan(value):
        return ""
    if len(text) <= 7 or not math.isfinite(value):
        return text
    return f"{value:,.0f}" if abs(value) >= 10_000 and abs(value) < 1e12 else f"{value:.4g}"


def short_numbers(column: list[str]) -> list[str]:
    """The cells of a column; one number of decimals for all where they are numbers of similar size."""
    sizes = [abs(float(cell)) for cell in column if cell and _is_number(cell)]
    sizes = [size for size in sizes if size > 0 and math.isfinite(size)]
    similar = bool(sizes) and max(sizes) < 1000 * min(sizes)
    if not similar or max(map(len, column)) <= 7 or not all(_is_number(cell) for cell in column if cell):
        return [short_number(cell) for cell in column]
    decimals = min(12, max(0, 3 - math.floor(math.log10(max(sizes)))))
    return [f"{float(cell):.{decimals}f}" if cell and math.isfinite(float(cell)) else cell for cell in column]


def duration(seconds: object) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 05 min`; a dash where it is not known."""
    if seconds is None:
        return "–"
    value = _float(seconds)
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def natural(text: str) -> list[tuple[int, str]]:
    """Sort key with fig2 before fig10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", text) if part]


def _data_uri(content: bytes, suffix: str) -> str:
    return f"data:{MIME[suffix]};base64,{base64.b64encode(content).decode()}"


def _relative_url(path: Path, folder: Path) -> str:
    """Address of `path` as seen from a page in `folder`."""
    return quote(Path(os.path.relpath(path, folder)).as_posix())
