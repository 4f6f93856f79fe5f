"""What every registered data set and splitting scheme must hold, and every pair of them.

A data set or a scheme that is new is covered as soon as it is registered: with its defaults, or with the small
settings that are given for it here.
"""

from __future__ import annotations

import random
import subprocess
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from fedrepro.core import streams
from fedrepro.data import dataset as data_files
from fedrepro.data import federation_files as federation_files
from fedrepro.data.dataset import Dataset, Source, Split
from fedrepro.data.datasets import DATASETS
from fedrepro.data.federation_files import Assignment
from fedrepro.data.inside import INSIDE
from fedrepro.data.partitions import PARTITIONS
from fedrepro.errors import UserError
from fedrepro.workflow.train_job import load_federations

#: Sizes that keep the contract quick. Every data set that is not here has its defaults.
SMALL: dict[str, dict[str, Any]] = {
    "cifar10": {"train": 400, "test": 50},
    "cifar100": {"train": 800, "test": 100},
    "emnist": {"train": 1240, "test": 124},
    "fashion_mnist": {"train": 400, "test": 50},
    "femnist": {"writers": 8},
    "fedprox_synthetic": {"clients": 8, "largest": 200},
    "gp_draws": {"clients": 4, "total": 100, "test": 5},
    "hm1": {"test": 10},
    "hm1_outputs": {"test": 10},
    "hm2": {"clients": 6, "test": 10},
    "mnist": {"train": 400, "test": 50},
    "mnist5k": {"train": 400, "test": 100},
    "multi_fidelity": {"test": 20},
    "shakespeare": {"samples": 40},
    "stl10": {"train": 200, "test": 50},
}

#: Further forms of some data sets that schemes need.
FORMS = {
    "mnist pooled": ("mnist", {"train": 400, "test": 100, "pooled": True}),
    "emnist pooled": ("emnist", {"train": 1240, "test": 124, "pooled": True}),
}
DATA = {name: (name, SMALL.get(name, {})) for name in DATASETS} | {
    form: known for form, known in FORMS.items() if known[0] in DATASETS
}

#: Small settings of the schemes that have no defaults, or large ones.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "by_client": [{}, {"clients": 2, "choose": "random", "minimum": 2}],
    "dirichlet": [{"clients": 3, "alpha": 0.5, "minimum": 2}],
    "equal_devices": [{"clients": 3}],
    "iid": [{"clients": 3}],
    "k_classes": [{"clients": 50, "classes": 2}],
    "newcomers": [{"old": 2, "new": 1}],
    "omni_skewed": [{"clients": 3, "samples": 20, "test_samples": 25}],
    "omni_stratified": [{"clients": 3, "samples": 20, "test_samples": 25}],
    "super_cluster_dirichlet": [
        {"clients": 6, "clusters": table, "minimum": 2} for table in ("cifar10", "cifar100", "fashion_mnist", "stl10")
    ],
    "three_groups": [{"clients": 10, "samples": 43}],
}
SCHEMES = {
    f"{scheme} {i}" if i else scheme: (scheme, setting)
    for scheme in PARTITIONS
    for i, setting in enumerate(SETTINGS.get(scheme, [{}]))
}

#: What the papers do must be possible.
MUST_APPLY = {
    "cifar10": ["iid", "dirichlet", "super_cluster_dirichlet"],
    "cifar100": ["iid", "dirichlet", "super_cluster_dirichlet 1"],
    "cmapss": ["by_client"],
    "cmapss_engines": ["newcomers"],
    "dfl_line": ["by_client"],
    "emnist": ["k_classes"],
    "emnist pooled": ["k_classes", "three_groups"],
    "fashion_mnist": ["iid", "dirichlet", "super_cluster_dirichlet 2"],
    "femnist": ["by_client", "by_client 1"],
    "mnist pooled": ["omni_stratified", "omni_skewed"],
    "sarcos": ["equal_devices"],
    "shakespeare": ["by_client", "by_client 1"],
    "stl10": ["iid", "dirichlet", "super_cluster_dirichlet 3"],
    "student": ["by_client"],
}
#: Schemes that leave no training sample unused.
COMPLETE = {"by_client", "dirichlet", "iid", *(name for name in SCHEMES if name.startswith("super_cluster_dirichlet"))}

