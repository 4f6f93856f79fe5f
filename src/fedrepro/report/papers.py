"""The papers behind the studies, for the page: title, authors, venue, link, and the real data that they need.

Written as studies.json beside the ledger, so that a page can be built from a results folder alone.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment, load_experiments
from fedrepro.core.study import Study, study_of
from fedrepro.data.catalogue import Entries, entry
from fedrepro.errors import UserError
from fedrepro.files import read_yaml, write_json
from fedrepro.report.formats import as_float, as_text
from fedrepro.report.gather import as_dict, as_dicts, as_list, read

TEXTS = ("title", "venue", "link", "main", "key_artefact")
WAITING = ("quote", "place", "work", "cost")


def write_papers(results: Path, studies: Iterable[Path], waiting: Mapping[Path, str] = MappingProxyType({})) -> None:
    """Write studies.json. studies: folders config/studies/<study>; waiting: those of studies that have not been run →
    what a run of them costs."""
    papers = [paper_of(study_of(folder.parents[1], folder.name)) for folder in studies]
    for folder, cost in waiting.items():
        study = study_of(folder.parents[1], folder.name)
        papers.append({**paper_of(study), "waiting": waiting_of(study, cost)})
    write_json(results / "studies.json", papers)


def paper_of(study: Study) -> dict[str, Any]:
    """{study, title, authors, venue, link, main, key_artefact, data: [{name, title, megabytes, manual}], measures:
    {name: meaning}}"""
    names = {parts.dataset(e.spec["dataset"]["name"]).files for e in _published(study)} - {None, ""}
    texts = {key: getattr(study, key) or "" for key in TEXTS}
    about = {
        "authors": list(study.authors),
        "data": [data_of(n) for n in sorted(names)],
        "measures": measures_of(study),
    }
    return {"study": study.name, **texts, **about}


def measures_of(study: Study) -> dict[str, str]:
    """Metric → what it is, from measures.yaml; empty without the file."""
    path = study.file("measures.yaml")
    found = read_yaml(path) if path else {}
    if not (isinstance(found, dict) and all(isinstance(text, str) for pair in found.items() for text in pair)):
        raise UserError(f"{path}: one line `name: what it is` per metric is needed")
    return found


def waiting_of(study: Study, cost: str) -> dict[str, str]:
    """{quote, place, work, cost}: the main message of a study that has not been run, and what a verdict on it takes."""
    main = study.headlines.get(study.main or "")
    counts = [
        (len(e.jobs()), sum(len(e.settings(a)) for a in e.spec["algorithms"]) * e.spec["seeds"])
        for e in _published(study)
    ]
    jobs, runs = map(sum, zip(*counts, strict=True)) if counts else (0, 0)
    work = f"{jobs:,} training jobs at the published settings, {runs:,} runs of one setting and seed each"
    return {"quote": main.quote if main else "", "place": main.place if main else "", "work": work, "cost": cost}


def _published(study: Study) -> Iterable[Experiment]:
    return load_experiments(study.folder.parents[1], "paper", study.name).values()


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
        waiting = record.get("waiting")
        about_run = waiting and {key: as_text(as_dict(waiting).get(key)) for key in WAITING}
        measures = {as_text(name): as_text(meaning) for name, meaning in as_dict(record.get("measures")).items()}
        more = {"authors": _names(record.get("authors")), "measures": measures, "waiting": about_run}
        papers[about["study"]] = {**about, "link": link, "data": data, **more}
    return papers


def _names(authors: object) -> str:
    """`A`, `A and B`, `A, B and C`."""
    *others, last = [as_text(name) for name in as_list(authors)] or [""]
    return f"{', '.join(others)} and {last}" if others else last
