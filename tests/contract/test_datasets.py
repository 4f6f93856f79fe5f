"""The contract of every data set, every partition, and every pair of both. A new one is covered as soon as its file
exists: a data set by the `example` of its entry, a partition by its `EXAMPLES`.
"""

from __future__ import annotations

import ast
import importlib
import random
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedrepro.core import parts, streams
from fedrepro.data import assignment as federation_files
from fedrepro.data import dataset as data_files
from fedrepro.data.assignment import Assignment
from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.preparation import INSIDE
from fedrepro.errors import UserError
from fedrepro.workflow.train_job import load_federations

DATASETS = list(parts.modules("datasets"))
#: partition → data set → the settings that must work with it
EXAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    name: importlib.import_module(module).EXAMPLES for name, module in parts.modules("partitions").items()
}
#: every partition with each of its settings: "dirichlet 0" → (partition, settings)
SETTINGS = {
    f"{name} {i}": (name, setting)
    for name, examples in EXAMPLES.items()
    for i, setting in enumerate({repr(setting): setting for setting in examples.values()}.values())
}
every_dataset = pytest.mark.parametrize("name", DATASETS)
every_pair = pytest.mark.parametrize(("name", "scheme"), [(d, s) for d in DATASETS for s in SETTINGS])


def load(name: str, seed: int = 0) -> Dataset:
    """The data set's example, simulated or from its stand-in."""
    entry = parts.dataset(name)
    return entry.load(Source(streams.generator(name, seed, "data"), mode="standin"), **entry.example)


@cache
def made(name: str, seed: int = 0) -> Dataset:
    return load(name, seed)


def partition(name: str, scheme: str, seed: int = 0) -> Assignment:
    partition_name, setting = SETTINGS[scheme]
    return deal(name, partition_name, seed, **setting)


def deal(name: str, partition_name: str, seed: int = 0, **setting: Any) -> Assignment:
    return parts.partition(partition_name)(made(name, seed), streams.generator(name, seed, "partition"), **setting)


def columns(split: Split) -> dict[str, np.ndarray]:
    """The columns of a split, by name."""
    return {k: np.asarray(v) for k, v in vars(split).items() if v is not None}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) and a[k].dtype == b[k].dtype for k in a)


# --- data sets --------------------------------------------------------------------------------------------------------


@every_dataset
def test_its_kind_is_known_and_its_values_are_finite(name):
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
def test_clients_are_numbered_from_zero_and_each_is_in_one_group(name):
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
    """No global generator is used."""
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
    entry = parts.dataset(name)
    clients, samples = entry.size(**entry.example)
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
    """No row is held twice, neither by two clients nor in two splits. Every client has training samples."""
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
def test_a_scheme_splits_the_data_or_gives_the_reason(name, scheme):
    data = made(name)
    try:
        found = partition(name, scheme)
    except UserError as error:
        reason = str(error)
    else:
        reason = None
    partition_name, setting = SETTINGS[scheme]
    if reason is not None:
        assert setting != EXAMPLES[partition_name].get(name), reason
        assert reason.startswith(partition_name)
        assert "\n" not in reason
        return
    check(data, found)
    assert federation_files.content_sha256({0: found}) == federation_files.content_sha256({0: partition(name, scheme)})
    for cut in INSIDE.values():
        check_inside(data, found, cut)


def check_inside(data: Dataset, dealt: Assignment, cut: Callable[..., Assignment]) -> None:
    """A cut for validation (and for testing, if there is no test set yet) loses no row and shares none."""
    shares = {"validation": 0.25} if "test" in dealt.rows else {"validation": 0.25, "test": 0.25}
    if "validation" in dealt.rows or min(map(len, dealt.rows["train"])) < 2:
        return
    found = cut(dealt, streams.generator("inside", 0, "partition"), train=1 - sum(shares.values()), **shares)
    check(data, found)
    for client, mine in enumerate(dealt.rows["train"]):
        assert sorted(np.concatenate([found.rows[p][client] for p in ("train", *shares)])) == sorted(mine)


@every_dataset
def test_every_data_set_can_be_dealt_out_at_random_and_by_its_own_clients(name):
    """No sample is left over; `by_client` refuses exactly the data sets without clients."""
    data = made(name)
    dealt = [deal(name, "iid", clients=3)]
    if data.train.client is None:
        with pytest.raises(UserError, match="by_client: this data set does not say"):
            deal(name, "by_client")
    else:
        dealt.append(deal(name, "by_client"))
    for found in dealt:
        assert all(sum(map(len, clients)) == len(data.splits()[split]) for split, clients in found.rows.items())


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_partition_has_examples_of_shared_data_sets_or_of_its_own_study(name):
    module = parts.module_of("partitions", name)
    usable = parts.usable_by(module.split(".")[2], "datasets")
    assert EXAMPLES[name]
    assert set(EXAMPLES[name]) <= set(usable)


@every_dataset
@pytest.mark.parametrize("scheme", ["by_client", "iid"])
def test_a_training_job_reads_each_clients_own_rows(name, scheme, tmp_path):
    """Through the files, with the data sets of all seeds stacked in memory, and a cut inside each client."""
    datasets = {seed: made(name, seed) for seed in (0, 1)}
    if scheme == "by_client" and datasets[0].train.client is None:
        return
    assignments = {}
    for seed in datasets:
        rng = streams.generator(name, seed, "partition")
        setting = {"clients": 3} if scheme == "iid" else {}
        assignments[seed] = INSIDE["shuffled"](deal(name, scheme, seed, **setting), rng, train=0.5, validation=0.5)
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


def imported(code: str) -> set[str]:
    """The modules in a fresh process after it has run the code."""
    code += "; import sys; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split())


def test_no_data_set_and_no_partition_imports_torch():
    """Importing torch takes two seconds, which preparing data need not pay."""
    modules = [*parts.modules("datasets").values(), *parts.modules("partitions").values()]
    found = imported(f"import fedrepro.data.preparation, {', '.join(modules)}")
    assert set(modules) <= found
    assert "torch" not in found


def test_reading_a_prepared_data_set_takes_one_module():
    found = imported("import fedrepro.data.dataset")
    assert {m for m in found if m.startswith("fedrepro.")} == {
        *("fedrepro.data", "fedrepro.data.dataset", "fedrepro.errors", "fedrepro.files"),
    }


def test_no_module_of_data_imports_another_in_a_circle():
    """Neither at the top of a module nor inside a function."""
    paths = (parts.PACKAGE / "data").rglob("*.py")
    names = {".".join(path.relative_to(parts.PACKAGE.parent).with_suffix("").parts): path for path in paths}
    imports = {name: _imported_by(path) & set(names) for name, path in names.items()}
    while leaves := {name for name, needs in imports.items() if not needs}:
        imports = {name: needs - leaves for name, needs in imports.items() if name not in leaves}
    assert imports == {}


def _imported_by(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found
