"""Omni-Fedge (paper 001): the table of sample sizes, Fig. 1, the steps that were tried, the weights ω over rounds, and
rounds to an accuracy."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogLocator

from fedrepro.evidence.intervals import Sample
from fedrepro.evidence.tables import RUN, Printed, Tables, final, rows
from fedrepro.report.plotting import COLOURS, PRINTED_POINT, Drawn, band, figure, leave_empty, plain_ticks, say_seeds
from fedrepro.studies.omni.measures import TARGETS, square

SETTINGS = {"mnist_iid": "MNIST, i.i.d.", "mnist_noniid": "MNIST, non-i.i.d."}
SETTINGS |= {"fmnist_iid": "F-MNIST, i.i.d.", "fmnist_noniid": "F-MNIST, non-i.i.d."}
#: algorithm → (name, colour, line)
METHODS = {
    "omni_fedge": ("Omni-Fedge, as written", COLOURS[0], "-"),
    "omni_fedge_even": ("the same, weights made equal", COLOURS[3], "-"),
    "omni_fedge_ones": ("ω = 1", COLOURS[5], "-"),
    "omni_fedge_authors": ("Omni-Fedge, authors' code", COLOURS[0], (0, (4, 2))),
    "fedsgd": ("FedSGD", COLOURS[1], "-"),
    "fedsgd_authors": ("FedSGD, authors' code", COLOURS[1], (0, (4, 2))),
}
#: experiment → its methods, of which only the end is drawn: their rounds are not those of the others
ENDS = {
    "local": {"local": ("local training", COLOURS[2]), "local_authors": ("local training, authors' code", COLOURS[2])},
    "baselines": {"fedavg": ("FedAvg", COLOURS[4]), "fedper": ("FedPer", COLOURS[6]), "fedrep": ("FedRep", COLOURS[7])},
}
#: algorithm → its name in `published.csv`: test accuracies read by eye off figures in the authors' repository, where
#: runs from scratch are taken for the non-i.i.d. ones and those from local models for the i.i.d. ones
READ = {"omni_fedge_authors": "omni", "fedsgd_authors": "fedsgd", "local_authors": "local"}
READ_LABEL = "authors' code, read off their figure"
LEAST_SEEDS = 3  # an interval of two seeds is wider than the axis
GAP = 0.045  # from one end point to the next, as a share of the rounds
BELOW = 0.1  # accuracy shown below the worst end; curves begin lower


def table1(tables: Tables) -> pd.DataFrame:
    """Samples per node: printed, and those of the nodes of each split (mean over seeds; smallest to largest node)."""
    lines = []
    for name, title in SETTINGS.items():
        line: dict[str, object] = {"data": title}
        for split in ("train", "test"):
            asked = int(tables.printed[f"{name}_{split}"].value)
            sizes = rows(tables[name], "samples", split=split, algorithm="omni_fedge_authors", round=0)["value"]
            line |= {f"{split}, printed": asked, f"{split}, ours (mean)": round(float(sizes.mean()), 1)}
            line[f"{split}, ours (range)"] = f"{sizes.min():.0f}–{sizes.max():.0f}"
        lines.append(line)
    return pd.DataFrame(lines)


def chosen(table: pd.DataFrame, algorithm: str) -> pd.DataFrame:
    """The rows of an algorithm's runs with the step chosen on validation data."""
    runs = rows(table, "chosen_test_accuracy", algorithm=algorithm)[RUN]
    return table.merge(runs, on=RUN)


