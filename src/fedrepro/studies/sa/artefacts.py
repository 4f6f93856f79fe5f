"""Stochastic approximation (paper 000): Figs. 1 to 3, the ends of their curves, the partitions."""

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, Drawn, band, figure, leave_empty, say_seeds

DATA = {"fmnist": "F-MNIST", "cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10"}
SPLITS = {"iid": "IID", "dir": "DIR", "scdir": "SC-DIR"}
#: setting → (name, colour)
METHODS = {
    "fedavg": ("FedAvg", COLOURS[1]),
    "fedprox": ("FedProx", COLOURS[4]),
    "sa": ("SA, 0.1/n", COLOURS[0]),
    "sa_round": ("SA, 0.1/(⌊n/N⌋ + 1)", COLOURS[2]),
}
#: schedule → line
SCHEDULES: dict[str, dict[str, Any]] = {
    "FedAvg, FedProx: 0.1": {"color": COLOURS[1], "linewidth": 5},
    "SA: 0.1/(⌊n/N⌋ + 1), n from 0": {"color": COLOURS[2], "linewidth": 3},
    "SA: 0.1/n": {"color": COLOURS[0], "linewidth": 1.5},
    "0.1/n, if n counted mini-batches": {"color": COLOURS[7], "linewidth": 1.5, "linestyle": "--"},
}
EPOCHS = 5  # §V-D, N
BATCHES = 375  # of an epoch: a client with 6,000 images of F-MNIST, m = 16
CLASSES = {"fmnist": 10, "cifar10": 10, "cifar100": 100, "stl10": 10}
ROUNDS = 100  # §V-D: the x-axis of Figs. 2 and 3
FEWEST_ROUNDS = 10  # fewer show no curve on that axis
#: GPU-hours of a panel's four methods and three seeds at the published settings, by `make plan SCALE=paper`
GPU_HOURS = {"fmnist": 0.66, "cifar10": 95, "cifar100": 95, "stl10": 87}


def fig1(tables: Tables) -> Drawn:
    """What is counted, when: epochs at the clients, averages at the server, and the step of each epoch."""
    rounds, clients = 4, ("client L", "client 2", "client 1")
    numbers = epoch_steps(rounds)
    fig, ((top,), (bottom,)) = figure(2, width=9.0, height=2.2, sharex=True, height_ratios=[1, 1.7])
    for client, n in product(range(len(clients)), numbers["epoch"]):
        top.barh(client, 0.9, left=n - 0.95, height=0.7, color=COLOURS[5])
        top.text(n - 0.5, client, str(n), ha="center", va="center", fontsize=7)
    for end in numbers.loc[numbers["averaged"], "epoch"]:
        for ax in (top, bottom):
            ax.axvline(end, color="black", linewidth=1.2)
        top.text(end, len(clients) - 0.45, "server averages ", ha="right", va="bottom", fontsize=8)
    top.set_yticks(range(len(clients)), clients)
    top.set(ylim=(-0.5, len(clients) + 0.2))
    top.grid(visible=False)
    for name, style in SCHEDULES.items():
        bottom.stairs(numbers[name], np.arange(len(numbers) + 1), baseline=None, label=name, **style)
    bottom.set(yscale="log", xlim=(0, len(numbers)), xlabel="epochs of a client (n)", ylabel="step")
    bottom.xaxis.set_major_locator(MultipleLocator(EPOCHS))
    bottom.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig, numbers