every_dataset = pytest.mark.parametrize("name", DATA)
every_pair = pytest.mark.parametrize(("name", "scheme"), [(d, p) for d in DATA for p in SCHEMES])


def load(name: str, seed: int = 0) -> Dataset:
    """The data set without any real file of a folder: simulated, or its stand-in."""
    registered, parameters = DATA[name]
    return DATASETS[registered].load(Source(streams.generator(name, seed, "data"), mode="standin"), **parameters)


@cache
def made(name: str, seed: int = 0) -> Dataset:
    return load(name, seed)


def partition(name: str, scheme: str, seed: int = 0) -> Assignment:
    registered, setting = SCHEMES[scheme]
    return PARTITIONS[registered](made(name, seed), streams.generator(name, seed, "partition"), **setting)


def columns(split: Split) -> dict[str, np.ndarray]:
    """All that a split has, by name."""
    return {k: np.asarray(v) for k, v in vars(split).items() if v is not None}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


# --- data sets --------------------------------------------------------------------------------------------------------


@every_dataset
def test_it_says_what_it_is_and_all_of_it_is_finite(name):
    data = made(name)
    assert data.kind in ("standin", "synthetic") or data.found is not None
    assert data.outputs >= 1
    for split in data.splits().values():
        samples = split.samples()
        assert samples.shape == (len(split), *split.shape)
        assert len(split) > 0
        assert np.isfinite(split.x).all()
        assert np.isfinite(split.y).all()
        assert split.shape == data.train.shape
        if np.issubdtype(split.y.dtype, np.integer):
            assert split.y.ndim == 1
            assert set(np.unique(split.y)) <= set(range(data.outputs))
        else:
            assert split.y.shape in ((len(split),), (len(split), data.outputs))
        if data.offset is not None:
            assert np.broadcast_shapes(data.offset.shape, data.factor.shape, split.shape) == split.shape
            assert np.isfinite((split.x[:9] - data.offset) * data.factor).all()


@every_dataset
def test_clients_are_numbered_from_nought_and_each_is_in_one_group(name):
    train = made(name).train
    if train.client is None:
        return
    numbers = np.unique(train.client)
    assert np.array_equal(numbers, np.arange(len(numbers)))
    for split in made(name).splits().values():
        assert split.client is None or set(np.unique(split.client)) <= set(numbers)
    if train.group is not None:
        assert len(np.unique(np.stack([train.client, train.group]), axis=1).T) == len(numbers)


@every_dataset
def test_the_same_stream_gives_the_same_data_and_another_other_data(name):
    """And nothing global is drawn from."""
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state(), random.getstate()  # noqa: NPY002
    again = load(name, 0)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), before[1])
    assert random.getstate() == before[2]
    first, other = made(name, 0), made(name, 1)
    assert first.splits().keys() == again.splits().keys()
    assert all(same(columns(first.splits()[k]), columns(again.splits()[k])) for k in first.splits())
    if first.kind != "real":
        assert not same(columns(first.train), columns(other.train))


@every_dataset
def test_the_plan_knows_its_size(name):
    registered, parameters = DATA[name]
    clients, samples = DATASETS[registered].size(**parameters)
    data = made(name)
    if clients is not None:
        assert len(np.unique(data.train.client)) == clients
    assert samples == pytest.approx(len(data.train), rel=0.25)


@every_dataset
def test_its_file_holds_all_of_it(name, tmp_path):
    data = made(name)
    data_files.save(tmp_path / "data.npz", {0: data})
    loaded = data_files.load(tmp_path / "data.npz")[0]
    assert (loaded.kind, loaded.outputs) == (data.kind, data.outputs)
    assert data.splits().keys() == loaded.splits().keys()
    assert all(same(columns(split), columns(loaded.splits()[k])) for k, split in data.splits().items())
    assert same({k: np.asarray(v) for k, v in data.facts.items()}, dict(loaded.facts))
    for known in ("offset", "factor"):
        assert np.array_equal(getattr(data, known), getattr(loaded, known))


# --- pairs ------------------------------------------------------------------------------------------------------------


