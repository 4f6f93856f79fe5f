"""Stochastic approximation (paper 000), added: tuned arms, other α, partial participation, iterates and the ODE."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedrepro.evidence.tables import Tables, rows
from fedrepro.report.plotting import COLOURS, Drawn, band, figure, leave_empty, log_axis, say_seeds
from fedrepro.studies.sa.artefacts import FEWEST_ROUNDS, METHODS, with_deviation
from fedrepro.studies.sa.measures import trajectory

#: algorithm → (name, colour, line), at its chosen factor
ARMS = {
    "constant": ("FedAvg, constant", COLOURS[1], "-"),
    "step": ("FedAvg, stepwise", COLOURS[4], "-"),
    "cosine": ("FedAvg, cosine", COLOURS[3], "-"),
    "root": ("FedAvg, 1/√n", COLOURS[6], "-"),
    "sa_round": ("SA, 1/(⌊n/N⌋ + 1)", COLOURS[2], "-"),
    "sa": ("SA, 1/n", COLOURS[0], "-"),
}
#: (algorithm, setting) → (name, colour, line), with the paper's 0.1
UNTUNED = {
    ("sa_round", "lr=0.1"): ("SA, 0.1/(⌊n/N⌋ + 1)", COLOURS[2], "--"),
    ("sa", "lr=0.1"): ("SA, 0.1/n", COLOURS[0], "--"),
    ("matched", "constant"): ("constant, same sum as 0.1/round", COLOURS[1], ":"),
    ("matched", "cosine"): ("cosine, same sum as 0.1/round", COLOURS[3], ":"),
}
#: experiment → tick label
SKEWS = {
    "fmnist_alpha_01": "α = 0.1",
    "fmnist_alpha_05": "α = 0.5",
    "fmnist_alpha_1": "α = 1",
    "fmnist_partial": "α = 0.5, half\nof the clients",
}
LOCAL_STEPS = (2, 5, 20)  # N
POWERS = {0.6: "δ = 0.6 (outside A2)", 0.76: "δ = 0.76", 0.9: "δ = 0.9", 1.0: "δ = 1"}


def arms(tables: Tables) -> Drawn:
    """F-MNIST, DIR: schedules at the factor that validation data choose, and those with the paper's 0.1."""
    table = tables["fmnist_dir_tuned"]
    fig, axes = figure(1, 2, width=9.0, height=3.6)
    drawn = []
    last = int(rows(table, "accuracy", split="test")["round"].max())
    for ax, metric in zip(axes[0], ("accuracy", "loss"), strict=True):
        if last < FEWEST_ROUNDS:
            leave_empty(ax, f"{last} rounds here; the comparison needs 20")
        for (algorithm, setting), (label, colour, style) in _shown(table).items():
            curve = rows(table, metric, split="test", client=-1, algorithm=algorithm, setting=setting)
            summary = curve.groupby("round")["value"].agg(median="median", low="min", high="max").reset_index()
            shown = summary if last >= FEWEST_ROUNDS else summary.iloc[:0]
            ax.plot(shown["round"], shown["median"], label=label, color=colour, linestyle=style)
            drawn.append(summary.assign(metric=metric, arm=label))
        ax.set(xlabel="round", ylabel=f"test {metric}")
        say_seeds(ax, table)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def _shown(table: pd.DataFrame) -> dict[tuple[str, str], tuple[str, str, str]]:
    """(algorithm, setting) → (name with the chosen factor, colour, line)."""
    chosen = rows(table, "chosen_late_loss").drop_duplicates("algorithm").set_index("algorithm")["setting"]
    tuned = {
        (arm, chosen[arm]): (f"{name}, {chosen[arm].removeprefix('lr=')} tuned", colour, line)
        for arm, (name, colour, line) in ARMS.items()
        if arm in chosen
    }
    return tuned | {arm: about for arm, about in UNTUNED.items() if arm not in tuned}


def arms_table(tables: Tables) -> pd.DataFrame:
    """The arms over the last fifth of the rounds: mean over seeds ± standard deviation."""
    table, lines = tables["fmnist_dir_tuned"], []
    for (algorithm, setting), (label, *_) in _shown(table).items():
        line: dict[str, object] = {"arm": label}
        for metric in ("validation_loss", "late_loss", "late_accuracy", "oscillation_loss", "oscillation_accuracy"):
            values = rows(table, metric, algorithm=algorithm, setting=setting)["value"]
            line[metric.replace("_", " ")] = with_deviation(values, 4, "too few rounds")
        lines.append(line)
    return pd.DataFrame(lines)


