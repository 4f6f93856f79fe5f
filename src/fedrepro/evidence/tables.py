"""One tidy table per experiment: the metrics of all shards, with data kind, divergence and derived measures."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from fedrepro.core import parts
from fedrepro.core.metrics import COLUMNS
from fedrepro.evidence.published import Printed
from fedrepro.files import read_json, write_atomically

#: all columns of a tidy table
TABLE_COLUMNS = [*COLUMNS, "data", "diverged"]
RUN = ["algorithm", "setting", "seed"]


class Tables(dict[str, pd.DataFrame]):
    """Inputs of an artefact: tidy tables by experiment, samples as `<experiment>.data`, and printed numbers by id."""

    def __init__(
        self,
        frames: Mapping[str, pd.DataFrame] = MappingProxyType({}),
        printed: Mapping[str, Printed] = MappingProxyType({}),
    ):
        super().__init__(frames)
        self.printed = printed


def collect_metrics(study: str, shards: Sequence[Path], out: Path) -> None:
    """Concatenate the shards (`.parquet` with their `.json`), mark diverged runs, add the study's measures."""
    frames = []
    for shard in shards:
        manifest = read_json(shard.with_suffix(".json"))
        frame = pd.read_parquet(shard)
        gone = {(d["setting"], d["seed"]) for d in manifest["diverged"]}
        frame["data"] = manifest["data"]["kind"]
        frame["diverged"] = [run in gone for run in zip(frame["setting"], frame["seed"], strict=True)]
        frames.append(frame)
    table = pd.concat(frames, ignore_index=True)[TABLE_COLUMNS]
    if module := parts.study_module(study, "measures"):
        derived = importlib.import_module(module).measure(table)
        table = pd.concat([table, derived], ignore_index=True)[TABLE_COLUMNS]
    write_atomically(out, table.to_parquet(None, index=False))


def rows(table: pd.DataFrame, metric: str, **where: object) -> pd.DataFrame:
    """The rows of one metric, further filtered by column values."""
    asked = [(table[column] == value).to_numpy() for column, value in {"metric": metric, **where}.items()]
    return table[np.logical_and.reduce(asked)]  # one selection: selecting rows takes longer than finding them


def final(table: pd.DataFrame, metric: str, **where: object) -> pd.DataFrame:
    """A metric's rows of each run's last round."""
    found = rows(table, metric, **where)
    if found["round"].nunique() <= 1:  # the only round is the last
        return found
    return found[(found["round"] == found.groupby(RUN)["round"].transform("max")).to_numpy()]


def derived_rows(found: Iterable[tuple[str, pd.DataFrame | list[dict]]], like: pd.DataFrame) -> pd.DataFrame:
    """Tidy rows from (metric, values); values have the columns of RUN, `round`, `value` and optionally `group`."""
    values = [pd.DataFrame(mine).assign(metric=metric) for metric, mine in found]
    if not values:
        return like.iloc[:0]
    about = like.groupby(RUN, as_index=False)[["experiment", "data", "diverged"]].first()
    frame = pd.concat(values, ignore_index=True).merge(about, on=RUN)
    group = frame["group"].fillna("") if "group" in frame else ""
    return frame.assign(step=0, client=-1, group=group, split="derived")[TABLE_COLUMNS]
