"""Figures of GIFAIR-FL (thesis ch. 2): Figs. 2.3, 2.4 and A.1; added: accuracies over devices, the trade-off."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from fedrepro.evidence.tables import Printed, Tables, final, rows
from fedrepro.report.plotting import COLOURS, PRINTED_POINT, Drawn, figure, leave_empty, say_seeds
from fedrepro.studies.gifair.artefacts_tables import (
    GROUPS,
    NONE_ADMISSIBLE,
    TITLES,
    chosen_setting,
    colours,
    name,
    present,
    printed_lines,
)
from fedrepro.studies.gifair.measures import methods

#: table with the printed accuracies of a federation's groups
PRINTED_IN = {"femnist_3_groups": "2_4", "shakespeare_2": "2_6"}
SHOWN_WRITERS, SHOWN_IMAGES = 6, 10
READABLE = (
    20.0  # mean accuracy, in per cent, of FedAvg: twice chance of ten classes; a space in place of every letter has 17
)
NEEDED_ROUNDS = {"mnist_skewed": 60}  # by the claims; 100 elsewhere
DEVICES = {"capital": 60, "lowercase": 100, "mixed": 40, "male": 25, "female": 10}  # Table 2.1, §2.5.2
#: table with the printed mean and spread of the methods, or of their groups
TABLES = {"femnist_skewed": "2_2", "femnist_original": "2_3", "shakespeare_31": "2_5", **PRINTED_IN}
FEWEST_SEEDS = 3  # an interval of two seeds is wider than the axis
FAR_BELOW = 10.0  # points: no method is left out for less
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def fig2_3(tables: Tables) -> Drawn:
    """Fig. 2.3: images of FEMNIST, one row per writer, the same characters where they have them."""
    samples = tables["femnist_original.data"]
    writers = np.sort(samples["client"].unique())[:SHOWN_WRITERS]
    mine = samples[samples["client"].isin(writers)]
    common = mine.groupby("y")["client"].nunique().sort_values(ascending=False, kind="stable")
    shown = np.sort(common.index[:SHOWN_IMAGES])
    pixels = [c for c in samples if c.startswith("x")]
    side = int(np.sqrt(len(pixels)))
    fig, axes = figure(len(writers), SHOWN_IMAGES, width=7.0, height=0.75, subplot_kw={"xticks": [], "yticks": []})
    drawn = []
    for i, writer in enumerate(writers):
        for ax in axes[i]:
            ax.grid(visible=False)
        axes[i, 0].set_ylabel(f"writer {writer}", rotation=0, ha="right", va="center", fontsize=8)
        for j, character in enumerate(shown):
            own = mine[(mine["client"] == writer) & (mine["y"] == character)]
            if own.empty:
                axes[i, j].axis("off")
                continue
            image = own.iloc[0][pixels].to_numpy(dtype=float).reshape(side, side)
            axes[i, j].imshow(255 - image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            drawn.append({"writer": writer, "class": character, "images of the writer": len(own), "ink": image.mean()})
    return fig, pd.DataFrame(drawn)


def fig2_4(tables: Tables) -> Drawn:
    """Fig. 2.4: accuracy of men and women over λ, GIFAIR-FL-Global and -Per."""
    return _over_lambda(tables, "shakespeare_2")


def figA_1(tables: Tables) -> Drawn:
    """Fig. A.1: accuracy of the three groups over λ, GIFAIR-FL-Global and -Per."""
    return _over_lambda(tables, "femnist_3_groups")


def _over_lambda(tables: Tables, data: str) -> Drawn:
    """Above, the groups' accuracies, with the printed ones of FedAvg (λ = 0) and of the tuned GIFAIR-FL (its λ is not
    printed: on the right edge); below, their change from the same seed's at λ = 0, with 95 % intervals of its mean."""
    fig, axes = figure(2, 2, width=7.6, height=2.5, sharex=True, sharey="row")
    drawn, reason = [], _unreadable(tables, data)
    for (above, below), method in zip(axes.T, ("gifair_global", "gifair_per"), strict=True):
        for group, colour in zip(GROUPS[data], COLOURS, strict=False):
            own = rows(tables[data], "group_accuracy", algorithm=method, group=group)
            by_seed = own.pivot_table(index="grid.fraction", columns="seed", values="value").rename_axis("fraction")
            line = by_seed.agg(["mean", "min", "max"], axis=1)
            shown = line.mask(line.notna()) if reason else line
            above.plot(shown.index, shown["mean"], "o-", color=colour, label=group, markersize=4)
            above.fill_between(shown.index, shown["min"], shown["max"], color=colour, alpha=0.18, linewidth=0)
            say_seeds(above, own)
            for printed, place in (("fedavg", 0.0), (method, 1.0)):
                number = tables.printed[f"t{PRINTED_IN[data]}_{printed}_{group}"]
                above.plot(place, number.value, color=colour, **PRINTED_POINT)
            line = line.join(_change(by_seed))
            if line["change"].notna().any() and not reason:
                say_seeds(below, own)
                below.errorbar(
                    line.index, line["change"], line["half"], fmt="o-", color=colour, markersize=4, capsize=2
                )
            drawn.append(line.reset_index().assign(method=method, group=group))
        above.set_title(name(method))
        if reason:
            leave_empty(below, reason)
            below.set_yticks([])
        below.axhline(0, color="#777777", linewidth=0.8)
        below.set_xlabel("λ / λ_max")
    axes[0, 0].set_ylabel("accuracy of the\ngroup's devices, %")
    axes[1, 0].set_ylabel("change from λ = 0,\nsame seed, points")
    axes[0, 1].plot(
        [], [], color="#000000", label=f"Table {PRINTED_IN[data].replace('_', '.')}, printed", **PRINTED_POINT
    )
    axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig, pd.concat(drawn, ignore_index=True)


def _change(by_seed: pd.DataFrame) -> pd.DataFrame:
    """By fraction: the mean change from λ = 0 of the same seed, and half its 95 % interval (none of fewer than 3)."""
    if 0 not in by_seed.index:
        return pd.DataFrame({"change": np.nan, "half": np.nan}, index=by_seed.index)
    change = by_seed - by_seed.loc[0]
    seeds = change.count(axis=1)
    half = change.std(axis=1, ddof=1) / np.sqrt(seeds) * stats.t.ppf(0.975, (seeds - 1).clip(lower=1))
    half = half.where(seeds >= FEWEST_SEEDS, 0.0)
    return pd.DataFrame({"change": change.mean(axis=1), "half": half})


def _panels(label: str) -> tuple[Figure, list[Axes]]:
    """A figure with one panel per data set, and its axes; the spare ones, at the end, are empty."""
    fig, axes = figure(3, 3, width=10.5, height=2.9)
    for ax, title in zip(axes.flat, TITLES.values(), strict=False):
        ax.set_title(title)
    for ax in axes[:, 0]:
        ax.set_ylabel(label)
    for ax in axes.flat[len(TITLES) :]:
        ax.axis("off")
    return fig, list(axes.flat)


def _unreadable(tables: Tables, data: str) -> str:
    """Why nothing can be read from a federation's panel: FedAvg has hardly learnt. Else nothing."""
    accuracy = rows(tables[data], "accuracy", split="derived", algorithm="fedavg")
    if (reached := accuracy["value"].mean()) >= READABLE:
        return ""
    rounds = int(accuracy["round"].max())
    return f"FedAvg is at {reached:.0f} %\nafter {rounds} rounds;\nthe claims need {NEEDED_ROUNDS.get(data, 100)}"


def _printed_points(printed: Mapping[str, Printed], data: str) -> Iterator[tuple[str, float, float]]:
    """(method, mean, spread or discrepancy) as printed; the mean over groups is that of their devices."""
    if data not in TABLES:
        return
    groups = GROUPS.get(data, ())
    columns = (*groups, "discrepancy") if groups else ("mean", "spread")
    for method, (*means, unfairness) in printed_lines(printed, TABLES[data], columns).items():
        weights = [DEVICES[group] for group in groups] or [1]
        yield method, float(np.average([mean.value for mean in means], weights=weights)), unfairness.value


def _without_outliers(ax: Axes, lines: pd.DataFrame, low: str, high: str, who: str) -> None:
    """Limits of the y axis from all lines but those far below the rest, which are named at its foot."""
    if lines.empty:
        return
    middle = lines[low].median()
    far = lines[high] < middle - max(6 * (lines[low] - middle).abs().median(), FAR_BELOW)
    inside = lines[~far]
    room = 0.06 * max(inside[high].max() - inside[low].min(), 1.0)
    ax.set_ylim(inside[low].min() - room, inside[high].max() + room)
    if far.any():
        below = ", ".join(sorted({name(method) for method in lines.loc[far, who]}))
        ax.annotate(f"below: {below}", (0.02, 0.02), xycoords="axes fraction", fontsize=6)


def _include(ax: Axes, values: Sequence[float]) -> None:
    """Widen the y axis to the printed values."""
    low, high = ax.get_ylim()
    ax.set_ylim(min([low, *(value - 1 for value in values)]), max([high, *(value + 1 for value in values)]))


def devices(tables: Tables) -> Drawn:
    """Accuracy over devices at the chosen settings: one box per method (quartiles; whiskers to 5 and 95 %)."""
    fig, axes = _panels("test accuracy of a device, %")
    colour = colours(present(*(tables[data] for data in TITLES)))
    drawn = []
    for ax, (data, title) in zip(axes, TITLES.items(), strict=False):
        if reason := _unreadable(tables, data):
            leave_empty(ax, reason)
            ax.set(xticks=[], yticks=[])
            continue
        named, shown = methods(tables[data]), present(tables[data])
        say_seeds(ax, named)
        printed = {method: mean for method, mean, _ in _printed_points(tables.printed, data)}
        each = final(named[named["client"] >= 0], "accuracy", split="test")
        for place, method in enumerate(shown):
            if (setting := chosen_setting(tables[data], method)) == NONE_ADMISSIBLE:
                ax.text(place, 0.02, "none admissible", rotation=90, fontsize=6, transform=ax.get_xaxis_transform())
                continue
            values = 100 * rows(each, "accuracy", algorithm=method, setting=setting)["value"].to_numpy()
            line = {"color": colour[method], "linewidth": 1.2}
            style: dict[str, Any] = dict.fromkeys(("boxprops", "whiskerprops", "capprops", "medianprops"), line)
            ax.boxplot([values], positions=[place], widths=0.6, whis=(5, 95), showfliers=False, **style)
            ax.plot(place, values.mean(), "D", color=colour[method], markersize=3.5)
            if method in printed:
                ax.plot(place, printed[method], color=colour[method], **PRINTED_POINT)
            quantiles = {f"q{100 * q:02.0f}": np.quantile(values, q) for q in QUANTILES}
            drawn.append({"data": title, "method": method, "mean": values.mean(), **quantiles})
        _without_outliers(ax, pd.DataFrame(drawn).query("data == @title"), "q05", "q95", "method")
        _include(ax, [mean for method, mean in printed.items() if method in shown])
        short = [name(method).replace("GIFAIR-FL-", "") for method in shown]
        ax.set_xticks(range(len(shown)), short, rotation=40, ha="right", fontsize=7)
    return fig, pd.DataFrame(drawn)


def tradeoff(tables: Tables) -> Drawn:
    """Mean accuracy against spread (of groups: discrepancy) for every setting of every grid, with the Pareto front."""
    fig, axes = _panels("mean test accuracy, %")
    colour = colours(present(*(tables[data] for data in TITLES)))
    drawn = []
    for ax, (data, title) in zip(axes, TITLES.items(), strict=False):
        table = tables[data]
        if reason := _unreadable(tables, data):
            leave_empty(ax, reason)
            ax.set(xticks=[], yticks=[])
            continue
        say_seeds(ax, table)
        own = table[(table["split"] == "derived") & table["metric"].isin(["accuracy", "unfairness"])]
        points = own.pivot_table(index=["algorithm", "setting"], columns="metric", values="value", sort=False)
        points = points.reset_index().assign(data=title)
        points["front"] = front(points["accuracy"].to_numpy(), points["unfairness"].to_numpy())
        for method, mine in points.groupby("algorithm", sort=False):
            marker = "s" if method in ("ditto", "gifair_per") else "o"
            inside = "none" if method in ("gifair_exact", "term_group") else colour[method]
            style: dict[str, Any] = {"s": 26, "marker": marker, "edgecolor": colour[method], "facecolor": inside}
            ax.scatter(mine["unfairness"], mine["accuracy"], label=name(method), **style)
        marks = [m for m in _printed_points(tables.printed, data) if m[0] in set(points["algorithm"])]
        for method, mean, unfairness in marks:
            ax.plot(unfairness, mean, color=colour[method], **PRINTED_POINT)
        _without_outliers(ax, points, "accuracy", "accuracy", "algorithm")
        _include(ax, [mean for _, mean, _ in marks])
        best = points[points["front"]].sort_values("unfairness")
        ax.plot(best["unfairness"], best["accuracy"], color="#777777", linewidth=0.9, zorder=1)
        ax.set_xlabel("discrepancy of the groups, points" if data in GROUPS else "spread over devices, points")
        drawn.append(points)
    found = {label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    (found["printed"],) = axes[len(TITLES)].plot([], [], color="#000000", **PRINTED_POINT)
    axes[len(TITLES)].legend(found.values(), found.keys(), loc="upper left")
    return fig, pd.concat(drawn, ignore_index=True) if drawn else pd.DataFrame(columns=["algorithm", "data", "front"])


def front(accuracy: np.ndarray, unfairness: np.ndarray) -> np.ndarray:
    """The points that no other point beats in both: marks [n]."""
    better = (accuracy[None] >= accuracy[:, None]) & (unfairness[None] <= unfairness[:, None])
    strictly = (accuracy[None] > accuracy[:, None]) | (unfairness[None] < unfairness[:, None])
    return np.asarray(~(better & strictly).any(axis=1))