def epoch_steps(rounds: int) -> pd.DataFrame:
    """The step of each epoch under each schedule; if n counted mini-batches, the mean over the epoch."""
    n = np.arange(1, rounds * EPOCHS + 1)
    by_batch = [np.mean(0.1 / (BATCHES * (k - 1) + np.arange(1, BATCHES + 1))) for k in n]
    steps = dict(zip(SCHEDULES, (np.full(len(n), 0.1), 0.1 / ((n - 1) // EPOCHS + 1), 0.1 / n, by_batch), strict=True))
    return pd.DataFrame({"epoch": n, "averaged": n % EPOCHS == 0, **steps})


def fig2(tables: Tables) -> Drawn:
    """Test accuracy over rounds: one column per data set, one row per split."""
    return _grid(tables, "accuracy", "test accuracy")


def fig3(tables: Tables) -> Drawn:
    """Test loss over rounds: one column per data set, one row per split."""
    return _grid(tables, "loss", "test loss")


def _grid(tables: Tables, metric: str, label: str) -> Drawn:
    fig, axes = figure(3, 4, width=11.0, height=2.1, sharex=True, sharey="col")
    drawn = []
    chances = {data: 1 / c if metric == "accuracy" else math.log(c) for data, c in CLASSES.items()}
    highest = {data: 1.5 * chance if metric == "loss" else 0.0 for data, chance in chances.items()}
    for ax, table, data, split in _panels(axes, tables, "round", label):
        title = DATA[data] + ("" if set(table["data"]) == {"real"} else " (stand-in)")
        if ax in axes[0]:
            ax.set_title(title)
        ax.axhline(chances[data], label="chance", color="black", linestyle=":", linewidth=1.2)
        if reason := _unreadable(table, data):
            leave_empty(ax, reason)
            drawn.append(pd.DataFrame([{"data": title, "split": split, "left empty": " ".join(reason.split())}]))
            continue
        for setting, (method, colour) in METHODS.items():
            curve = rows(table, metric, split="test", client=-1, setting=setting)
            summary = band(ax, curve, "round", label=method, colour=colour)
            drawn.append(summary.assign(data=title, split=split, method=method))
            highest[data] = max(highest[data], summary["high"].max())
    for ax, (data, top) in zip(axes[0], highest.items(), strict=True):
        # a run that diverges must not hide the others
        most = 1.0 if metric == "accuracy" else 2.5 * math.log(CLASSES[data])
        ax.set(xlim=(0, ROUNDS), ylim=(0, min(1.05 * top, most) or 1.0))
    fullest = max((ax.get_legend_handles_labels() for ax in axes.flat), key=lambda both: len(both[0]))
    fig.legend(*fullest, loc="outside lower center", ncols=5)
    return fig, pd.concat(drawn, ignore_index=True)


def _unreadable(table: pd.DataFrame, data: str) -> str:
    """Why a panel is left empty: too few rounds for a curve, or no method that has left chance. Else nothing."""
    curves = rows(table, "accuracy", split="test", client=-1)
    last = int(curves["round"].max())
    ends = final(curves, "accuracy").groupby("setting")["value"].median()
    if last >= FEWEST_ROUNDS and ends.max() >= 2 / CLASSES[data]:
        return ""
    seen = f"{last} round{'s' * (last != 1)} here" if last < FEWEST_ROUNDS else f"at chance after {last} rounds"
    return f"{seen};\nthe published settings\nneed about {GPU_HOURS[data]:g} GPU-hours"


def _panels(axes: np.ndarray, tables: Tables, x: str, y: str) -> Iterator[tuple[Axes, pd.DataFrame, str, str]]:
    """(axes, table, data set, split): one column per data set, one row per split, labelled at the edges."""
    for line, (split, name) in zip(axes, SPLITS.items(), strict=True):
        line[0].set_ylabel(f"{name}\n{y}")
        for ax, data in zip(line, DATA, strict=True):
            yield ax, tables[f"{data}_{split}"], data, name
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
            line[f"final {metric}"] = with_deviation(values, 3)
        line["best round"] = with_deviation(rows(table, "best_round", setting=setting)["value"], 0)
        for metric in ("accuracy", "loss"):
            spread = rows(table, f"spread_{metric}", setting=setting)["value"]
            line[f"spread of {metric}"] = f"{spread.mean():.4f}"
            rough = rows(table, f"oscillation_{metric}", setting=setting)["value"]
            line[f"oscillation of {metric}"] = f"{rough.mean():.4f}" if len(rough) else "too few rounds"
        lines.append(line)
    return pd.DataFrame(lines)


def with_deviation(values: pd.Series, digits: int, missing: str = "diverged") -> str:
    if values.empty:
        return missing
    return f"{values.mean():.{digits}f}" + (f" ± {values.std():.{digits}f}" if len(values) > 1 else "")


def partitions(tables: Tables) -> Drawn:
    """Samples of each class at each client, as shares of the client that holds most of any class; first seed."""
    fig, axes = figure(3, 4, width=11.0, height=2.0)
    drawn = []
    for ax, table, data, name in _panels(axes, tables, "client", "class"):
        mine = rows(table, "class_samples", setting="sa", seed=table["seed"].min())
        counts = mine.pivot_table(index="step", columns="client", values="value").to_numpy()
        shown = np.ma.masked_equal(counts, 0)
        ax.imshow(shown, cmap="viridis_r", vmin=0, aspect="auto", origin="lower", interpolation="none")
        ax.grid(visible=False)
        ax.set_xticks(range(counts.shape[1]))
        if ax in axes[0]:
            ax.set_title(DATA[data])
        say_seeds(ax, mine)
        drawn.append(mine[["client", "step", "value"]].assign(data=DATA[data], split=name))
    return fig, pd.concat(drawn, ignore_index=True).rename(columns={"step": "class", "value": "samples"})
