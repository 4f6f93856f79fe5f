"""One tidy table per experiment: the metrics of its shards with data kind, divergence, settings, derived measures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from fedrepro.core.metrics import COLUMNS
from fedrepro.files import read_json, write_atomically

#: columns of every tidy table; those of its settings, `variant`, `point` and `grid.<key>`, come after them
TABLE_COLUMNS = [*COLUMNS, "data", "diverged"]
RUN = ["algorithm", "setting", "seed"]
SMALLEST_START = 1.0  # a run that starts near 0 has not diverged by reaching a thousand times that
Measure = Callable[[pd.DataFrame], pd.DataFrame]  # a tidy table → further rows, derived from it


class Printed(NamedTuple):
    """A printed number and its spread over runs (NaN where none is printed)."""

    value: float
    spread: float

    def __str__(self) -> str:
        return f"{self.value:.3f} ± {self.spread:.3f}"


def read_printed(path: Path) -> dict[str, Printed]:
    """Id → number, for every row of a study's file."""
    return {row.id: Printed(row.value, row.spread) for row in pd.read_csv(path).itertuples()}


class Tables(dict[str, pd.DataFrame]):
    """Inputs of an artefact: tidy tables by experiment, samples as `<experiment>.data`, and printed numbers by id."""

    def __init__(self, frames: Mapping[str, pd.DataFrame] = {}, printed: Mapping[str, Printed] = {}):
        super().__init__(frames)
        self.printed = printed


def collect_metrics(
    shards: Sequence[Path], out: Path, measure: Measure | None = None, divergence: Mapping[str, float] = {}
) -> None:
    """Concatenate the shards (`.parquet` with their `.json`), mark diverged runs (those of the manifests and those by
    `divergence`, see `blown_up`), add the rows of `measure`."""
    frames, manifests = [], [read_json(shard.with_suffix(".json")) for shard in shards]
    for shard, manifest in zip(shards, manifests, strict=True):
        frame = pd.read_parquet(shard)
        gone = {(d["setting"], d["seed"]) for d in manifest["diverged"]}
        frame["data"] = manifest["data"]["kind"]
        frame["diverged"] = [run in gone for run in zip(frame["setting"], frame["seed"], strict=True)]
        frames.append(frame)
    table = with_settings(pd.concat(frames, ignore_index=True)[TABLE_COLUMNS], manifests)
    table["diverged"] |= blown_up(table, divergence)
    if measure:
        table = pd.concat([table, measure(table)], ignore_index=True)[list(table)]
    write_atomically(out, table.to_parquet(None, index=False))


def blown_up(table: pd.DataFrame, divergence: Mapping[str, float]) -> pd.Series:
    """Per row, whether its run has diverged although finite: some |value| of a metric of `divergence` (metric →
    multiple) exceeds multiple · max(|start|, SMALLEST_START), the start being the run's first value of that metric with
    the same split, client and group."""
    gone: set[tuple[object, ...]] = set()
    for metric, multiple in divergence.items():
        own = rows(table, metric).sort_values(["round", "step"], kind="stable")
        start = own.groupby([*RUN, "split", "client", "group"])["value"].transform("first").abs()
        beyond = own["value"].abs() > multiple * start.clip(lower=SMALLEST_START)
        gone |= set(own.loc[beyond, RUN].itertuples(index=False, name=None))
    if not gone:
        return pd.Series(False, index=table.index)
    return pd.Series([run in gone for run in zip(*(table[name] for name in RUN), strict=True)], index=table.index)


def with_settings(table: pd.DataFrame, manifests: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The table with columns for the parts of its settings: `variant`, `point` (the setting without its variant), and
    `grid.<key>` per key of a grid: numbers, or texts if one value is no number; missing where a setting has none."""
    found = []
    for manifest, name, of in ((m, name, of) for m in manifests for name, of in m["settings"].items()):
        line = {"algorithm": manifest["algorithm"], "setting": name, "variant": of["variant"]}
        line["point"] = name.removeprefix(of["variant"]).removeprefix(",")
        found.append(line | {f"grid.{key}": value for key, value in of["grid"].items()})
    about = pd.DataFrame(found).drop_duplicates(["algorithm", "setting"])
    for column in (c for c in about if c.startswith("grid.")):
        number = is_numeric_dtype(about[column]) and not is_bool_dtype(about[column])
        about[column] = about[column].astype(float) if number else about[column].map(str, na_action="ignore")
    return table.merge(about, how="left", on=["algorithm", "setting"])


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


def derived_rows(found: Iterable[tuple[str, pd.DataFrame | list[dict[str, Any]]]], like: pd.DataFrame) -> pd.DataFrame:
    """Tidy rows from (metric, its values): these have the columns of RUN, `round`, `value` and perhaps `group`."""
    values = [pd.DataFrame(mine).assign(metric=metric) for metric, mine in found]
    if not values:
        return like.iloc[:0]
    columns = [*TABLE_COLUMNS, *(c for c in like if c in ("variant", "point") or c.startswith("grid."))]
    about = like.drop_duplicates(RUN)[[*RUN, "experiment", *columns[len(COLUMNS) :]]]
    frame = pd.concat(values, ignore_index=True).merge(about, on=RUN)
    group = frame["group"].fillna("") if "group" in frame else ""
    return frame.assign(step=0, client=-1, group=group, split="derived")[columns]
