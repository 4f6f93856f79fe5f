"""From the shards of an experiment to one tidy table."""

from __future__ import annotations

import pandas as pd
import pytest

from fedrepro.core.metrics import MetricLog
from fedrepro.evidence.tables import TABLE_COLUMNS, blown_up, collect_metrics, derived_rows, final, rows
from fedrepro.files import write_json


def shard(folder, algorithm, runs, diverged=(), kind="synthetic", **manifest):
    """A shard's two files. `runs`: (setting, seed) → the loss of rounds 0, 1, …"""
    log = MetricLog()
    for run, losses in runs.items():
        for round, loss in enumerate(losses):
            log.add(run, round, "loss", loss, split="train")
    path = folder / algorithm / f"{len(runs)}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    log.frame("toy/line", algorithm).to_parquet(path, index=False)
    gone = [{"setting": setting, "seed": seed, "round": 1} for setting, seed in diverged]
    settings = {setting: {"variant": setting, "method": "fedavg", "grid": {}} for setting, _ in runs}
    manifest = {"algorithm": algorithm, "diverged": gone, "data": {"kind": kind}} | (manifest or {"settings": settings})
    write_json(path.with_suffix(".json"), manifest)
    return path


def test_shards_are_joined_with_data_kind_and_divergence(tmp_path):
    shards = [
        shard(tmp_path, "fedavg", {("a", 0): [4, 2], ("b", 0): [4]}, diverged=[("b", 0)], kind="standin"),
        shard(tmp_path, "local", {("b", 0): [4, 3]}),
    ]
    collect_metrics(shards, tmp_path / "table.parquet")
    table = pd.read_parquet(tmp_path / "table.parquet")
    assert list(table.columns) == [*TABLE_COLUMNS, "variant", "point"]
    assert table["value"].tolist() == [4, 2, 4, 4, 3]
    assert table["data"].tolist() == ["standin"] * 3 + ["synthetic"] * 2
    assert table["diverged"].tolist() == [False, False, True, False, False]
    assert table["diverged"].dtype == bool
    assert table.dtypes[["seed", "round", "step", "client"]].eq("int64").all()


@pytest.mark.parametrize(
    ("losses", "gone"),
    [
        ([4, 2, 4000], False),
        ([4, 2, 4001], True),
        ([4, 4001, 2], True),  # it came back, but its numbers are no longer those of a run that trains
        ([-4, 2, -4001], True),
        ([0.001, 2, 999], False),  # a start below 1 counts as 1
        ([0, 1001, 1], True),
        ([4, 1e300], True),
    ],
)
def test_a_run_that_grows_beyond_a_multiple_of_its_start_has_diverged(tmp_path, losses, gone):
    part = shard(tmp_path, "fedavg", {("a", 0): losses, ("a", 1): [4, 2], ("b", 0): [1e9, 1]})

    def measure(table):
        return derived_rows([("end", final(table, "loss")[["algorithm", "setting", "seed", "round", "value"]])], table)

    collect_metrics([part], tmp_path / "table.parquet", measure, {"loss": 1000, "norm": 10})
    table = pd.read_parquet(tmp_path / "table.parquet")
    own = (table["setting"] == "a") & (table["seed"] == 0)
    assert table.loc[own, "diverged"].eq(gone).all()
    assert own.sum() == len(losses) + 1  # with the derived row
    assert not table.loc[~own, "diverged"].any()


def test_a_start_is_that_of_the_same_split_client_and_group():
    rows_of = [("train", -1, 0, 1.0), ("test", -1, 0, 90.0), ("test", -1, 1, 50000.0), ("train", 3, 1, 5000.0)]
    table = pd.DataFrame(rows_of, columns=["split", "client", "round", "value"]).assign(
        algorithm="a", setting="", seed=0, step=0, group="", metric="loss"
    )
    assert not blown_up(table, {"loss": 1000}).any()
    assert blown_up(table, {"loss": 500}).all()
    assert not blown_up(table, {}).any()


def parts_of_settings(table):
    """Each setting's parts, without the missing ones."""
    lines = table.drop_duplicates(["algorithm", "setting"]).drop(columns=TABLE_COLUMNS[3:])
    return [
        {k: v for k, v in line.items() if not pd.isna(v)}
        for line in lines.drop(columns="experiment").to_dict("records")
    ]


