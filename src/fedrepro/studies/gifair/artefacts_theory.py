"""The theorems of GIFAIR-FL (thesis §2.3.2, §2.4) on federations whose optimum is known: measured beside the bounds."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedrepro.evidence.tables import RUN, Tables, rows
from fedrepro.report.plotting import COLOURS, Drawn, band, figure

LOCAL_STEPS = (5, 20)  # E
GROUPS = {"iid": "alike groups", "non_iid": "different groups"}
DEVICES = {"full": "all devices", "partial": "2 of 4 devices per round"}
LEAST = 1e-14  # smaller distances are rounding
#: metric, algorithm, label, line
CONVEX = (
    ("gap", "gifair_theory", "Global, measured", "-"),
    ("gap", "gifair_theory_per", "Per, measured", ":"),
    ("bound", "gifair_theory", "bound of Theorems 8, 10", "--"),
)
SMOOTH = (("gradient", "theorem_12", "Global, measured", "-"), ("gradient", "theorem_15", "Per, measured", ":"))


def theory(tables: Tables) -> Drawn:
    """H − H* over the iterations T on strongly convex losses, for all and some devices; the least ‖∇H‖² so far on
    losses that are not convex, with the slope of the bound. Medians over seeds with the range."""
    fig, axes = figure(2, 3, width=10.5, height=2.7, sharex=True)
    drawn = []
    for line, (data, alike) in zip(axes, GROUPS.items(), strict=True):
        for ax, (who, devices) in zip(line, DEVICES.items(), strict=False):
            ax.set_title(f"strongly convex, {alike}, {devices}", fontsize=8)
            drawn += [own.assign(devices=who) for own in _curves(ax, tables, f"convex_{data}_{who}", CONVEX)]
        line[1].sharey(line[0])
        line[2].set_title(f"not convex, {alike}, all devices", fontsize=8)
        found = _curves(line[2], tables, f"smooth_{data}", SMOOTH)
        drawn += [own.assign(devices="full") for own in found]
        iterations = np.array([own["T"].max() for own in found]).max() * np.array([1e-3, 1.0])
        slope = np.log1p(iterations) / np.sqrt(iterations)
        slope *= max(own["median"].iloc[0] for own in found) / slope[0]
        line[2].plot(iterations, slope, "--", color="#777777", label="slope of Theorem 12, log(T + 1)/√T")
        line[0].set_ylabel("H(θ̄) − H*")
        line[2].set_ylabel("least ‖∇H(θ̄)‖² so far")
    for ax in axes[-1]:
        ax.set_xlabel("iterations T")
    for ax in axes[0, 1:]:
        ax.legend(fontsize=6)
    return fig, pd.concat(drawn, ignore_index=True)


def _curves(
    ax: Axes, tables: Tables, experiment: str, shown: tuple[tuple[str, str, str, str], ...]
) -> list[pd.DataFrame]:
    """Draw the curves of both E and return their numbers."""
    drawn = []
    for steps, colour in zip(LOCAL_STEPS, COLOURS, strict=False):
        table = tables[f"{experiment}_e{steps}"]
        method = table["variant"].where(table["variant"] != "", table["algorithm"])
        for metric, algorithm, what, dashes in shown:
            own = rows(table.assign(method=method), metric, method=algorithm)
            own = own[(own["round"] > 0) & ~own["point"].eq("fraction=0")].sort_values("round")
            if metric == "gradient":
                own = own.assign(value=own.groupby(RUN)["value"].cummin())
            own = own.assign(T=steps * own["round"], value=own["value"].clip(lower=LEAST))
            line = band(ax, own, "T", f"E = {steps}, {what}", colour, linestyle=dashes)
            drawn.append(line.assign(experiment=experiment, E=steps, metric=metric, method=algorithm))
    ax.set(xscale="log", yscale="log")
    return drawn


def generalisation(tables: Tables) -> pd.DataFrame:
    """The share of draws above the bound of Theorem 37, as printed and corrected, by λ."""
    table = tables["generalisation"]
    found = {
        title: rows(table, f"exceeds_{which}").groupby("grid.fraction")["value"].mean()
        for which, title in (("printed", "above the printed bound"), ("corrected", "above the corrected bound"))
    }
    return pd.DataFrame(found).rename_axis("λ/λ_max").reset_index()
