"""The Workflow Run RO-Crate of a published folder, made by ro-crate-py: ro-crate-metadata.json.

Main entity is the Snakefile; one `CreateAction` stands for the run, from data, config and lock to ledger, artefacts,
manifests and report. Files carry their SHA-256. The verdicts are in `fedrepro.report.publication.verdicts`.
"""

import mimetypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrepro.core.study import Study
from fedrepro.files import sha256
from fedrepro.report.publication import verdicts
from fedrepro.report.publication.optional import needed
from fedrepro.report.publication.verdicts import Entity, Sources, ref
from fedrepro.report.publication.zenodo import author_name

METADATA = "ro-crate-metadata.json"
CODE, RESULTS, CROISSANT = "code/", "results/", "croissant/"
WORKFLOW, LOCK = f"{CODE}Snakefile", f"{CODE}envs/requirements.lock"
VERSION = "1.1"  # of RO-Crate: the one that the profile is based on
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
#: a term that RO-Crate 1.1 lacks, from the vocabulary of the profile
TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
FOLDERS = {  # of the code → what they hold
    CODE: "the code as it was when the folder was published: package, workflow, settings, environment",
    f"{CODE}config/": "the settings: studies with experiments, claims and printed numbers; data sets; config.yaml",
    f"{CODE}workflow/": "rules, schemas and profiles of the workflow",
    f"{CODE}src/": "the package that the rules call",
}
KINDS = {  # suffix → media type of what mimetypes does not know everywhere
    "": "text/plain",  # Snakefile, LICENSE
    ".yaml": "application/yaml",
    ".lock": "text/plain",
    ".cff": "application/yaml",
    ".md": "text/markdown",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class About:
    """What is published, beside the files."""

    name: str  # of the results folder
    studies: Mapping[str, Study]
    cited: Mapping[str, Any]  # CITATION.cff
    version: str
    commit: str  # a trailing + : with changes that are in no commit
    date: str
    ended: str | None  # when the run ended, where that is known
    failed: int  # jobs
    manifests: Mapping[str, Mapping[str, Any]]  # place below results → content
    catalogue: Sequence[str]  # data sets that have Croissant metadata

    @property
    def code_version(self) -> str:
        changed = " with changes that are in no commit" if self.commit.endswith("+") else ""
        return f"{self.version}, commit {self.commit.rstrip('+')}{changed}"

    @property
    def description(self) -> str:
        """One paragraph on the published folder."""
        papers = "; ".join(study.paper for study in self.studies.values())
        seconds = sum(run["seconds"] for run in self.manifests.values())
        return (
            f"Claims of federated-learning papers, tested by running them again with code of our own, each with a "
            f"verdict and its provenance. Papers: {papers}. {len(self.manifests)} training jobs, {seconds:.0f} seconds "
            f"in all. Code: fedrepro {self.code_version}."
        )


def write_crate(folder: Path, about: About, sources: Sources) -> None:
    """Write ro-crate-metadata.json, which describes what is in the folder already."""
    crate = needed("rocrate.rocrate").ROCrate(version=VERSION)
    crate.metadata.extra_terms.update(TERMS)
    authors = [ref(crate.add_jsonld(author).id) for author in _authors(about.cited)]
    used = {(name, v) for run in about.manifests.values() for name, v in run["versions"].items()}
    versions = sorted((name, v) for name, v in used if name != "fedrepro")  # which is in code/
    workflow = _add_workflow(crate, folder, about, versions)
    for place, told in FOLDERS.items():
        if (folder / place).is_dir():
            crate.add_dataset(folder / place, place, properties={"name": place, "description": told})
    for path in _described(folder, about, sources):
        place = path.relative_to(folder).as_posix()
        if place != WORKFLOW:
            crate.add_file(path, place, properties=_file(path, place, about))
    action = _add_run(crate, about, workflow)
    asserted = verdicts.entities(about.studies, sources, single(authors))
    made = [crate.add_jsonld({key: single(value) for key, value in entity.items()}) for entity in asserted]
    reviews = [entity for entity in made if entity.type == "ClaimReview"]
    _describe_root(crate, about, authors, [action, *reviews])
    crate.metadata.write(folder)


def single(value: Any) -> Any:
    """The only element of a list, as RO-Crate recommends; anything else as it is."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _add_workflow(crate: Any, folder: Path, about: About, versions: Sequence[tuple[str, str]]) -> Any:
    """The Snakefile, its version, and the packages that the runs were made with."""
    packages = [crate.add_jsonld(_package(name, version)) for name, version in versions]
    snakemake = dict(versions).get("snakemake")
    place = folder / WORKFLOW
    properties = {
        **_file(place, WORKFLOW, about),
        "name": about.cited["title"],
        "version": about.code_version,
        "conformsTo": ref(BIOSCHEMAS),
        "license": ref(_licence(about.cited)),
        "softwareRequirements": [ref(LOCK), *(ref(package.id) for package in packages)],
    }
    return crate.add_workflow(
        place, WORKFLOW, main=True, lang="snakemake", lang_version=snakemake, properties=properties
    )


def _package(name: str, version: str) -> Entity:
    """Python, or a package of PyPI."""
    url = f"https://pypi.org/project/{name}/{version}/"
    url = f"https://www.python.org/downloads/release/python-{version.replace('.', '')}/" if name == "python" else url
    return {"@id": url, "@type": "SoftwareApplication", "name": name, "version": version, "url": url}


def _described(folder: Path, about: About, sources: Sources) -> list[Path]:
    """The files that are entities of their own: all results and metadata; of the code those that others refer to."""
    named = [WORKFLOW, LOCK, f"{CODE}CITATION.cff", f"{CODE}LICENSE", f"{CODE}config/config.yaml"]
    named += [
        f"{sources.settings[name]}/{path.name}"
        for name, study in about.studies.items()
        for path in sorted(study.folder.glob("*.*"))
    ]
    everything = sorted(path for path in folder.rglob("*") if path.is_file())
    own = [path for path in everything if not path.relative_to(folder).as_posix().startswith(CODE)]
    return [*own, *(folder / place for place in dict.fromkeys(named) if (folder / place).is_file())]


def _file(path: Path, place: str, about: About) -> Entity:
    kind = KINDS.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    size = str(path.stat().st_size)
    known: Entity = {"name": place, "encodingFormat": kind, "contentSize": size, "sha256": sha256(path)}
    run = about.manifests.get(place.removeprefix(RESULTS))
    if run is not None:
        told = (run["experiment"], run["algorithm"], f"seeds {run['shard']}", f"scale {run['scale']}")
        known["description"] = f"manifest of a training job: {', '.join(told)}, commit {run['commit']}"
    if place == "README.md":
        known["about"] = ref("./")
    return known


def _add_run(crate: Any, about: About, workflow: Any) -> Any:
    """The run: inputs by their checksums, outputs as files."""
    data = [crate.add_jsonld(entity).id for entity in _data(about)]
    scales = sorted({run["scale"] for run in about.manifests.values()})
    sizes = [{"@id": f"#scale/{s}", "@type": "PropertyValue", "name": "scale", "value": s} for s in scales]
    inputs = [f"{CODE}config/", LOCK, *data, *(crate.add_jsonld(size).id for size in sizes)]
    made = (entity for entity in crate.data_entities if entity.id.startswith(RESULTS))
    properties = {
        "name": f"run of the workflow: {about.name}",
        "description": about.description,
        "actionStatus": ref(f"http://schema.org/{'Failed' if about.failed else 'Completed'}ActionStatus"),
    }
    if about.failed:
        properties["error"] = f"{about.failed} jobs failed; the verdicts are those of the others"
    if about.ended:
        properties["endTime"] = about.ended
    return crate.add_action(
        workflow,
        identifier="#run",
        object=[entity for id in inputs if (entity := crate.get(id))],
        result=list(made),
        properties=properties,
    )


def _data(about: About) -> Iterator[Entity]:
    """The data of the runs, each once, with the checksums of what it was made from."""
    seen: set[str] = set()
    for run in about.manifests.values():
        data = run["data"]
        if data["sha256"] in seen:
            continue
        seen.add(data["sha256"])
        found = data.get("found") or {}
        samples = ", ".join(f"{number} {split}" for split, number in data["samples"].items())
        entity = {
            "@id": f"#data/{data['sha256']}",
            "@type": "CreativeWork",
            "name": f"{data['name']} ({data['kind']})",
            "description": f"training data ({samples}); its sha256 is that of the prepared arrays",
            "sha256": data["sha256"],
        }
        files = [f"{path} {checksum}" for path, checksum in sorted((found.get("files") or {}).items())]
        if files:
            entity["identifier"] = single(files)
        if found.get("name") in about.catalogue:
            entity["isBasedOn"] = ref(f"{CROISSANT}{found['name']}.json")
        yield entity


def _authors(cited: Mapping[str, Any]) -> Iterator[Entity]:
    """The authors of CITATION.cff: people with an ORCID are known by it."""
    for place, author in enumerate(cited["authors"], start=1):
        kind = "Person" if "family-names" in author else "Organization"
        yield {"@id": author.get("orcid", f"#author/{place}"), "@type": kind, "name": author_name(author)}


def _licence(cited: Mapping[str, Any]) -> str:
    return f"https://spdx.org/licenses/{cited['license']}"


def _describe_root(crate: Any, about: About, authors: Sequence[Entity], mentioned: Sequence[Any]) -> None:
    licence = {"@id": _licence(about.cited), "@type": "CreativeWork", "name": about.cited["license"]}
    crate.add_jsonld({**licence, "description": f"licence {about.cited['license']}", "url": licence["@id"]})
    for profile, (name, version) in PROFILES.items():
        crate.add_jsonld({"@id": profile, "@type": "CreativeWork", "name": name, "version": version})
    root = crate.root_dataset
    root["name"] = f"{about.cited['title']} ({about.name})"
    root["description"] = about.description
    root["datePublished"] = about.date
    root["license"] = ref(licence["@id"])
    root["author"] = single(list(authors))
    root["keywords"] = list(about.cited["keywords"])
    root["conformsTo"] = [ref(profile) for profile in PROFILES]
    root["mentions"] = list(mentioned)
