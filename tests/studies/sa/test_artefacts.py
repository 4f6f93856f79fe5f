"""The tables and figures of stochastic approximation, from tables made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.experiment import load_experiments
from fedrepro.core.federation import Batches
from fedrepro.core.streams import seeds_of
from fedrepro.evidence.tables import TABLE_COLUMNS, Tables
from fedrepro.files import ROOT
from fedrepro.studies.sa import artefacts, artefacts_added
from fedrepro.studies.sa.algorithms.sa import SA
from fedrepro.studies.sa.measures import measure
from fedrepro.workflow import costs


def curves(runs: list[tuple[str, str]], rounds: int) -> pd.DataFrame:
    """Two seeds of (algorithm, setting) with linearly rising accuracy, slightly higher for the second, from 0 on and by
    0.1 more from run to run; the test loss falls, the validation loss is the run's number."""
    t, found = np.arange(rounds), []
    for number, (algorithm, setting) in enumerate(runs):
        for seed in (0, 1):
            about = {"algorithm": algorithm, "setting": setting, "seed": seed, "client": -1, "step": 0}
            values = {"accuracy": 0.1 * number + 0.02 * t + 0.01 * seed, "loss": 2.0 - 0.1 * t}
            for metric, curve in values.items():
                row = {**about, "metric": metric, "split": "test"}
                found += [{**row, "round": r, "value": v} for r, v in enumerate(curve)]
            row = {**about, "metric": "loss", "split": "validation", "value": float(number)}
            found += [{**row, "round": r} for r in range(rounds)]
    return pd.DataFrame(found).assign(experiment="sa/x", group="", data="real", diverged=False)[TABLE_COLUMNS]


def with_measures(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, measure(table)], ignore_index=True)


def images(rounds: int = 11) -> Tables:
    table = with_measures(curves([("compared", method) for method in artefacts.METHODS], rounds))
    held = table.iloc[[0]].assign(setting="sa", split="", metric="class_samples", value=1.0)
    held = pd.concat([held.assign(client=k, step=c) for k in range(3) for c in range(2 + k % 2)])
    table = pd.concat([table, held], ignore_index=True)
    names = [f"{data}_{split}" for data in artefacts.DATA for split in artefacts.SPLITS]
    names += artefacts_added.SKEWS
    return Tables({name: table.assign(data="standin") if "stl" in name else table for name in names})


def tuned() -> Tables:
    """Of each arm, the first setting has the lowest validation loss."""
    runs = [(arm, f"lr={lr}") for arm in artefacts_added.ARMS for lr in (0.3, 0.1)]
    runs += [("matched", shape) for shape in ("constant", "cosine")]
    return Tables({"fmnist_dir_tuned": with_measures(curves(runs, 11))})


def tracked(rounds: int = 60) -> Tables:
    """Iterates on the solution of ẇ = (1, 2) − w from 0, with steps of 0.1 of interpolated time."""
    time = np.arange(rounds) * 0.1
    w = np.outer(1 - np.exp(-time), [1.0, 2.0])
    found, columns = [], ("metric", "round", "client", "step", "value")
    for power in artefacts_added.POWERS:
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
    return Tables({f"ode_{steps}": table for steps in artefacts_added.LOCAL_STEPS})


