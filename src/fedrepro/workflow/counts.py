"""Sizes of an experiment, from its settings alone, and times of the jobs beside training; without torch."""

from fedrepro.core import parts
from fedrepro.core.experiment import Experiment

#: rule → seconds per job, training apart
OTHER_JOBS = {
    **dict.fromkeys(("prepare_data", "partition_data", "collect_metrics", "merge_ledgers"), 1.0),
    **{"render_artefact": 1.5, "execute_notebook": 6.0, "judge_claims": 3.0, "build_report": 3.0, "all": 0.0},
}
#: scale → seconds of a training job, on average over the studies, for the time until the plan (workflow/costs.py) is
#: made; at the larger scales jobs differ too much
TYPICAL_TRAINING = {"smoke": 1.0, "demo": 5.0}


def size_of(e: Experiment) -> tuple[int | None, int]:
    """(clients, None where the partition makes them; training samples) of the experiment's data set."""
    parameters = {**e.spec["dataset"]}
    size: tuple[int | None, int] = parts.dataset(parameters.pop("name")).size(**parameters)
    return size


def clients_of(e: Experiment) -> int:
    return int(e.spec["partition"].get("clients", size_of(e)[0]))


def client_samples(e: Experiment) -> int:
    """Approximate training samples per client."""
    partition = e.spec["partition"]
    share = partition.get("inside", {}).get("train", 1.0)
    return int(max(1, round(share * partition.get("samples", size_of(e)[1] // clients_of(e)))))


def samples_read(e: Experiment) -> int:
    """Samples that all clients read in training, over all rounds, algorithms, settings and seeds."""
    clients, each, asked, local = clients_of(e), client_samples(e), e.spec["participation"]["clients"], e.spec["local"]
    batch = local.get("batch", "full")
    width = each if batch == "full" else min(batch, each)
    read = local["steps"] * width if "steps" in local else local.get("epochs", 1) * each
    settings = sum(len(e.settings(algorithm)) for algorithm in e.spec["algorithms"])
    taking_part = clients if asked == "all" else min(asked, clients)
    return int(e.spec["rounds"] * taking_part * read * settings * e.spec["seeds"])
