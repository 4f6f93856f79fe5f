"""The report: pages made from `results/<scale>/` alone, and the committed reference beside it.

index.html holds one row and one scorecard per study; everything else is on a page of its own beside it. The pages open
from the file system, use no network, and have no time stamp: the same results give the same bytes. Texts of result
files are shown as text (jinja2 escapes them; no script tag holds JSON, the script reads the page's tables). Pictures
are files of the results folder that the browser loads when they come into view; an SVG file is never markup, and the
security policy allows no script but `page.js`.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fedrepro import __version__
from fedrepro.evidence.assumptions import write_registers
from fedrepro.files import ROOT, write_atomically
from fedrepro.report.agreement import RELATIONS, compare, read_reference
from fedrepro.report.artefacts import read_artefacts, read_speed
from fedrepro.report.claims import ORIGINS, explain_measures, link_claims, read_claims, read_headlines, summary_of
from fedrepro.report.formats import MAX_ROWS
from fedrepro.report.gather import cost_of, read_failures, read_manifests, read_records, relative_url
from fedrepro.report.papers import read_papers, write_papers
from fedrepro.report.scorecards import scorecards

REFERENCE = ROOT / "results" / "reference"
#: page → its name in the menu; the file is <page>.html, its template page_<page>.html.j2
PAGES = {
    "index": "Overview",
    "claims": "All claims",
    "figures": "Figures and tables",
    "assumptions": "Assumptions",
    "errata": "Errata",
    "cost": "Cost",
    "speed": "Speed",
}
SEVERITIES = ("breaks", "misleads", "slip")  # of errata, in the order of the page; others come last
ERRATUM = ("study", "place", "printed", "should_be", "severity", "how")
ASSUMED = ("study", "key", "value", "reason", "also", "because", "experiments", "shown")
HERE = Path(__file__).parent


def write_report(
    results: Path,
    studies: Sequence[Path],
    *,
    scale: str,
    reference: Path | None = REFERENCE,
    waiting: Mapping[Path, str] = MappingProxyType({}),
) -> Path:
    """Write the registers and the report of some studies, given by their folders config/studies/<study>; `waiting`:
    studies that are shown as not run yet → what running them costs."""
    write_registers(results, studies)
    write_papers(results, studies, waiting)
    index, names = results / "report" / "index.html", [folder.name for folder in studies]
    return build_report(results, index, scale=scale, studies=names, reference=reference)


def build_report(results: Path, output: Path, *, scale: str, studies: list[str], reference: Path | None = None) -> Path:
    """Write the report of the folder `results` (results/<scale>) to the file `output` and the other pages beside it;
    returns `output`. `studies` are shown in the given order; others are named but left out. An empty list shows every
    study with results. `reference`: a results folder to compare with."""
    results, output = Path(results), Path(output)
    problems: list[str] = []  # unreadable files: listed on the first page, never a crash
    values = _gathered(results, output.parent, studies, reference, problems)
    script, style = ((HERE / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    values |= {
        "scale": scale,
        "pages": PAGES,
        "problems": problems,
        "max_rows": MAX_ROWS,
        "origins": ORIGINS,
        "relations": RELATIONS,
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": Markup(style),
        "version": __version__,
    }
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, **options)
    for name in PAGES:
        text = environment.get_template(f"page_{name}.html.j2").render(**values, page=name)
        write_atomically(output if name == "index" else output.with_name(f"{name}.html"), text)
    return output


def _gathered(
    results: Path, folder: Path, studies: list[str], reference: Path | None, problems: list[str]
) -> dict[str, Any]:
    """All that the templates show. `folder`: of the pages."""
    claims = read_claims(results, problems)
    manifests = read_manifests(results, problems)
    artefacts = read_artefacts(results, folder, manifests, problems)
    papers = read_papers(results, problems)

    found = {item["study"] for item in [*claims, *artefacts, *manifests.values()]} - {""}
    shown = list(dict.fromkeys(studies)) or sorted(found)
    claims = [claim for claim in claims if claim["study"] in shown or not claim["study"]]
    artefacts = [artefact for artefact in artefacts if artefact["study"] in shown]
    link_claims(claims, artefacts)
    explain_measures(claims, {study: paper["measures"] for study, paper in papers.items()})
    headlines = [row for row in read_headlines(results, claims, problems) if row["study"] in shown]
    errata = read_records(results, "errata.json", ERRATUM, problems)
    errata = errata and without_doubles([row for row in errata if row["study"] in ("", *shown)])
    kept = read_reference(reference, results, problems)
    disagreeing = compare(claims, headlines, kept)
    notebooks = {path.stem: relative_url(path, folder) for path in results.glob("notebooks/*.html")}
    runs = [run for run in manifests.values() if run["study"] in shown]
    return {
        "artefacts": artefacts,
        "assumed": read_records(results, "assumed.json", ASSUMED, problems),
        "cards": scorecards(shown, papers, headlines, claims, artefacts, errata or [], kept),
        "claims": claims,
        "cost": cost_of(runs, shown),
        "disagreeing": disagreeing,
        "errata": errata if errata is None else by_severity(errata),
        "failures": read_failures(results, problems),
        "files": {study: files_of(results, study, folder) for study in shown},
        "gallery": [(study, [item for item in artefacts if item["study"] == study]) for study in shown],
        "has_ledger": (results / "ledger.csv").is_file(),
        "headlines": headlines,
        "left_out": sorted(found - set(shown)),
        "notebooks": notebooks,
        "other_notebooks": sorted(set(notebooks) - found - set(shown)),
        "reference": kept,
        "speed": read_speed(results, folder, problems),
        "studies": shown,
        "summary": summary_of(claims, headlines, shown),
        "waiting": [paper for paper in papers.values() if paper["waiting"] and paper["study"] not in shown],
        "titles": {study: paper["title"] for study, paper in papers.items() if paper["title"]},
    }


def files_of(results: Path, study: str, folder: Path) -> list[tuple[str, str]]:
    """(what it is, address) of the study's csv files that exist."""
    kinds = {"claims": "ledgers", "readings": "readings", "headlines": "headlines", "numbers per seed": "numbers"}
    paths = {name: results / kind / f"{study}.csv" for name, kind in kinds.items()}
    return [(name, relative_url(path, folder)) for name, path in paths.items() if path.is_file()]


def without_doubles(errata: list[dict[str, str]]) -> list[dict[str, str]]:
    """Each error of a paper once: by study, place and printed text."""
    return list({(row["study"], row["place"], row["printed"]): row for row in reversed(errata)}.values())[::-1]


def by_severity(errata: list[dict[str, str]]) -> list[tuple[str, list[dict[str, str]]]]:
    """(severity, its errata), the worst first."""
    names = dict.fromkeys([*SEVERITIES, *(row["severity"] for row in errata)])
    groups = [(name, [row for row in errata if row["severity"] == name]) for name in names]
    return [(name, rows) for name, rows in groups if rows]
