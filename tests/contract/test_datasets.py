"""What every registered data set and splitting scheme must hold."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from fedrepro.core import streams
from fedrepro.datasets import DATASETS, Dataset, Source
from fedrepro.datasets import base as data_files
from fedrepro.partitions import PARTITIONS
from fedrepro.partitions import base as federation_files
from fedrepro.training import load_federations

every_dataset = pytest.mark.parametrize("name", DATASETS)
every_pair = pytest.mark.parametrize(("name", "scheme"), [(d, p) for d in DATASETS for p in PARTITIONS])


def make(name: str, seed: int = 0) -> Dataset:
    """The data set without any real file: simulated, or its stand-in."""
    return DATASETS[name].load(Source(streams.generator(name, seed, "data"), mode="standin"))


def splits(data: Dataset):
    return [(name, split) for name in data_files.SPLITS if (split := getattr(data, name)) is not None]


def partition(name: str, scheme: str, seed: int = 0):
    return PARTITIONS[scheme](make(name, seed), streams.generator(name, seed, "partition"))


@every_dataset
def test_it_says_what_it_is_and_all_of_it_is_finite(name):
    data = make(name)
    assert data.kind in ("standin", "synthetic")
    assert data.outputs >= 1
    for _, split in splits(data):
        assert len(split.x) == len(split.y) > 0
        assert np.isfinite(split.x).all()
        assert np.isfinite(split.y).all()
        if np.issubdtype(split.y.dtype, np.integer):
            assert set(np.unique(split.y)) <= set(range(data.outputs))


@every_dataset
def test_the_same_stream_gives_the_same_data_and_another_other_data(name):
    first, again, other = make(name, 0), make(name, 0), make(name, 1)
    for (_, a), (_, b) in zip(splits(first), splits(again), strict=True):
        assert np.array_equal(a.x, b.x)
        assert np.array_equal(a.y, b.y)
    assert not np.array_equal(first.train.x, other.train.x)


@every_dataset
def test_it_leaves_global_randomness_alone(name):
    np.random.seed(1)  # noqa: NPY002
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    make(name)
    assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), before[1])


@every_dataset
def test_the_plan_knows_its_size(name):
    clients, samples = DATASETS[name].size()
    data = make(name)
    if clients is not None:
        assert len(np.unique(data.train.client)) == clients
    assert samples == pytest.approx(len(data.train), rel=0.25)


@every_dataset
def test_its_file_holds_all_of_it(name, tmp_path):
    data = make(name)
    data_files.save(tmp_path / "data.npz", {0: data})
    loaded = data_files.load(tmp_path / "data.npz")[0]
    for (a_name, a), (b_name, b) in zip(splits(data), splits(loaded), strict=True):
        assert a_name == b_name
        assert np.array_equal(a.x, b.x)
        assert np.array_equal(a.y, b.y)


@every_pair
def test_every_row_is_held_by_one_client_at_most_and_every_client_holds_some(name, scheme):
    data, assignment = make(name), partition(name, scheme)
    for split, clients in assignment.rows.items():
        rows = np.concatenate(clients)
        assert len(np.unique(rows)) == len(rows)
        assert set(rows) <= set(range(len(getattr(data, split).x)))
    assert all(len(rows) for rows in assignment.rows["train"])
    assert len(assignment.groups) in (0, len(assignment.rows["train"]))


@every_pair
def test_the_same_stream_gives_the_same_federation(name, scheme):
    one, two = ({0: partition(name, scheme)} for _ in range(2))
    assert federation_files.content_sha256(one) == federation_files.content_sha256(two)


@every_pair
def test_a_training_job_reads_each_clients_own_rows(name, scheme, tmp_path):
    """Through the files, with the seeds' data sets one after the other in memory."""
    datasets = {seed: make(name, seed) for seed in (3, 4)}
    assignments = {seed: partition(name, scheme, seed) for seed in (3, 4)}
    data_files.save(tmp_path / "data.npz", datasets)
    federation_files.save(tmp_path / "federation.npz", assignments)
    federations = load_federations(
        data_files.load(tmp_path / "data.npz"),
        federation_files.load(tmp_path / "federation.npz"),
        [3, 4],
        torch.float64,
        torch.device("cpu"),
    )
    for seed, federation in federations.items():
        assert federation.train.samples is federations[3].train.samples
        for k in (0, len(federation) - 1):
            mine = assignments[seed].rows["train"][k]
            batch = federation.train.full_batch(k)
            assert np.array_equal(batch.x.numpy(), datasets[seed].train.x[mine].astype(np.float64))
            assert np.array_equal(batch.y.numpy(), datasets[seed].train.y[mine])


def test_no_data_set_imports_torch():
    """Preparing data must not cost torch's two seconds."""
    code = "import sys, fedrepro.datasets, fedrepro.partitions, fedrepro.preparation; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
