"""Where results are, and which files a job needs: used by workflow/rules/*.smk. Patterns have wildcards in braces; the
input functions take snakemake's wildcards."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from fedrepro.core import outside, parts
from fedrepro.core.experiment import Experiment, load_artefacts, load_experiments, select
from fedrepro.core.schemas import validate
from fedrepro.core.streams import seeds_of
from fedrepro.core.study import load_studies
from fedrepro.data.catalogue import data_folders, present
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from fedrepro.workflow.checks import check_once
from fedrepro.workflow.code_inputs import code_sha256, files_behind, syntax_sha256, training_files
from fedrepro.workflow.priorities import behind_headlines, needed_by_claims, priorities

OTHERS = ("readings", "headlines", "numbers")  # tables that judging makes beside a ledger


class Places(NamedTuple):
    """Jobs that share a place in a cluster's queue (snakemake's groups, without effect on one machine): short ones that
    are useless if one of them fails. None: each has its own."""

    data: str
    training: str | None
    results: str
    training_minutes: int


LONG = Places("data_{dataset}", None, "results_{study}", 720)
PLACES = {
    "smoke": Places("data", "study_{study}", "study_{study}", 10),  # a job takes a second or two
    "demo": Places("data_{dataset}", "train_{study}_{experiment}", "results_{study}", 30),
    "workstation": LONG,
    "paper": LONG,
}


class Layout:
    """The workflow's config, checked, and the paths and inputs that follow from it."""

    def __init__(self, config: Mapping[str, Any]):
        config = dict(config)
        validate(config, "config", "config/config.yaml (or --config)")
        only = config["only"]
        self.only = re.findall(r"[^\s,]+", only) if isinstance(only, str) else list(only or [])
        self.scale = config["scale"]
        self.data, self.data_dir = config["data"], config["data_dir"]
        self.data_folders = data_folders(self.data_dir)
        self.device, self.strategy = config["device"], config["strategy"]
        self._divergence = config.get("divergence", {})
        self.container = config.get("container")
        self.folder = Path(config["config"] or os.path.relpath(ROOT / "config"))
        if not os.path.isdir(self.folder):  # unlike Path.is_dir, False for a name that is too long
            raise UserError(f"config: folder '{self.folder}' does not exist")
        if not re.fullmatch(r"[^{}\x00-\x1f\x7f]{1,1000}", config["results"]):
            raise UserError("results: a folder's name without braces and control characters is needed")
        self.results = f"{config['results'].rstrip('/')}/{self.scale}"
        listed = config.get("studies") or []
        parts.add_studies(listed.split(os.pathsep) if isinstance(listed, str) else listed)
        self.declared = load_studies(self.folder)
        self.experiments = load_experiments(self.folder, self.scale)
        self._folders: dict[str, Path] = {}  # of alternatives, which have config folders of their own
        for folder in map(Path, config.get("variants", ())):
            found = {id: e for id, e in load_experiments(folder, self.scale).items() if id not in self.experiments}
            self._folders |= dict.fromkeys(found, folder)
            self.experiments |= found
        self.artefacts = load_artefacts(self.folder, self.experiments)
        self.chosen = select(self.only, self.artefacts, self.declared)
        self.chosen_studies = sorted({a.split("/")[0] for a in self.chosen})
        self.studies = sorted({e.study for e in self.experiments.values()})
        self.places = PLACES[self.scale]
        check_once(self.experiments.values(), self.declared.values())

    @property
    def whole_studies(self) -> list[str]:
        """Studies with all artefacts chosen: these are judged and get their notebook."""
        return [s for s in self.studies if (mine := set(self.artefacts_of(s))) and mine <= set(self.chosen)]

    @property
    def notebooks(self) -> list[str]:
        """Of whole studies, and of all of them; a study outside the package need not have one."""
        return [name for name in (*self.whole_studies, "overview") if self.whole_studies and self.notebook(name)]

    def artefacts_of(self, study: str) -> list[str]:
        return [a for a in self.artefacts if a.startswith(f"{study}/")]

    def artefact_files(self, artefact: str) -> list[str]:
        return [self.at(f"artefacts/{artefact}.{suffix}") for suffix in ("csv", "svg", "png", "json")]

    def _results_of(self, study: str) -> list[str]:
        """All artefacts of a study and its ledger."""
        files = [f for a in self.artefacts_of(study) for f in self.artefact_files(a)]
        return [*files, self.at(f"ledgers/{study}.csv")]

    def targets(self) -> dict[str, list[str]]:
        """The names of studies and artefacts, each with its files."""
        shown = {s: [self.at(f"notebooks/{s}.html")] if self.notebook(s) else [] for s in self.studies}
        studies = {s: [*self._results_of(s), *shown[s]] for s in self.studies}
        return studies | {a: [*self.artefact_files(a), *self._ledgers_of([a])] for a in self.artefacts}

    def at(self, path: str) -> str:
        return f"{self.results}/{path}"

    def log(self, path: str) -> str:
        return self.at(f"logs/{path}.log")

    def benchmark(self, path: str) -> str:
        return self.at(f"benchmarks/{path}.tsv")

    def experiment(self, wildcards: Any) -> Experiment:
        return self.experiments[f"{wildcards.study}/{wildcards.experiment}"]

    def config_folder(self, wildcards: Any) -> str:
        """Where a training job reads its experiment."""
        return str(self._folders.get(f"{wildcards.study}/{wildcards.experiment}", self.folder))

    @cached_property
    def datasets(self) -> dict[str, dict[str, Any]]:
        return {e.dataset_id: e.spec["dataset"] for e in self.experiments.values()}

    @cached_property
    def partitions(self) -> dict[str, dict[str, Any]]:
        return {e.federation_id: e.spec["partition"] for e in self.experiments.values()}

    def data_shard(self, dataset_id: str, shard: str) -> str:
        """`all` for data that does not depend on the seed: prepared once."""
        return shard if parts.dataset(self.datasets[dataset_id]["name"]).seeded else "all"

    def data_seeds(self, wildcards: Any) -> list[int]:
        return [-1] if wildcards.shard == "all" else seeds_of(wildcards.shard)

    def real_files(self, wildcards: Any) -> list[str]:
        """The config files that a data set reads, and its real files that exist: data is prepared again when these
        appear, disappear or change. With data: real, files that the job fetches into the cache do not count."""
        entry = parts.dataset(self.datasets[wildcards.dataset]["name"])
        folders = {"standin": [], "real": self.data_folders[:-1], "auto": self.data_folders}[self.data]
        here = present(entry.files, list(map(Path, folders))) if entry.files else None
        own = (os.path.relpath(ROOT / path) for path in entry.reads)
        return [*own, *(str(path) for path in (here[1].values() if here else ()))]

    def dataset_file(self, wildcards: Any) -> str:
        return self._data_file(wildcards.dataset, wildcards.shard)

    def training_data(self, wildcards: Any) -> dict[str, str]:
        e = self.experiment(wildcards)
        return {
            "dataset": self._data_file(e.dataset_id, wildcards.shard),
            "federation": self.at(f"federations/{e.federation_id}/{wildcards.shard}.npz"),
        }

    @cached_property
    def _priorities(self) -> dict[str, int]:
        return priorities(self.experiments.values(), behind_headlines(self.declared.values()))

    def priority(self, wildcards: Any) -> int:
        """Of a training job: higher where it decides more headlines per hour."""
        return self._priorities[self.experiment(wildcards).id]

    def divergence(self, wildcards: Any) -> dict[str, float]:
        """Metric → the multiple of its start beyond which a run has diverged; the experiment's own go before."""
        return {**self._divergence, **self.experiment(wildcards).spec.get("divergence", {})}

    def runs(self, wildcards: Any, suffix: str) -> list[str]:
        return self._run_files(self.experiment(wildcards), suffix)

    def _run_files(self, e: Experiment, suffix: str) -> list[str]:
        return [self.at(f"runs/{e.id}/{algorithm}/{shard}.{suffix}") for algorithm, shard in e.jobs()]

    def tables(self, artefact: str) -> list[str]:
        return [self.at(f"tables/{e.id}.parquet") for e in self._experiments_of(artefact, "experiments")]

    def manifests(self, artefact: str) -> list[str]:
        return [f for e in self._experiments_of(artefact, "experiments") for f in self._run_files(e, "json")]

    def samples(self, artefact: str) -> list[str]:
        """Data files of the experiments whose samples an artefact shows: those of the first seed."""
        return [self._data_file(e.dataset_id, e.shards()[0]) for e in self._experiments_of(artefact, "data")]

    def _experiments_of(self, artefact: str, key: str) -> list[Experiment]:
        spec = self.artefacts[artefact]
        return [self.experiments[f"{spec['study']}/{name}"] for name in spec.get(key, [])]

    def _data_file(self, dataset_id: str, shard: str) -> str:
        return self.at(f"data/{dataset_id}/{self.data_shard(dataset_id, shard)}.npz")

    def judging(self, wildcards: Any) -> dict[str, list[str]]:
        """The input files of a ledger."""
        study, _, artefact = wildcards.ledger.partition("/")
        mine = [e for e in self.experiments.values() if e.study == study]
        mine = self._experiments_of(wildcards.ledger, "experiments") if artefact else mine
        return {
            "study": self.study_files("study.yaml", study),
            "claims": self.study_files("claims.yaml", study),
            "published": self.study_files("published.csv", study),
            "tables": [self.at(f"tables/{e.id}.parquet") for e in mine],
            "manifests": [f for e in mine for f in self._run_files(e, "json")],
            "experiments": self.experiment_files([study]),  # for the published settings
        }

    @property
    def judged(self) -> dict[str, str]:
        """The tables that judging makes: of one ledger."""
        return {"ledger": self.at("ledgers/{ledger}.csv")} | {o: self.at(f"{o}/{{ledger}}.csv") for o in OTHERS}

    def resting_on(self, artefact: str) -> list[str]:
        """Ids of the claims that need only an artefact's experiments."""
        study, shown = self.artefacts[artefact]["study"], set(self.artefacts[artefact]["experiments"])
        path = self.declared[study].file("claims.yaml")
        needed = needed_by_claims(path) if path else {}
        return [claim for claim, experiments in needed.items() if experiments and experiments <= shown]

    def asked_claims(self, wildcards: Any) -> list[str] | None:
        """Ids of a ledger's claims; None for all of its study."""
        return self.resting_on(wildcards.ledger) if "/" in wildcards.ledger else None

    @property
    def ledgers(self) -> list[str]:
        """One per whole study; of the others, one per chosen artefact."""
        alone = [a for a in self.chosen if a.split("/")[0] not in self.whole_studies]
        return self._ledgers_of([*self.whole_studies, *alone])

    def _ledgers_of(self, names: list[str]) -> list[str]:
        """The ledgers of studies and artefacts (`study/artefact`) that have claims."""
        return [self.at(f"ledgers/{n}.csv") for n in names if self.declared[n.split("/")[0]].file("claims.yaml")]

    def notebook(self, name: str) -> str | None:
        """The file of a notebook: in notebooks/; of a study outside the package its notebook.ipynb, None without."""
        if name in outside.known():
            return next(iter(self.study_files("notebook.ipynb", name)), None)
        return os.path.relpath(ROOT / "notebooks" / f"{name}.ipynb")

    def notebook_inputs(self, wildcards: Any) -> dict[str, list[str]]:
        """The results that a notebook shows: of one study or, in the overview, of all whole studies."""
        overview = wildcards.notebook == "overview"
        studies = self.whole_studies if overview else [wildcards.notebook]
        summary = [self.at("ledger.csv"), *self.study_files("errata.yaml", *self.whole_studies)]
        results = summary if overview else self._results_of(wildcards.notebook)
        return {
            "results": results,
            "experiments": self.experiment_files(studies),
            "notebook": [self.notebook(wildcards.notebook) or ""],
        }

    def experiment_files(self, studies: list[str]) -> list[str]:
        """All files of the experiments: the report and the notebooks list the assumptions in them."""
        return sorted({str(file) for e in self.experiments.values() if e.study in studies for file in e.files})

    def study_files(self, name: str, *studies: str) -> list[str]:
        """The file of that name (`published.csv`, `errata.yaml`) of each study that has one."""
        return [path for study in studies for path in self.declared[study].files(name)]

    @staticmethod
    def hashed(script: str, code: list[str]) -> str:
        """One hash of a script and library files, the parameter `code` of a job, which runs again if they do else."""
        return code_sha256((f"scripts/{script}.py", *code))

    @staticmethod
    def hashes(script: str, code: list[str]) -> dict[str, str]:
        """The hash of each file, for artefacts, which list them."""
        return {file: syntax_sha256(file) for file in (f"scripts/{script}.py", *code)}

    def dataset_code(self, wildcards: Any) -> list[str]:
        name = self.datasets[wildcards.dataset]["name"]
        return list(files_behind("fedrepro.data.preparation", parts.module_of("datasets", name)))

    def partition_code(self, wildcards: Any) -> list[str]:
        name = self.partitions[f"{wildcards.dataset}/{wildcards.partition}"]["name"]
        shared = ("fedrepro.data.preparation", "fedrepro.report.plotting")
        return list(files_behind(*shared, parts.module_of("partitions", name)))

    def training_code(self, wildcards: Any) -> list[str]:
        e = self.experiment(wildcards)
        return list(training_files(e.methods(wildcards.algorithm), e.spec["model"]["name"]))

    def measures_code(self, study: str) -> list[str]:
        module = parts.study_module(study, "measures")
        return list(files_behind("fedrepro.evidence.tables", *([module] if module else [])))

    def artefact_code(self, artefact: str) -> list[str]:
        return list(files_behind("fedrepro.report.rendering", parts.artefact_module(*artefact.split("/"))))

    @property
    def ledger_code(self) -> list[str]:
        return list(files_behind("fedrepro.evidence.judging"))

    @property
    def notebook_code(self) -> list[str]:
        return list(files_behind("fedrepro.workflow.run_notebook", "fedrepro.report.notebook"))

    @property
    def report_code(self) -> list[str]:
        return [*files_behind("fedrepro.report.page"), *(_in_checkout(path) for path in sorted(_templates("*")))]

    @property
    def other_pages(self) -> list[str]:
        """Names of the report's pages beside index.html: those with a template `page_<name>.html.j2`."""
        return sorted({path.name[5:-8] for path in _templates("page_*.html.j2")} - {"index"})

    @property
    def reference_files(self) -> list[str]:
        """The verdicts of the committed reference, which the report shows beside a run's; none without a reference."""
        files = (ROOT / "results" / "reference" / name for name in ("headlines.csv", "ledger.csv"))
        return [os.path.relpath(path) for path in files if path.is_file()]

    @cached_property
    def gpus_per_job(self) -> int:
        """1 if training runs on cuda, else 0."""
        return int(self.device == "cuda" or (self.device == "auto" and self.gpus_listed))

    @cached_property
    def gpus_listed(self) -> bool:
        """Whether this machine has a GPU for cuda."""
        return _cuda_present()


def _templates(pattern: str) -> list[Path]:
    """Templates, style and script of the report."""
    return [path for path in (parts.PACKAGE / "report").glob(pattern) if path.suffix in (".j2", ".css", ".js")]


def _in_checkout(path: Path) -> str:
    return f"src/{path.relative_to(parts.PACKAGE.parent)}"


def _cuda_present() -> bool:
    """Whether the driver lists a GPU; without torch, which takes two seconds to import."""
    if shutil.which("nvidia-smi") is None:
        return False
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout
