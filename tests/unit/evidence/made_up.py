"""Made-up results: tidy tables with the manifests of their runs, claims on them, and their verdicts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from fedrepro.core.expansion import Located
from fedrepro.evidence import ledger
from fedrepro.evidence.claim_files import Claim, Claims
from fedrepro.evidence.ledger import Judged
from tests.configs import changed, experiment

OURS = {"experiment": "line", "algorithm": "toy", "metric": "loss"}
OTHER = {**OURS, "algorithm": "fedavg"}
COMMON = {"source": "Fig. 1", "origin": "paper", "statement": "It is so.", "measured_on": "synthetic"}
ALGORITHMS = {"toy": {"lr": 0.1}, "fedavg": {"lr": 0.1}}


def runs(values, algorithm="toy", **columns) -> pd.DataFrame:
    """A tidy table with one row per seed; a value that is None is a diverged run."""
    table = pd.DataFrame(
        {
            "experiment": "toy/line",
            "algorithm": algorithm,
            "setting": "",
            "seed": range(len(values)),
            "round": 10,
            "step": 0,
            "client": -1,
            "group": "",
            "split": "test",
            "metric": "loss",
            "value": [math.nan if value is None else float(value) for value in values],
            "data": "synthetic",
            "diverged": [value is None for value in values],
        }
    )
    return table.assign(**columns)


def curves(per_seed, positions, **columns) -> pd.DataFrame:
    """A tidy table with one row per seed and round; `per_seed` holds one list of values per seed."""
    parts = [runs([own[i] for own in per_seed], **({"round": at} | columns)) for i, at in enumerate(positions)]
    return pd.concat(parts, ignore_index=True)


def grid(per_seed, gammas, **columns) -> pd.DataFrame:
    """As `curves`, with a setting gamma in place of the rounds."""
    parts = [
        runs([own[i] for own in per_seed], **({"setting": f"gamma={gamma}"} | columns))
        for i, gamma in enumerate(gammas)
    ]
    return pd.concat(parts, ignore_index=True)


def spec_of(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """The experiment's settings at paper scale, with changes by dotted key."""
    return changed(experiment({"algorithms": ALGORITHMS}, "paper").spec, changes or {})


def manifests(tables: dict[str, pd.DataFrame], config: dict[str, Any], seconds: float = 60.0) -> list[dict[str, Any]]:
    """One per experiment and algorithm, of all its seeds; `seconds` per seed."""
    found = []
    for name, table in tables.items():
        for algorithm, rows in table.groupby("algorithm"):
            seeds = [int(seed) for seed in rows["seed"].unique()]
            about = {"experiment": f"toy/{name}", "algorithm": algorithm, "seeds": seeds, "settings": {}}
            own = config | {"algorithms": {algorithm: config["algorithms"].get(algorithm, {})}}
            found.append(about | {"seconds": seconds * len(seeds), "config": own})
    return found


def judge_all(
    claims: dict[str, dict[str, Any]],
    tables: dict[str, pd.DataFrame],
    *,
    published: pd.DataFrame | None = None,
    readings: dict[str, dict[str, Any]] | None = None,
    reduced: dict[str, Any] | None = None,
    transforms: dict[str, str] | None = None,
    scale: str = "demo",
    **more: Any,
) -> Judged:
    """The claims (id → spec), judged. reduced: changes of the runs' settings; readings: claim → name → changes."""
    made = {}
    for id, spec in claims.items():
        whole = {**COMMON, "id": id, "family": id, **spec}
        others = {name: {**whole, **changes} for name, changes in (readings or {}).get(id, {}).items()}
        made[id] = Claim(id, whole, others, Located({}, "", ()))
    names = {name for name in [*tables, "line"]}
    paper = {f"toy/{name}": experiment({"algorithms": ALGORITHMS}, "paper", name) for name in names}
    about = manifests(tables, spec_of(reduced))
    file = Claims("toy", made, transforms or {})
    return ledger.judge(file, tables, published, scale, manifests=about, paper=paper, **more)


def verdict_of(claim: dict[str, Any], *tables: pd.DataFrame, **more: Any) -> pd.Series:
    """The only row of the ledger of one claim over one table, with checks that hold for every claim."""
    data = {"data": more.pop("data")} if "data" in more else {}
    made = {"line": pd.concat(tables, ignore_index=True).assign(**data)} if tables else {}
    result = judge_all({"c": claim}, made, **more).ledger
    assert list(result.columns) == ledger.COLUMNS
    assert len(result) == 1
    row = result.iloc[0]
    assert row["verdict"] in ledger.VERDICTS
    assert row["reason"]
    assert row["claim"] == "toy/c"
    return row


def value(**keys):
    return {"kind": "value", "ours": OURS, "published": 160, "tolerance": {"absolute": 8}} | keys


def ordering(**keys):
    return {"kind": "ordering", "better": OURS, "worse": OTHER, "by": "lower", "margin": {"absolute": 0}} | keys


def threshold(**keys):
    return {"kind": "threshold", "ours": OURS} | keys


def trend(along="round", direction="falling", margin=0.0, **keys):
    ours = {**OURS, "along": along, **keys}
    return {"kind": "trend", "ours": ours, "direction": direction, "margin": {"absolute": margin}}


def consistency(expression="a + b", stated=3, tolerance=0, **numbers):
    tolerance = {"absolute": tolerance}
    common = {"kind": "consistency", "expression": expression, "stated": stated, "tolerance": tolerance}
    return common | {"numbers": numbers or {"a": 1, "b": 2}}


def normal(mean: float, sd: float, n: int) -> list[float]:
    """n numbers with exactly this mean and standard deviation."""
    x = np.random.default_rng(n).normal(size=n)
    return list(mean + sd * (x - x.mean()) / x.std(ddof=1))
