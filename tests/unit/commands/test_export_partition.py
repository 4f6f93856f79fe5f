"""Partitions for other suites: the same rows as in a job, read back as json and by flwr-datasets."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from fedrepro.commands import cli, export_partition
from fedrepro.core.experiment import load_experiment
from fedrepro.data import assignment, dataset
from fedrepro.data.preparation import partition_data, prepare_data
from fedrepro.files import sha256
from tests.configs import write_config


@pytest.fixture
def exported(tmp_path, monkeypatch, capsys):
    """Seed 1 of the small experiment: (folder, printed lines, the workflow's own files of that shard)."""
    write_config(tmp_path)
    monkeypatch.setattr(export_partition, "CONFIG", tmp_path / "config")
    out = tmp_path / "out"
    assert cli.main(["export-partition", "toy/line", "--to", "flwr", "--seed", "1", "--out", str(out)]) == 0
    e = load_experiment(tmp_path / "config", "toy/line", "paper")
    data, federation = tmp_path / "data.npz", tmp_path / "federation.npz"
    prepare_data(e.dataset_id, e.spec["dataset"], [0, 1, 2, 3], "auto", [], data)
    partition_data(e.federation_id, e.spec["partition"], [0, 1, 2, 3], data, federation)
    return out, capsys.readouterr().out, dataset.load(data)[1], assignment.load(federation)[1]


def test_the_rows_are_those_of_a_job(exported):
    out, said, _, held = exported
    about = json.loads((out / "partition.json").read_text())
    for split, found in about["splits"].items():
        assert np.array_equal(np.concatenate(found["rows"]), held[f"{split}/rows"])
        assert np.array_equal(np.cumsum([0, *map(len, found["rows"])]), held[f"{split}/offsets"])
    assert about["federation_sha256"] == assignment.content_sha256({1: held})
    assert about["federation_sha256"] in said
    assert (about["seed"], about["shard"]["seeds"], about["dataset"]["kind"]) == (1, [0, 1, 2, 3], "synthetic")


def test_the_samples_are_those_of_a_job(exported):
    out, said, data, held = exported
    table = pd.read_parquet(out / "train.parquet")
    assert np.array_equal(np.stack(table["x"]), data.train.samples(held["train/rows"]))
    assert np.array_equal(table["y"], data.train.y[held["train/rows"]])
    assert np.array_equal(table["partition_id"].value_counts(sort=False), np.diff(held["train/offsets"]))
    assert sha256(out / "train.parquet") in said


def test_flwr_datasets_reads_it_back(exported):
    partitioners = pytest.importorskip("flwr_datasets.partitioner", reason="flwr-datasets is not installed")
    datasets = pytest.importorskip("datasets")
    out, _, data, held = exported
    partitioner = partitioners.NaturalIdPartitioner(partition_by="partition_id")
    partitioner.dataset = datasets.Dataset.from_parquet(str(out / "train.parquet"))
    assert partitioner.num_partitions == len(held["train/offsets"]) - 1
    for k, name in partitioner.partition_id_to_natural_id.items():
        mine = held["train/rows"][held["train/offsets"][name] : held["train/offsets"][name + 1]]
        part = partitioner.load_partition(k)
        assert part["row"][:] == mine.tolist()
        assert np.allclose(part["x"][:], data.train.samples(mine))


def test_what_does_not_exist_is_one_line(tmp_path, monkeypatch, capsys):
    write_config(tmp_path)
    monkeypatch.setattr(export_partition, "CONFIG", tmp_path / "config")
    assert cli.main(["export-partition", "toy/line", "--seed", "6"]) == 1
    assert capsys.readouterr().err == "error: --seed 6: toy/line has seeds 0 to 5\n"
    assert cli.main(["export-partition", "toy/lin"]) == 1
    assert "did you mean 'line'" in capsys.readouterr().err
