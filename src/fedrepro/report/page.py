"""The report: one self-contained page made from `results/<scale>/` alone.

The page opens from the file system, uses no network, and has no time stamp: the same results give the same bytes.
Texts of result files are shown as text (jinja2 escapes them; no script tag holds JSON, the script reads the page's
tables). Pictures are data URIs, an SVG file is never markup, and the security policy allows no script but `page.js`.
"""

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fedrepro import __version__
from fedrepro.files import write_atomically
from fedrepro.report.artefacts import read_artefacts, read_speed
from fedrepro.report.claims import ORIGINS, link_claims, read_claims, read_headlines, summary_of
from fedrepro.report.formats import MAX_ROWS
from fedrepro.report.gather import cost_of, read_failures, read_manifests, read_records, relative_url

SEVERITIES = ("breaks", "misleads", "slip")  # of errata, in the order of the page; others come last
ERRATUM = ("study", "place", "printed", "should_be", "severity", "how")
ASSUMED = ("study", "key", "value", "reason", "experiments", "shown")
HERE = Path(__file__).parent


def build_report(results: Path, output: Path, *, scale: str, studies: list[str], embed: bool = True) -> Path:
    """Write the page of the folder `results` (results/<scale>) to the file `output`, and return that. `studies` are
    shown in the given order; others are named but left out. An empty list shows every study with results."""
    results, output = Path(results), Path(output)
    problems: list[str] = []  # unreadable files: listed on the page, never a crash
    claims = read_claims(results, problems)
    manifests = read_manifests(results, problems)
    artefacts = read_artefacts(results, output.parent, manifests, problems, embed=embed)

    found = {item["study"] for item in [*claims, *artefacts, *manifests.values()]} - {""}
    shown = list(dict.fromkeys(studies)) or sorted(found)
    claims = [claim for claim in claims if claim["study"] in shown or not claim["study"]]
    artefacts = [artefact for artefact in artefacts if artefact["study"] in shown]
    runs = [run for run in manifests.values() if run["study"] in shown]
    link_claims(claims, artefacts)
    headlines = [row for row in read_headlines(results, claims, problems) if row["study"] in shown]
    notebooks = {path.stem: relative_url(path, output.parent) for path in results.glob("notebooks/*.html")}
    errata = read_records(results, "errata.json", ERRATUM, problems)

    script, style = ((HERE / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    options: dict[str, Any] = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=FileSystemLoader(HERE), undefined=StrictUndefined, **options)
    page = environment.get_template("page.html.j2").render(
        artefacts=artefacts,
        assumed=read_records(results, "assumed.json", ASSUMED, problems),
        claims=claims,
        cost=cost_of(runs, shown),
        errata=errata if errata is None else by_severity([row for row in errata if row["study"] in ("", *shown)]),
        failures=read_failures(results, problems),
        gallery=[(study, [item for item in artefacts if item["study"] == study]) for study in shown],
        has_ledger=(results / "ledger.csv").is_file(),
        headlines=headlines,
        left_out=sorted(found - set(shown)),
        max_rows=MAX_ROWS,
        notebooks=notebooks,
        other_notebooks=sorted(set(notebooks) - found - set(shown)),
        origins=ORIGINS,
        problems=problems,
        scale=scale,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        speed=read_speed(results, output.parent, problems, embed=embed),
        studies=shown,
        style=Markup(style),
        summary=summary_of(claims, headlines, shown),
        version=__version__,
    )
    write_atomically(output, page)
    return output


def by_severity(errata: list[dict[str, str]]) -> list[tuple[str, list[dict[str, str]]]]:
    """(severity, its errata), the worst first."""
    names = dict.fromkeys([*SEVERITIES, *(row["severity"] for row in errata)])
    groups = [(name, [row for row in errata if row["severity"] == name]) for name in names]
    return [(name, rows) for name, rows in groups if rows]
