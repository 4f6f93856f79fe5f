"""The tables and figures of stochastic approximation, from tables made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS, Tables
from fedrepro.studies.sa import artefacts
from fedrepro.studies.sa.measures import measure


def images(rounds: int = 11) -> Tables:
    """Two seeds with linearly rising accuracy, slightly higher for the second; the loss falls."""
    t = np.arange(rounds)
    settings = [*artefacts.METHODS, *(s for s in artefacts.ARMS if s not in artefacts.METHODS)]
    found = []
    for number, setting in enumerate(settings):
        for seed in (0, 1):
            about = {"setting": setting, "seed": seed, "split": "test", "client": -1, "step": 0}
            for metric, values in (("accuracy", 0.1 * number + 0.02 * t + 0.01 * seed), ("loss", 2.0 - 0.1 * t)):
                found += [{**about, "metric": metric, "round": r, "value": v} for r, v in enumerate(values)]
    held = {"setting": "sa", "seed": 0, "split": "", "metric": "class_samples", "round": 0, "value": 1}
    found += [{**held, "client": k, "step": c} for k in range(3) for c in range(2 + k % 2)]
    table = pd.DataFrame(found).assign(experiment="sa/x", algorithm="compared", group="", data="real", diverged=False)
    table = pd.concat([table[TABLE_COLUMNS], measure(table[TABLE_COLUMNS])], ignore_index=True)
    names = [*(f"{data}_{split}" for data in artefacts.DATA for split in artefacts.SPLITS), "fmnist_dir_tuned"]
    return Tables({name: table.assign(data="standin") if "stl" in name else table for name in names})


def tracked(rounds: int = 60) -> Tables:
    """Iterates on the solution of ẇ = (1, 2) − w from 0, with steps of 0.1 of interpolated time."""
    time = np.arange(rounds) * 0.1
    w = np.outer(1 - np.exp(-time), [1.0, 2.0])
    found, columns = [], ("metric", "round", "client", "step", "value")
    for power in artefacts.POWERS:
        rows = [("ode_time", r, -1, 0, v) for r, v in enumerate(time)]
        rows += [("iterate", r, 0, j, w[r, j]) for r in range(rounds) for j in range(2)]
        rows += [("ode_curvature", 0, i, j, float(i == j)) for i in range(2) for j in range(2)]
        rows += [("ode_linear", 0, 0, j, float(1 + j)) for j in range(2)]
        setting = {"setting": f"power={power}", "grid.power": power}
        found += [{**dict(zip(columns, row, strict=True)), **setting} for row in rows]
    table = pd.DataFrame(found).assign(
        experiment="sa/x", algorithm="sa_tracked", group="", data="synthetic", diverged=False, seed=0, split=""
    )
    table = pd.concat([table, measure(table)], ignore_index=True)
    return Tables({f"ode_{steps}": table for steps in artefacts.LOCAL_STEPS})


def test_both_figures_have_a_panel_for_each_data_set_and_split_and_one_legend():
    tables = images()
    for draw, metric in ((artefacts.fig2, "test accuracy"), (artefacts.fig3, "test loss")):
        figure, drawn = draw(tables)
        assert len(figure.axes) == 12
        assert len(figure.legends) == 1
        assert metric in figure.axes[0].get_ylabel()
        assert len(drawn) == 12 * 4 * 11
        assert figure.axes[3].get_title() == "STL-10 (stand-in)"


def test_where_the_curves_end():
    table = artefacts.ends(images())
    assert len(table) == 12 * 4
    line = table.iloc[1]  # FedProx: 0.1 + 0.2, and 0.01 more in the second seed
    assert line["method"] == "FedProx"
    assert line["final accuracy"] == "0.305 ± 0.007"
    assert line["final loss"] == "1.000 ± 0.000"
    assert line["best round"] == "10 ± 0"
    assert line["oscillation of loss"] == "0.0000"
    assert artefacts.ends(images(rounds=4)).iloc[0]["oscillation of loss"] == "too few rounds"


def test_the_partitions_are_drawn_for_all():
    figure, drawn = artefacts.partitions(images())
    assert len(figure.axes) == 12
    assert drawn.groupby(["data", "split"])["samples"].sum().eq(2 + 3 + 2).all()


def test_every_arm_is_there():
    tables = images()
    _, drawn = artefacts.arms(tables)
    assert set(drawn["arm"]) == {label for label, *_ in artefacts.ARMS.values()}
    table = artefacts.arms_table(tables).set_index("arm")
    assert table.loc["FedAvg, 0.1", "late accuracy"] == "0.1950 ± 0.0071"  # rounds 9 and 10 of two seeds


def test_the_iterates_and_the_ode():
    tables = tracked()
    figure, drawn = artefacts.ode(tables)
    assert len(figure.axes) == 6
    path = drawn[drawn["quantity"] == "path"]
    assert np.abs(path["iterate 1"] - path["ode 1"]).max() < 1e-6
    table = artefacts.ode_table(tables)
    assert table.groupby("δ")["A2"].first().to_dict() == {0.6: "no", 0.76: "yes", 0.9: "yes", 1.0: "yes"}
    assert table["sup distance, last"].max() == pytest.approx(0, abs=1e-6)
    assert table["distance to w*, first"].iloc[0] == pytest.approx(np.sqrt(5) * np.exp(-0.1), abs=1e-4)


def test_a_run_too_short_for_a_window_says_so():
    tables = tracked(rounds=8)
    artefacts.ode(tables)
    assert set(artefacts.ode_table(tables)["sup distance, last"]) == {"no window"}
