"""Omni-Fedge (paper 001): the table of sample sizes, Fig. 1, the weights ω over rounds, and rounds to an accuracy."""

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, Drawn, band, figure
from fedrepro.studies.omni.measures import ACCURACIES, square

SETTINGS = {"mnist_iid": "MNIST, i.i.d.", "mnist_noniid": "MNIST, non-i.i.d."}
SETTINGS |= {"fmnist_iid": "F-MNIST, i.i.d.", "fmnist_noniid": "F-MNIST, non-i.i.d."}
#: algorithm → (name, colour, line)
METHODS = {
    "omni_fedge": ("Omni-Fedge, as written", COLOURS[0], "-"),
    "omni_fedge_ones": ("ω = 1", COLOURS[5], "-"),
    "omni_fedge_authors": ("Omni-Fedge, authors' code", COLOURS[0], (0, (4, 2))),
    "fedsgd": ("FedSGD", COLOURS[1], "-"),
    "fedsgd_scaled": ("FedSGD, Omni-Fedge's step length", COLOURS[4], "-"),
    "fedsgd_authors": ("FedSGD, authors' code", COLOURS[1], (0, (4, 2))),
}
LOCAL = ("local training, at its end", COLOURS[2])


def table1(tables: Tables) -> pd.DataFrame:
    """Samples per node: printed, and those of the nodes of each split (mean over seeds; smallest to largest node)."""
    lines = []
    for name, title in SETTINGS.items():
        line: dict[str, object] = {"data": title}
        for split in ("train", "test"):
            asked = int(tables.printed[f"{name}_{split}"].value)
            sizes = rows(tables[name], "samples", split=split, algorithm="omni_fedge", round=0)["value"]
            line |= {f"{split}, printed": asked, f"{split}, ours (mean)": round(float(sizes.mean()), 1)}
            line[f"{split}, ours (range)"] = f"{sizes.min():.0f}–{sizes.max():.0f}"
        lines.append(line)
    return pd.DataFrame(lines)


def fig1(tables: Tables) -> Drawn:
    """Fig. 1: average accuracy of the nodes over rounds, training and test, four settings."""
    fig, axes = figure(2, 4, width=11.0, height=2.5, sharex=True, sharey="col")
    drawn = []
    for column, (name, title) in enumerate(SETTINGS.items()):
        for ax, split in zip(axes[:, column], ("train", "test"), strict=True):
            for algorithm, (label, colour, style) in METHODS.items():
                curve = rows(tables[name], "accuracy", split=split, client=-1, algorithm=algorithm)
                summary = band(ax, curve, "round", label=label, colour=colour, linestyle=style)
                drawn.append(summary.assign(data=title, split=split, method=label))
            local = final(tables[f"{name}_local"], "accuracy", split=split, client=-1)
            ax.axhline(local["value"].median(), color=LOCAL[1], linewidth=1.2, linestyle=":", label=LOCAL[0])
            ends = local["value"].agg(median="median", low="min", high="max").to_frame().T
            drawn.append(ends.assign(round=int(local["round"].max()), data=title, split=split, method=LOCAL[0]))
        axes[0, column].set_title(title)
        axes[1, column].set_xlabel("round")
    for ax, split in zip(axes[:, 0], ("train", "test"), strict=True):
        ax.set_ylabel(f"{split} accuracy")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def weights(tables: Tables) -> Drawn:
    """ω_ij (head of node i, data of node j) of the paper's mode over rounds, next to the overlap of the labels."""
    fig, axes = figure(len(SETTINGS), 4, width=8.4, height=1.9)
    drawn = []
    for line, (name, title) in zip(axes, SETTINGS.items(), strict=True):
        table = tables[name]
        table = table[(table["algorithm"] == "omni_fedge") & (table["seed"] == table["seed"].min())]
        omega = rows(table, "omega")
        part = omega["round"] / omega["round"].max()
        early = omega[part <= 0.1] if (part <= 0.1).any() else omega[omega["round"] == 1]
        panels = {"overlap of labels": rows(table, "overlap", round=0), "ω, first tenth": early}
        panels |= {"ω, middle": omega[(part > 0.4) & (part <= 0.6)], "ω, last fifth": omega[part > 0.8]}
        for ax, (label, mine) in zip(line, panels.items(), strict=True):
            matrix = square(mine)
            relative = matrix / matrix.mean(axis=1, keepdims=True)
            spread = max(0.05, np.abs(relative - 1).max())
            ax.imshow(relative, cmap="PuOr_r", vmin=1 - spread, vmax=1 + spread)
            for (i, j), value in np.ndenumerate(matrix):
                colour = "white" if abs(relative[i, j] - 1) > 0.6 * spread else "black"  # on dark and light cells
                shown = f"{value:.2g}" if 0.01 <= value < 1000 else f"{value:.0e}"  # room for five characters
                ax.text(j, i, shown, ha="center", va="center", fontsize=6.5, color=colour)
                drawn.append({"i": i, "j": j, "value": value, "data": title, "panel": label})
            ax.set(xticks=range(len(matrix)), yticks=range(len(matrix)))
            ax.grid(visible=False)
            ax.tick_params(labelsize=6.5, length=0)
        line[0].set_ylabel(f"{title}\nnode i")
    for above, below, label in zip(axes[0], axes[-1], panels, strict=True):
        above.set_title(label)
        below.set_xlabel("data of node j")
    return fig, pd.DataFrame(drawn)


def rounds_to_accuracy(tables: Tables) -> pd.DataFrame:
    """Rounds until the nodes' average test accuracy reaches 80, 85, 90 %: median over seeds, and how many reach it."""
    lines = []
    for name, title in SETTINGS.items():
        table = tables[name]
        last = int(rows(table, "accuracy", split="test")["round"].max())
        for algorithm, (label, *_) in METHODS.items():
            line: dict[str, object] = {"data": title, "method": label}
            for percent in ACCURACIES:
                found = rows(table, f"rounds_to_{percent}", algorithm=algorithm)["value"]
                reached = int((found <= last).sum())
                shown = f"{found.median():.0f}" if reached * 2 > len(found) else f"more than {last}"
                line[f"{percent} %"] = f"{shown} ({reached} of {len(found)} seeds)"
            end = final(table, "accuracy", split="test", client=-1, algorithm=algorithm)["value"]
            line["accuracy at the end"] = f"{100 * end.mean():.1f} ± {100 * end.std():.1f} %"
            lines.append(line)
    return pd.DataFrame(lines)