def test_the_parts_of_a_setting_are_columns(tmp_path):
    """Numbers and texts of grids; a key that a setting lacks is missing, a key with one text has texts only."""
    settings = {
        "fedavg": {"variant": "fedavg", "method": "fedavg", "grid": {}},
        "q_ffl,q=1,at=end": {"variant": "q_ffl", "method": "q_ffl", "grid": {"q": 1, "at": "end"}},
    }
    single = {"q=0.5,at=0.1": {"variant": "", "method": "local", "grid": {"q": 0.5, "at": 0.1}}}
    shards = [
        shard(tmp_path, "shared", {(name, 0): [4] for name in settings}, settings=settings),
        shard(tmp_path, "local", {(name, seed): [4] for name in single for seed in (0, 1)}, settings=single),
    ]
    collect_metrics(shards, tmp_path / "table.parquet")
    table = pd.read_parquet(tmp_path / "table.parquet")
    assert parts_of_settings(table) == [
        {"algorithm": "shared", "setting": "fedavg", "variant": "fedavg", "point": ""},
        {"algorithm": "shared", "setting": "q_ffl,q=1,at=end", "variant": "q_ffl", "point": "q=1,at=end"}
        | {"grid.q": 1.0, "grid.at": "end"},
        {"algorithm": "local", "setting": "q=0.5,at=0.1", "variant": "", "point": "q=0.5,at=0.1"}
        | {"grid.q": 0.5, "grid.at": "0.1"},
    ]
    assert table["grid.q"].dtype == float
    assert table["seed"].tolist() == [0, 0, 0, 1]


def test_the_same_shards_give_the_same_bytes(tmp_path):
    part = shard(tmp_path, "fedavg", {("", 0): [4, 2]})
    for name in ("one", "two"):
        collect_metrics([part], tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_study_adds_its_measures(tmp_path):
    def measure(table):
        ends = final(table, "loss")[["algorithm", "setting", "seed", "round", "value"]]
        return derived_rows([("tenfold", ends.assign(value=ends["value"] * 10))], table)

    settings = {"lr=1": {"variant": "", "method": "fedavg", "grid": {"lr": 1}}}
    runs = {("lr=1", 0): [4, 2], ("lr=1", 1): [5]}
    part = shard(tmp_path, "fedavg", runs, diverged=[("lr=1", 1)], settings=settings)
    collect_metrics([part], tmp_path / "table.parquet", measure)
    added = rows(pd.read_parquet(tmp_path / "table.parquet"), "tenfold")
    assert added[["experiment", "seed", "round", "value", "split", "client", "step", "data", "diverged"]].to_dict(
        "records"
    ) == [
        dict(experiment="toy/line", seed=0, round=1, value=20, split="derived", client=-1, step=0, data="synthetic")
        | {"diverged": False},
        dict(experiment="toy/line", seed=1, round=0, value=50, split="derived", client=-1, step=0, data="synthetic")
        | {"diverged": True},
    ]
    assert added[["variant", "point", "grid.lr"]].to_numpy().tolist() == [["", "lr=1", 1.0]] * 2


@pytest.fixture
def table():
    columns = ["algorithm", "setting", "seed", "round", "split", "metric", "value"]
    return pd.DataFrame(
        [
            ("fedavg", "", 0, 0, "train", "loss", 4.0),
            ("fedavg", "", 0, 2, "train", "loss", 2.0),
            ("fedavg", "", 0, 2, "test", "loss", 3.0),
            ("fedavg", "", 0, 3, "test", "accuracy", 0.5),
            ("fedavg", "", 1, 1, "train", "loss", 9.0),  # ended early
            ("local", "", 0, 2, "train", "loss", 7.0),
        ],
        columns=columns,
    )


def test_rows_filter_by_metric_and_columns(table):
    assert rows(table, "loss", split="train", seed=0)["value"].tolist() == [4, 2, 7]
    assert rows(table, "nothing").empty


def test_final_is_each_runs_own_last_round(table):
    assert final(table, "loss")["value"].tolist() == [2, 3, 9, 7]
    assert final(table, "loss", algorithm="fedavg", split="train")["value"].tolist() == [2, 9]
