"""Stochastic approximation (paper 000): Figs. 2 and 3, ends, partitions; added: the arms, the iterates and the ODE."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, Drawn, band, figure
from fedrepro.studies.sa.measures import trajectory

DATA = {"fmnist": "F-MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10"}
SPLITS = {"iid": "IID", "dir": "DIR", "scdir": "SC-DIR"}
#: setting → (name, colour)
METHODS = {
    "fedavg": ("FedAvg", COLOURS[1]),
    "fedprox": ("FedProx", COLOURS[4]),
    "sa": ("SA, 0.1/n", COLOURS[0]),
    "sa_round": ("SA, 0.1/(⌊n/N⌋ + 1)", COLOURS[2]),
}
#: setting → (name, colour, line)
ARMS = {
    "fedavg": ("FedAvg, 0.1", COLOURS[1], "-"),
    "smaller_step": ("FedAvg, 0.03", COLOURS[4], "-"),
    "smallest_step": ("FedAvg, 0.01", COLOURS[3], "-"),
    "constant": ("constant, same sum as 0.1/round", COLOURS[6], "--"),
    "cosine": ("cosine, same sum as 0.1/round", COLOURS[5], "--"),
    "sa_round": ("SA, 0.1/(⌊n/N⌋ + 1)", COLOURS[2], "-"),
    "sa": ("SA, 0.1/n", COLOURS[0], "-"),
}
LOCAL_STEPS = (2, 5, 20)  # N
POWERS = {0.6: "δ = 0.6 (outside A2)", 0.76: "δ = 0.76", 0.9: "δ = 0.9", 1.0: "δ = 1"}


def fig2(tables: Tables) -> Drawn:
    """Test accuracy over rounds: one column per data set, one row per split."""
    return _grid(tables, "accuracy", "test accuracy")


def fig3(tables: Tables) -> Drawn:
    """Test loss over rounds: one column per data set, one row per split."""
    return _grid(tables, "loss", "test loss")


def _grid(tables: Tables, metric: str, label: str) -> Drawn:
    fig, axes = figure(3, 4, width=11.0, height=2.1, sharex="col")
    drawn = []
    for ax, table, title, name in _panels(axes, tables, "round", label):
        title += "" if set(table["data"]) == {"real"} else " (stand-in)"
        for setting, (method, colour) in METHODS.items():
            curve = rows(table, metric, split="test", client=-1, setting=setting)
            summary = band(ax, curve, "round", label=method, colour=colour)
            drawn.append(summary.assign(data=title, split=name, method=method))
        if ax in axes[0]:
            ax.set_title(title)
        if metric == "loss":  # a run that diverges must not hide the others
            ends = pd.concat(drawn[-len(METHODS) :])
            ax.set_ylim(0, min(ends["high"].max(), 2.5 * ends.loc[ends["round"] == 0, "median"].max()) * 1.05)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def _panels(axes: np.ndarray, tables: Tables, x: str, y: str) -> Iterator[tuple[Axes, pd.DataFrame, str, str]]:
    """(axes, table, data set, split): one column per data set, one row per split, labelled at the edges."""
    for line, (split, name) in zip(axes, SPLITS.items(), strict=True):
        line[0].set_ylabel(f"{name}\n{y}")
        for ax, (data, title) in zip(line, DATA.items(), strict=True):
            yield ax, tables[f"{data}_{split}"], title, name
    for ax in axes[-1]:
        ax.set_xlabel(x)


def ends(tables: Tables) -> pd.DataFrame:
    """Final accuracy and loss, the best round, and the spread over the last fifth of the rounds (20 of 100)."""
    lines = []
    for (data, title), (split, name), (setting, (method, _)) in product(DATA.items(), SPLITS.items(), METHODS.items()):
        table = tables[f"{data}_{split}"]
        line: dict[str, object] = {"data": title, "split": name, "method": method}
        for metric in ("accuracy", "loss"):
            values = final(table, metric, split="test", client=-1, setting=setting)["value"]
            line[f"final {metric}"] = _with_deviation(values, 3)
        line["best round"] = _with_deviation(rows(table, "best_round", setting=setting)["value"], 0)
        for metric in ("accuracy", "loss"):
            spread = rows(table, f"spread_{metric}", setting=setting)["value"]
            line[f"spread of {metric}"] = f"{spread.mean():.4f}"
            rough = rows(table, f"oscillation_{metric}", setting=setting)["value"]
            line[f"oscillation of {metric}"] = f"{rough.mean():.4f}" if len(rough) else "too few rounds"
        lines.append(line)
    return pd.DataFrame(lines)


def _with_deviation(values: pd.Series, digits: int, missing: str = "diverged") -> str:
    if values.empty:
        return missing
    return f"{values.mean():.{digits}f}" + (f" ± {values.std():.{digits}f}" if len(values) > 1 else "")


def partitions(tables: Tables) -> Drawn:
    """Samples of each class at each client, as shares of the client that holds most of any class; first seed."""
    fig, axes = figure(3, 4, width=11.0, height=2.0)
    drawn = []
    for ax, table, title, name in _panels(axes, tables, "client", "class"):
        mine = rows(table, "class_samples", setting="sa", seed=table["seed"].min())
        counts = mine.pivot_table(index="step", columns="client", values="value").to_numpy()
        shown = np.ma.masked_equal(counts, 0)
        ax.imshow(shown, cmap="viridis_r", vmin=0, aspect="auto", origin="lower", interpolation="none")
        ax.grid(visible=False)
        ax.set_xticks(range(counts.shape[1]))
        if ax in axes[0]:
            ax.set_title(title)
        drawn.append(mine[["client", "step", "value"]].assign(data=title, split=name))
    return fig, pd.concat(drawn, ignore_index=True).rename(columns={"step": "class", "value": "samples"})


def arms(tables: Tables) -> Drawn:
    """F-MNIST, DIR: stochastic approximation, constant steps, and schedules with the same sum of steps."""
    fig, axes = figure(1, 2, width=9.0, height=3.6)
    drawn = []
    for ax, metric in zip(axes[0], ("accuracy", "loss"), strict=True):
        for setting, (label, colour, style) in ARMS.items():
            curve = rows(tables["fmnist_dir_tuned"], metric, split="test", client=-1, setting=setting)
            summary = curve.groupby("round")["value"].agg(median="median", low="min", high="max").reset_index()
            ax.plot(summary["round"], summary["median"], label=label, color=colour, linestyle=style)
            drawn.append(summary.assign(metric=metric, arm=label))
        ax.set(xlabel="round", ylabel=f"test {metric}")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def arms_table(tables: Tables) -> pd.DataFrame:
    """The arms over the last fifth of the rounds: mean over seeds ± standard deviation."""
    lines = []
    for setting, (label, *_) in ARMS.items():
        line: dict[str, object] = {"arm": label}
        for metric in ("late_accuracy", "late_loss", "oscillation_accuracy", "oscillation_loss"):
            values = rows(tables["fmnist_dir_tuned"], metric, setting=setting)["value"]
            line[metric.replace("_", " ")] = _with_deviation(values, 4, "too few rounds")
        lines.append(line)
    return pd.DataFrame(lines)


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
        ax.set(xscale="log", yscale="log", xlabel="round in which the window begins")
    axes[0, 0].set_ylabel("averaged iterates")
    axes[1, 0].set_ylabel("largest distance to the ODE\non [T_n, T_n + 1]")
    fig.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def _path(ax: Axes, table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """w̄ over interpolated time (δ = 0.9, first seed) and the solution of (37) from the first round on."""
    path = trajectory(table[(table["grid.power"] == 0.9) & (table["seed"] == table["seed"].min())])
    time, solved = path.time, path.solution(1, path.time[1:])
    for j, name in enumerate(("slope", "intercept")):
        ax.plot(time, path.iterates[:, j], color=COLOURS[j + 4], linewidth=1.2, label=f"{name} of w̄")
        ax.plot(time[1:], solved[:, j], color="black", linestyle=":", label="ODE" if j else None)
    ax.set(title=f"N = {steps}", xlabel="interpolated time T_n (δ = 0.9)")
    ax.legend(loc="center right")
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
        line["exponent of n"] = _with_deviation(rows(mine, "distance_exponent")["value"], 2, "too few windows")
        lines.append(line)
    return pd.DataFrame(lines)