def test_the_steps_of_fig1_are_those_of_the_methods():
    _, drawn = artefacts.fig1(Tables())
    assert drawn["epoch"].tolist() == list(range(1, 21))
    assert drawn.loc[drawn["averaged"], "epoch"].tolist() == [5, 10, 15, 20]
    methods = (FedAvg(lr=0.1), SA(lr=0.1, count="rounds"), SA(lr=0.1), SA(lr=0.1, count="steps"))
    for name, method in zip(artefacts.SCHEDULES, methods, strict=True):
        for n in (1, 5, 6, 20):
            batches = Batches((n - 1) // 5, 5 * artefacts.BATCHES, artefacts.BATCHES)
            first = (n - 1) % 5 * artefacts.BATCHES
            steps = [method.step(batches, t) for t in range(first, first + artefacts.BATCHES)]
            assert drawn[name][n - 1] == pytest.approx(np.mean(steps), rel=1e-12), (name, n)


def test_both_figures_have_a_panel_for_each_data_set_and_split_and_one_legend():
    tables = images()
    for draw, metric, chance in ((artefacts.fig2, "accuracy", 0.01), (artefacts.fig3, "loss", np.log(100))):
        figure, drawn = draw(tables)
        assert len(figure.axes) == 12
        (legend,) = figure.legends
        names = ["chance", *(name for name, _ in artefacts.METHODS.values())]
        assert [text.get_text() for text in legend.get_texts()] == names
        assert f"test {metric}" in figure.axes[0].get_ylabel()
        assert len(drawn) == 12 * 4 * 11
        assert figure.axes[3].get_title() == "STL-10 (stand-in)"
        assert figure.axes[2].get_lines()[0].get_ydata()[0] == pytest.approx(chance)
        assert {ax.get_xlim() for ax in figure.axes} == {(0.0, 100.0)}
        assert len({ax.get_ylim() for ax in figure.axes[1::4]}) == 1


@pytest.mark.parametrize(
    ("rounds", "accuracy", "words"),
    [
        (9, 0.9, "9 rounds here; the published settings need about 95 GPU-hours"),
        (30, 0.019, "at chance after 30 rounds; the published settings need about 95 GPU-hours"),
        (30, 0.021, "2 seeds"),
    ],
)
def test_a_panel_that_nothing_can_be_read_from_is_empty_and_says_what_it_needs(rounds, accuracy, words):
    tables = images(rounds + 1)
    table = tables["cifar100_dir"]
    known = (table["metric"] == "accuracy") & (table["split"] == "test")
    tables["cifar100_dir"] = table.assign(value=table["value"].mask(known, accuracy))
    figure, drawn = artefacts.fig2(tables)
    panel = figure.axes[6]
    assert " ".join(" ".join(text.get_text() for text in panel.texts).split()) == words
    empty = "published" in words
    assert len(panel.get_lines()) == (1 if empty else 5)
    if empty:
        assert drawn.loc[(drawn["data"] == "CIFAR-100") & (drawn["split"] == "DIR"), "left empty"].tolist() == [words]


def test_the_hours_of_an_empty_panel_are_those_of_the_plan():
    experiments = load_experiments(ROOT / "config", "paper", "sa")
    for data, hours in artefacts.GPU_HOURS.items():
        for split in artefacts.SPLITS:
            e = experiments[f"sa/{data}_{split}"]
            samples = costs.client_samples(e)
            flops = costs.step_flops(e, samples)
            steps = [costs.gradient_steps(e, algorithm, len(seeds_of(shard))) for algorithm, shard in e.jobs()]
            seconds = sum(costs.gpu_seconds(e, samples, flops * n) for n in steps)
            assert f"{hours:g}" == f"{seconds / 3600:.2g}", e.id


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


def test_every_arm_is_there_at_its_chosen_factor():
    _, drawn = artefacts_added.arms(tuned())
    names = [f"{name}, 0.3 tuned" for name, *_ in artefacts_added.ARMS.values()]
    names += [name for name, *_ in artefacts_added.UNTUNED.values()]
    assert drawn["arm"].drop_duplicates().tolist() == names
    table = artefacts_added.arms_table(tuned()).set_index("arm")
    # the first run: rounds 9 and 10 of two seeds, 0.19 and 0.2
    assert table.loc["FedAvg, constant, 0.3 tuned", "late accuracy"] == "0.1950 ± 0.0071"
    assert table.loc["SA, 0.1/n", "validation loss"] == "11.0000 ± 0.0000"


def test_the_ends_over_alpha():
    figure, drawn = artefacts_added.skew(images())
    assert len(figure.axes) == 3
    line = drawn[(drawn["metric"] == "late_accuracy") & (drawn["method"] == "FedProx") & (drawn["case"] == "α = 1")]
    assert line[["mean", "low", "high", "seeds"]].to_numpy().ravel() == pytest.approx([0.295, 0.29, 0.3, 2])


def test_the_iterates_and_the_ode():
    tables = tracked()
    figure, drawn = artefacts_added.ode(tables)
    assert len(figure.axes) == 6
    path = drawn[drawn["quantity"] == "path"]
    assert np.abs(path["iterate 1"] - path["ode 1"]).max() < 1e-6
    table = artefacts_added.ode_table(tables)
    assert table.groupby("δ")["A2"].first().to_dict() == {0.6: "no", 0.76: "yes", 0.9: "yes", 1.0: "yes"}
    assert table["sup distance, last"].max() == pytest.approx(0, abs=1e-6)
    assert table["distance to w*, first"].iloc[0] == pytest.approx(np.sqrt(5) * np.exp(-0.1), abs=1e-4)


def test_a_run_too_short_for_a_window_says_so():
    tables = tracked(rounds=8)
    artefacts_added.ode(tables)
    assert set(artefacts_added.ode_table(tables)["sup distance, last"]) == {"no window"}