def skew(tables: Tables) -> Drawn:
    """The ends of the curves over α, and with half of the clients: mean over seeds and range."""
    about = {"late_accuracy": "late test accuracy", "late_loss": "late test loss"}
    about["oscillation_accuracy"] = "oscillation of the accuracy"
    fig, axes = figure(1, 3, width=11.0, height=3.2)
    drawn = []
    for ax, (metric, label) in zip(axes[0], about.items(), strict=True):
        for number, (setting, (method, colour)) in enumerate(METHODS.items()):
            found = [rows(tables[name], metric, setting=setting)["value"] for name in SKEWS]
            ends = pd.DataFrame([{"mean": v.mean(), "low": v.min(), "high": v.max(), "seeds": len(v)} for v in found])
            at = np.arange(len(SKEWS)) + 0.12 * (number - 1.5)
            reach = [ends["mean"] - ends["low"], ends["high"] - ends["mean"]]
            ax.errorbar(at, ends["mean"], yerr=reach, fmt="o", markersize=4, capsize=2, color=colour, label=method)
            drawn.append(ends.assign(metric=metric, method=method, case=[" ".join(s.split()) for s in SKEWS.values()]))
        if not ends["seeds"].any():
            leave_empty(ax, "too few rounds here;\nthe comparison needs 25")
            ax.set_yticks([])
        ax.set_xticks(range(len(SKEWS)), list(SKEWS.values()))
        ax.grid(axis="x", visible=False)
        ax.set_ylabel(label)
        for name in SKEWS:
            say_seeds(ax, rows(tables[name], "late_loss"))
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def ode(tables: Tables) -> Drawn:
    """Top: the iterates of one run and the ODE's solution; bottom: the largest distances on windows."""
    fig, axes = figure(2, 3, width=10.0, height=2.7)
    drawn = []
    for column, steps in enumerate(LOCAL_STEPS):
        table = tables[f"ode_{steps}"]
        drawn.append(_path(axes[0, column], table, steps))
        ax = axes[1, column]
        for (power, label), colour in zip(POWERS.items(), COLOURS, strict=False):
            mine = rows(table, "window_distance", **{"grid.power": power})
            summary = band(ax, mine, "round", label=label, colour=colour, marker=".", markersize=4)
            drawn.append(summary.assign(N=steps, delta=label, quantity="sup distance"))
        ax.set(xscale="log", xlabel="round in which the window begins")
        log_axis(ax, "y")
    axes[0, 0].set_ylabel("averaged iterates")
    axes[1, 0].set_ylabel("largest distance to the ODE\non [T_n, T_n + 1]")
    fig.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def _path(ax: Axes, table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """w̄ over interpolated time (δ = 0.9, first seed) and the solution of (37) from the first round on."""
    first = table[(table["grid.power"] == 0.9) & (table["seed"] == table["seed"].min())]
    path = trajectory(first)
    say_seeds(ax, first)
    time, solved = path.time, path.solution(1, path.time[1:])
    for j, name in enumerate(("slope", "intercept")):
        ax.plot(time, path.iterates[:, j], color=COLOURS[j + 4], linewidth=1.2, label=f"{name} of w̄")
        ax.plot(time[1:], solved[:, j], color="black", linestyle=":", label="ODE" if j else None)
    ax.set(title=f"N = {steps}", xlabel="interpolated time T_n (δ = 0.9)")
    ax.legend(loc="center right", bbox_to_anchor=(1.0, 0.67))
    points = np.column_stack([time[1:], path.iterates[1:], solved])
    columns = ["time", *(f"{what} {j}" for what in ("iterate", "ode") for j in range(len(path.b)))]
    return pd.DataFrame(points, columns=columns).assign(N=steps, delta="δ = 0.9", quantity="path")


def ode_table(tables: Tables) -> pd.DataFrame:
    """First and last window, the exponent at which the distance falls, distances to the equilibrium; over seeds."""
    lines = []
    for steps, power in product(LOCAL_STEPS, POWERS):
        table = tables[f"ode_{steps}"]
        mine = table[table["grid.power"] == power]
        line: dict[str, object] = {"N": steps, "δ": power, "A2": "yes" if 0.75 < power <= 1 else "no"}
        for name, metric in (("sup distance", "window_distance"), ("distance to w*", "equilibrium_distance")):
            at = rows(mine, metric).groupby("round")["value"].mean()
            ends = (round(at.iloc[0], 4), round(at.iloc[-1], 4)) if len(at) else ("no window", "no window")
            line |= {f"{name}, first": ends[0], f"{name}, last": ends[1]}
        line["exponent of n"] = with_deviation(rows(mine, "distance_exponent")["value"], 2, "too few windows")
        lines.append(line)
    return pd.DataFrame(lines)