def check(data: Dataset, found: Assignment) -> None:
    """No row is held twice, be it by two clients or in two splits; every client has something to learn from."""
    assert all(len(rows) for rows in found.rows["train"])
    assert len(found.groups) in (0, len(found.rows["train"]))
    assert set(found.of) <= set(found.rows)
    for source, split in data.splits().items():
        holders = [rows for name, rows in found.rows.items() if found.of.get(name, name) == source]
        rows = np.concatenate([np.asarray(mine, dtype=np.int64) for clients in holders for mine in clients] or [[]])
        assert len(np.unique(rows)) == len(rows)
        assert len(rows) == 0 or 0 <= rows.min() <= rows.max() < len(split)
    assert {found.of.get(name, name) for name in found.rows} <= set(data.splits())
    assert all(len(rows) in (1, len(found.rows["train"])) for rows in found.rows.values())


@every_pair
def test_a_scheme_splits_the_data_or_says_why_not(name, scheme):
    data = made(name)
    try:
        found = partition(name, scheme)
    except UserError as error:
        reason = str(error)
    else:
        reason = None
    if reason is not None:
        assert scheme not in MUST_APPLY.get(name, []), reason
        assert reason.startswith(SCHEMES[scheme][0])
        assert "\n" not in reason
        return
    check(data, found)
    assert federation_files.content_sha256({0: found}) == federation_files.content_sha256({0: partition(name, scheme)})
    if scheme in COMPLETE:
        for split, clients in found.rows.items():
            assert sum(map(len, clients)) == len(data.splits()[split])
    for cut in INSIDE.values():
        check_inside(data, found, cut)


def check_inside(data: Dataset, dealt: Assignment, cut) -> None:
    """A cut for validation, and for testing where there is no test set yet, loses nothing and shares nothing."""
    parts = {"validation": 0.25} if "test" in dealt.rows else {"validation": 0.25, "test": 0.25}
    if "validation" in dealt.rows or min(map(len, dealt.rows["train"])) < 2:
        return
    found = cut(dealt, streams.generator("inside", 0, "partition"), train=1 - sum(parts.values()), **parts)
    check(data, found)
    for client, mine in enumerate(dealt.rows["train"]):
        assert sorted(np.concatenate([found.rows[p][client] for p in ("train", *parts)])) == sorted(mine)


def test_every_scheme_applies_somewhere_and_something_to_every_data_set():
    applies = set()
    for name in DATA:
        for scheme in SCHEMES:
            try:
                partition(name, scheme)
            except UserError:
                continue
            applies.add((name, scheme))
    assert {name for name, _ in applies} == set(DATA)
    assert {scheme for _, scheme in applies} == set(SCHEMES)


@every_dataset
@pytest.mark.parametrize("scheme", ["by_client", "iid"])
def test_a_training_job_reads_each_clients_own_rows(name, scheme, tmp_path):
    """Through the files, with the seeds' data sets one after the other in memory, and a cut inside each client."""
    datasets = {seed: made(name, seed) for seed in (0, 1)}
    if scheme == "by_client" and datasets[0].train.client is None:
        return
    assignments = {}
    for seed in datasets:
        rng = streams.generator(name, seed, "partition")
        assignments[seed] = INSIDE["shuffled"](partition(name, scheme, seed), rng, train=0.5, validation=0.5)
    data_files.save(tmp_path / "data.npz", datasets)
    federation_files.save(tmp_path / "federation.npz", assignments)
    federations = load_federations(
        data_files.load(tmp_path / "data.npz"),
        federation_files.load(tmp_path / "federation.npz"),
        [0, 1],
        torch.float64,
        torch.device("cpu"),
    )
    for seed, federation in federations.items():
        assert federation.train.samples is federations[0].train.samples
        for part in ("train", "validation"):
            for k in (0, len(federation) - 1):
                mine = assignments[seed].rows[part][k]
                batch = getattr(federation, part).full_batch(k)
                assert np.array_equal(batch.x.numpy(), given_to_a_model(datasets[seed], mine))
                assert np.array_equal(batch.y.numpy(), datasets[seed].train.y[mine])


def given_to_a_model(data: Dataset, rows: np.ndarray) -> np.ndarray:
    x = data.train.samples(rows)
    if data.train.start is not None:
        return x
    x = x.astype(np.float64)
    return x if data.offset is None else (x - data.offset) * data.factor


def test_no_data_set_imports_torch():
    """Preparing data must not cost torch's two seconds."""
    code = "import sys, fedrepro.data.datasets, fedrepro.data.partitions, fedrepro.data.preparation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
