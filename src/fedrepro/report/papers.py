"""The papers behind the studies, for the page: title, authors, venue, link, and the real data that they need.

Written as studies.json beside the ledger, so that a page can be built from a results folder alone.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fedrepro.core import parts
from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import Study, study_of
from fedrepro.data.catalogue import Entries, entry
from fedrepro.files import write_json
from fedrepro.report.formats import as_float, as_text
from fedrepro.report.gather import as_dicts, as_list, read

TEXTS = ("title", "venue", "link", "main", "key_artefact")


def write_papers(results: Path, studies: Iterable[Path]) -> None:
    """Write studies.json. studies: folders config/studies/<study>."""
    papers = [paper_of(study_of(folder.parents[1], folder.name)) for folder in studies]
    write_json(results / "studies.json", papers)


def paper_of(study: Study) -> dict[str, Any]:
    """{study, title, authors, venue, link, main, key_artefact, data: [{name, title, megabytes, manual}]}"""
    experiments = load_experiments(study.folder.parents[1], "paper", study.name).values()
    names = {parts.dataset(e.spec["dataset"]["name"]).files for e in experiments} - {None, ""}
    texts = {key: getattr(study, key) or "" for key in TEXTS}
    return {"study": study.name, **texts, "authors": list(study.authors), "data": [data_of(n) for n in sorted(names)]}


def data_of(name: str, entries: Entries | None = None) -> dict[str, Any]:
    """A real data set and how much `make data` fetches of it; `manual` where no address serves it."""
    spec = entry(name, entries)
    for layout in spec["layouts"].values():
        if all("url" in file or "archive" in file for file in layout["files"]):
            fetched = [*layout.get("archives", {}).values(), *(file for file in layout["files"] if "url" in file)]
            size = sum(file.get("bytes", 0) for file in fetched)
            return {"name": name, "title": spec["title"], "megabytes": round(size / 1e6, 1), "manual": False}
    return {"name": name, "title": spec["title"], "megabytes": 0, "manual": True}


def read_papers(results: Path, problems: list[str]) -> dict[str, dict[str, Any]]:
    """Study → what studies.json says about it, as texts and numbers."""
    papers = {}
    for record in as_dicts(read(results / "studies.json", results, json.loads, problems)):
        about = {key: as_text(record.get(key)) for key in ("study", *TEXTS)}
        data = [
            {key: as_text(item.get(key)) for key in ("name", "title")}
            | {"megabytes": as_float(item.get("megabytes")), "manual": item.get("manual") is True}
            for item in as_dicts(record.get("data"))
        ]
        # Anything but https is shown as text: a link of a results file must not run a script.
        link = about["link"] if about["link"].startswith("https://") else ""
        papers[about["study"]] = {**about, "link": link, "data": data, "authors": _names(record.get("authors"))}
    return papers


def _names(authors: object) -> str:
    """`A`, `A and B`, `A, B and C`."""
    *others, last = [as_text(name) for name in as_list(authors)] or [""]
    return f"{', '.join(others)} and {last}" if others else last