def fig1(tables: Tables) -> Drawn:
    """Fig. 1: average accuracy of the nodes over rounds, training and test, four settings; end points beside them."""
    fig, axes = figure(2, 4, width=11.0, height=2.7, sharex="col")
    drawn = []
    for column, (name, title) in enumerate(SETTINGS.items()):
        for ax, split in zip(axes[:, column], ("train", "test"), strict=True):
            about = {"data": title, "split": split}
            ends = []
            for algorithm, (label, colour, style) in METHODS.items():
                curve = rows(chosen(tables[name], algorithm), "accuracy", split=split, client=-1)
                if curve.empty:
                    continue
                summary = band(ax, curve, "round", label=label, colour=colour, linestyle=style)
                drawn.append(summary.assign(**about, method=label, shown="curve"))
                ends.append((label, colour, style == "-", final(curve, "accuracy")["value"]))
            last = int(rows(tables[name], "accuracy", split=split)["round"].max())
            for more, arms in ENDS.items():
                for algorithm, (label, colour) in arms.items():
                    curve = rows(chosen(tables[f"{name}_{more}"], algorithm), "accuracy", split=split, client=-1)
                    ends.append((label, colour, "authors" not in label, final(curve, "accuracy")["value"]))
            drawn += [line.assign(**about) for line in _end_points(ax, ends, last)]
            if split == "test":
                drawn.append(
                    _read_points(ax, tables.printed, name, [label for label, *_ in ends], last).assign(**about)
                )
            ax.set(xticks=[0, last // 2, last], ylim=(max(0.0, min(v.mean() for *_, v in ends) - BELOW), 1.0))
        axes[0, column].set_title(title)
        axes[1, column].set_xlabel("round")
    for ax, split in zip(axes[:, 0], ("train", "test"), strict=True):
        ax.set_ylabel(f"{split} accuracy")
    handles = dict(zip(*reversed(axes[1, 1].get_legend_handles_labels()), strict=True))
    fig.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
    return fig, pd.concat(drawn, ignore_index=True)


def _end_points(ax: Axes, ends: list[tuple[str, str, bool, pd.Series]], last: int) -> Iterator[pd.DataFrame]:
    """Draw the ends of runs beside their curves: mean and 95 % interval over seeds; hollow for the authors' code."""
    for place, (label, colour, full, values) in enumerate(ends, start=1):
        found = Sample.of(values.to_numpy())
        few = len(values) < LEAST_SEEDS
        low, high = (found.mean if few or np.isnan(end) else end for end in (found.low, found.high))
        x, known = last * (1 + GAP * place), label in ax.get_legend_handles_labels()[1]
        ax.errorbar(
            x,
            found.mean,
            [[found.mean - low], [high - found.mean]],
            fmt="o",
            markersize=3.5,
            linewidth=1,
            color=colour,
            markerfacecolor=colour if full else "white",
            label=None if known else label,
        )
        line = {"round": last, "mean": found.mean, "low": low, "high": high, "method": label, "shown": "end"}
        yield pd.DataFrame([line])
    ax.axvline(last * (1 + GAP / 2), color="#bbbbbb", linewidth=0.6)


def _read_points(ax: Axes, printed: Mapping[str, Printed], name: str, labels: list[str], last: int) -> pd.DataFrame:
    """Draw the test accuracies read off the authors' figure over the ends of the same methods."""
    data, split = name.split("_")
    start, shown = "scratch" if split == "noniid" else "local", []
    names = {algorithm: (label, colour) for algorithm, (label, colour, *_) in {**METHODS, **ENDS["local"]}.items()}
    for algorithm, number in READ.items():
        label, colour = names[algorithm]
        value = printed[f"{data}_{start}_{number}"].value
        place = labels.index(label) + 1 if label in labels else len(labels) + 1
        known = READ_LABEL in ax.get_legend_handles_labels()[1]
        ax.plot(last * (1 + GAP * place), value, color=colour, label=None if known else READ_LABEL, **PRINTED_POINT)
        shown.append({"round": last, "mean": value, "method": label, "shown": "read off the authors' figure"})
    return pd.DataFrame(shown)


def steps(tables: Tables) -> pd.DataFrame:
    """Every step that was tried: accuracy at the end (mean over seeds), how often chosen, how often diverged."""
    lines = []
    for name, title in SETTINGS.items():
        sources = {name: METHODS} | {f"{name}_{more}": arms for more, arms in ENDS.items()}
        for experiment, arms in sources.items():
            table = tables[experiment]
            for algorithm, (label, *_) in arms.items():
                runs = table[table["algorithm"] == algorithm].groupby("setting", sort=False)
                for setting, own in runs if runs.ngroups > 1 else ():
                    sound = own[~own["diverged"]]
                    ends = {
                        split: final(sound, "accuracy", split=split, client=-1)["value"].mean()
                        for split in ("validation", "test")
                    }
                    best, seeds = rows(own, "chosen_test_accuracy")["seed"].nunique(), own["seed"].nunique()
                    lost = own.loc[own["diverged"], "seed"].nunique()
                    line = {"data": title, "method": label, "step": setting.removeprefix("lr=")}
                    shown = {
                        f"{split} accuracy": "" if np.isnan(v) else f"{100 * v:.1f} %" for split, v in ends.items()
                    }
                    lines.append(line | shown | {"chosen": f"{best} of {seeds}", "diverged": f"{lost} of {seeds}"})
    return pd.DataFrame(lines)


def weights(tables: Tables) -> Drawn:
    """ω_ij (head of node i, data of node j) of the paper's mode over rounds, next to the overlap of the labels. A cell
    without a finite weight, or of a run that diverged, is blank."""
    fig, axes = figure(len(SETTINGS), 4, width=8.8, height=1.9)
    shown: list[tuple[str, str, np.ndarray]] = []
    for name, title in SETTINGS.items():
        table = tables[name]
        first = table[(table["algorithm"] == "omni_fedge") & (table["seed"] == table["seed"].min())]
        best = chosen(first, "omni_fedge")
        own = first[first["setting"] == first["setting"].iloc[0]] if best.empty else best
        omega = rows(own, "omega")
        omega = omega.assign(value=omega["value"].where(~omega["diverged"]))
        part = omega["round"] / omega["round"].max()
        early = omega[part <= 0.1] if (part <= 0.1).any() else omega[omega["round"] == omega["round"].min()]
        panels = {"overlap of labels": rows(own, "overlap", round=0), "ω, first tenth": early}
        panels |= {"ω, middle": omega[(part > 0.4) & (part <= 0.6)], "ω, last fifth": omega[part > 0.8]}
        nodes = int(rows(own, "overlap")["client"].max()) + 1
        for label, mine in panels.items():
            matrix = np.full((nodes, nodes), np.nan) if mine["value"].isna().all() else square(mine)
            shown.append((title, label, matrix))
    sizes = np.concatenate([m.ravel() for _, label, m in shown if label.startswith("ω")])
    sizes = sizes[np.isfinite(sizes)]
    low, high = (sizes.min(), sizes.max()) if len(sizes) else (1.0, 1.0)
    norm = LogNorm(low / 2, high * 2)  # wider than the weights: near equal ones have near colours
    drawn, images = [], {}
    for ax, (title, label, matrix) in zip(axes.flat, shown, strict=True):
        weight = label.startswith("ω")
        images[weight] = ax.imshow(
            matrix, cmap="viridis" if weight else "Greys", norm=norm if weight else None, **({} if weight else LABELS)
        )
        if np.isnan(matrix).all():
            leave_empty(ax, "no such rounds,\nor diverged")
        for (i, j), value in np.ndenumerate(matrix):
            drawn.append({"i": i, "j": j, "value": value, "data": title, "panel": label})
            if np.isfinite(value):
                dark = norm(value) < 0.6 if weight else value > 0.6
                text = f"{value:.2g}" if 0.01 <= value < 1000 else f"{value:.0e}"  # room for five characters
                ax.text(j, i, text, ha="center", va="center", fontsize=6.5, color="white" if dark else "black")
        ax.set(xticks=range(len(matrix)), yticks=range(len(matrix)))
        ax.grid(visible=False)
        ax.tick_params(labelsize=6.5, length=0)
    for line, title in zip(axes, SETTINGS.values(), strict=True):
        line[0].set_ylabel(f"{title}\nnode i")
        say_seeds(line[-1], pd.DataFrame({"seed": [0]}))  # the first only
    for above, below, (_, label, _) in zip(axes[0], axes[-1], shown, strict=False):
        above.set_title(label)
        below.set_xlabel("data of node j")
    bar = fig.colorbar(images[True], ax=axes[:, 1:], label="ω", shrink=0.5)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plain_ticks(bar.ax.yaxis)
    return fig, pd.DataFrame(drawn)


LABELS = {"vmin": 0.0, "vmax": 1.0}  # of the overlap of two nodes' labels


def rounds_to_accuracy(tables: Tables) -> pd.DataFrame:
    """Rounds until the nodes' average test accuracy reaches 80, 85, 90 %: median over seeds, and how many reach it."""
    lines = []
    for name, title in SETTINGS.items():
        last = int(rows(tables[name], "accuracy", split="test")["round"].max())
        for algorithm, (label, *_) in METHODS.items():
            table = chosen(tables[name], algorithm)
            if table.empty:
                continue
            line: dict[str, object] = {"data": title, "method": label}
            for metric, target in TARGETS.items():
                found = rows(table, metric)["value"]
                reached = int((found <= last).sum())
                shown = f"{found.median():.0f}" if reached * 2 > len(found) else f"more than {last}"
                line[f"{target:.0%}".replace("%", " %")] = f"{shown} ({reached} of {len(found)} seeds)"
            end = rows(table, "test_accuracy")["value"]
            line["accuracy at the end"] = f"{100 * end.mean():.1f} ± {100 * end.std():.1f} %"
            lines.append(line)
    return pd.DataFrame(lines)
