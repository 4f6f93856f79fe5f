"""Parameter errors over rounds (thesis §4.5 and App. C.1): Fig. 4.2–4.4 and C.1, local steps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, band, figure

BLUE, RED, GREEN = COLOURS[:3]
SCENARIOS = {20: "K = 20, N = 5000", 50: "K = 50, N = 2000", 100: "K = 100, N = 800"}
ONE_OVER_T: dict[str, Any] = {"label": "1/T", **PUBLISHED}
PLOTTED = ["seed", "round", "value"]


def fig4_2(tables: Tables) -> Drawn:
    """Fig. 4.2: squared error of (θ₁, θ₂) over rounds, RBF; rows: l known, l learned, l learned with Adam."""
    settings = {"known lengthscale": "l known", "learned lengthscale": "l learned", "adam": "l learned, Adam"}
    fig, axes = figure(3, 3, width=8.6, height=2.1, sharex=True, sharey=True)
    drawn = []
    for column, (devices, title) in zip(axes.T, SCENARIOS.items(), strict=True):
        table = tables[f"homogeneous_{devices}"]
        floor = final(table, "error", algorithm="gp_maximum")["value"].median()
        for ax, (setting, label) in zip(column, settings.items(), strict=True):
            own = rows(table, "error", algorithm="fgpr", setting=setting)
            drawn.append(_draw_errors(ax, own).assign(scenario=title, setting=label))
            ax.axhline(floor, color=GREEN, linestyle="--", linewidth=1, label="maximum likelihood, l known")
        column[0].set_title(title)
        column[-1].set_xlabel("round")
    for ax, label in zip(axes[:, 0], settings.values(), strict=True):
        ax.set_ylabel(f"{label}\n‖θ̄ − θ*‖²")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig, pd.concat(drawn, ignore_index=True)


def fig4_3(tables: Tables) -> Drawn:
    """Fig. 4.3: the same with 10 to 10,000 samples per device (fewer at small scales); l known."""
    return _three_scenarios(tables, "unbalanced", "error", "‖θ̄ − θ*‖²", [f"K = {k}" for k in SCENARIOS])


def figC_1(tables: Tables) -> Drawn:
    """Fig. C.1: squared error of θ₂ over rounds, Matérn-3/2, one dimension, l known."""
    return _three_scenarios(tables, "matern", "error_noise", "(θ̄₂ − θ₂*)²", list(SCENARIOS.values()))


def _three_scenarios(tables: Tables, experiment: str, metric: str, label: str, titles: Sequence[str]) -> Drawn:
    fig, axes = figure(1, 3, width=8.6, height=2.8, sharey=True)
    drawn = []
    for ax, devices, title in zip(axes[0], SCENARIOS, titles, strict=True):
        own = rows(tables[f"{experiment}_{devices}"], metric, algorithm="fgpr")
        drawn.append(_draw_errors(ax, own).assign(scenario=title))
        ax.set(title=title, xlabel="round")
    axes[0, 0].set_ylabel(label)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig, pd.concat(drawn, ignore_index=True)


def _draw_errors(ax: Axes, own: pd.DataFrame) -> pd.DataFrame:
    """One line per seed, their median, and 1/T from the median start."""
    for _, one in own.groupby("seed"):
        ax.plot(one["round"], one["value"], color=BLUE, linewidth=0.6, alpha=0.5)
    middle = own.groupby("round")["value"].median()
    ax.plot(middle.index, middle, color=RED, linewidth=1.8, label="median over seeds")
    ax.plot(middle.index, middle.iloc[0] / (1 + middle.index), **ONE_OVER_T)
    ax.set_yscale("log")
    ax.set_ylim(bottom=1e-6)  # a run that crosses the truth dips without meaning anything
    return own[PLOTTED]


def fig4_4(tables: Tables) -> Drawn:
    """Fig. 4.4: the sizes of the devices of one run of Example 2."""
    fig, axes = figure(1, 3, width=8.6, height=2.4)
    drawn = []
    for ax, devices in zip(axes[0], SCENARIOS, strict=True):
        sizes = tables[f"unbalanced_{devices}.data"].groupby("client").size()
        bins = np.geomspace(sizes.min(), sizes.max() + 1, 12)
        ax.hist(sizes, bins=bins, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.set(xscale="log", xlabel="samples per device", title=f"K = {devices}")
        drawn.append(sizes.rename("samples").reset_index().assign(devices=devices))
    axes[0, 0].set_ylabel("devices")
    return fig, pd.concat(drawn, ignore_index=True)


def local_steps(tables: Tables) -> Drawn:
    """Remark 26 and Theorem 29: E local steps at equal T, and partial participation."""
    fig, ((curves, ends, sampled),) = figure(1, 3, width=9.0, height=2.8)
    table = tables["local_steps"]
    periods = {int(s.removeprefix("period=")): s for s in table["setting"].unique()}
    last = int(table["round"].max())
    drawn = []
    for colour, (period, setting) in zip(COLOURS, sorted(periods.items()), strict=False):
        label = "one-shot" if period > last else f"E = {period}"
        own = rows(table, "error", setting=setting)
        middle = own.groupby("round")["value"].median()
        curves.plot(middle.index, middle, color=colour, label=label)
        late = rows(table, "late_error", setting=setting)["value"]
        ends.scatter([label] * len(late), late, s=10, color=colour, alpha=0.7)
        ends.scatter([label], [late.median()], s=180, marker="_", color=colour)
        drawn.append(own[PLOTTED].assign(arm=label))
    curves.set(yscale="log", xlabel="iteration T", ylabel="‖θ̄ − θ*‖², median", title="E local steps, K = 50")
    curves.legend(fontsize=7)
    ends.set(yscale="log", ylabel="late error, every seed", title="final errors")
    ends.tick_params(axis="x", rotation=40)
    for name, label, colour in (("homogeneous_20", "all 20 devices", BLUE), ("sampled", "5 of 20 devices", RED)):
        own = rows(tables[name], "error", algorithm="fgpr", setting="known lengthscale")
        band(sampled, own, "round", label, colour)
        drawn.append(own[PLOTTED].assign(arm=label))
    sampled.set(yscale="log", xlabel="round", title="synchronous or sampled, K = 20")
    sampled.legend()
    return fig, pd.concat(drawn, ignore_index=True)
