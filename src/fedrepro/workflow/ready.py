"""Before the first job of a run: wrong targets, devices and missing data are one line; the plan's costs are made."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrepro.core import parts
from fedrepro.data.catalogue import present
from fedrepro.errors import UserError, nearest
from fedrepro.files import ROOT
from fedrepro.workflow.counts import OTHER_JOBS, TYPICAL_TRAINING

if TYPE_CHECKING:
    from fedrepro.workflow.layout import Layout

PLAN = "plan.json"


def check_targets(arguments: Sequence[str], known: Iterable[str], results: str) -> None:
    """UserError if a target after `--` is no study or artefact (`known`), no rule and no file of the results."""
    known = [*known, *OTHER_JOBS, "train_algorithm"]
    for target in arguments[arguments.index("--") + 1 :] if "--" in arguments else ():
        if target not in known and not target.startswith(str(Path(results).parent)):
            raise UserError(f"there is no study, artefact or rule '{target}'{nearest(target, known)}")


def check_device(layout: "Layout", local: bool) -> None:
    """UserError if the device does not exist on this machine; the nodes of a cluster may have it."""
    if not local:
        return
    if layout.device == "cuda" and not layout.gpus_listed:
        raise UserError("device: 'cuda' was asked for, but nvidia-smi lists no GPU here; DEVICE=auto takes what exists")
    if layout.device == "mps" and sys.platform != "darwin":
        raise UserError("device: 'mps' was asked for, but only a Mac has it; DEVICE=auto takes what exists")


def fetch_real(layout: "Layout", datasets: Iterable[str]) -> None:
    """With data: real, fetch the files that the data sets lack; one UserError that names those that cannot be had."""
    if layout.data != "real":
        return
    from fedrepro.data.fetch import fetch_missing

    folders, lacking = list(map(Path, layout.data_folders)), {}
    for files in sorted({entry.files for name in datasets if (entry := parts.dataset(name)).files}):
        if present(files, folders) is None:
            try:
                fetch_missing(files, folders)
            except (UserError, OSError) as error:
                lacking[files] = str(error)
    if lacking:
        others = f" (and {', '.join(list(lacking)[1:])})" if len(lacking) > 1 else ""
        raise UserError(f"{next(iter(lacking.values()))}{others}")


def rough_costs(scale: str, training: Iterable[Any]) -> dict[str, float]:
    """Seconds of the training jobs with these wildcards, by STUDY/EXPERIMENT/ALGORITHM/SHARD: the same for all. The
    progress line has them for the few seconds until the plan is made; none at scales where jobs differ too much."""
    each = TYPICAL_TRAINING.get(scale)
    return {f"{w.study}/{w.experiment}/{w.algorithm}/{w.shard}": each for w in training} if each else {}


def start_plan(layout: "Layout") -> Path:
    """Make the plan in a process of its own, since it imports torch; the file that will have the costs."""
    file = Path(layout.at(PLAN))
    file.unlink(missing_ok=True)
    settings = {"scale": layout.scale, "results": str(Path(layout.results).parent), "config": str(layout.folder)}
    code = "import sys; from fedrepro.workflow.ready import write_plan; write_plan(*sys.argv[1:])"
    command = [sys.executable, "-c", code, str(file), json.dumps({**settings, "only": " ".join(layout.only)})]
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    return file


def write_plan(file: str, settings: str) -> None:
    """Seconds of every training job, by STUDY/EXPERIMENT/ALGORITHM/SHARD."""
    from fedrepro.files import read_yaml, write_json
    from fedrepro.workflow import costs
    from fedrepro.workflow.layout import Layout

    layout = Layout({**read_yaml(ROOT / "config" / "config.yaml"), **json.loads(settings)})
    jobs = costs.training_jobs(Path(layout.results).parent, costs.needed_experiments(layout), costs.core_rate())
    write_json(Path(file), {f"{j.experiment}/{j.algorithm}/{j.shard}": j.seconds for j in jobs})
