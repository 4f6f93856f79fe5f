"""GIFAIR-FL (thesis ch. 2): Tables 2.1 to 2.6, Figs. 2.3, 2.4 and A.1."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedrepro.evidence.published import Printed
from fedrepro.evidence.tables import rows
from fedrepro.report.plotting import COLOURS, figure
from fedrepro.studies.gifair.artefacts_beside import communication, controls, devices, feasibility, tradeoff, tuning
from fedrepro.studies.gifair.measures import methods
from fedrepro.studies.gifair.names import METHODS, TITLES, chosen_setting, percent, present
from fedrepro.studies.gifair.printed import GROUPS, accuracies, pairs, sizes

__all__ = ["communication", "controls", "devices", "feasibility", "tradeoff", "tuning"]  # drawn in gifair_beside.py

Tables = dict[str, pd.DataFrame]
Drawn = tuple[Figure, pd.DataFrame]

SHOWN_WRITERS, SHOWN_IMAGES = 6, 10


# --- the tables of the thesis -----------------------------------------------------------------------------------------


def table2_1(tables: Tables) -> pd.DataFrame:
    """Devices and images of the three groups: printed, and those of the first seed."""
    held = methods(tables["femnist_3_groups"])
    held = rows(held, "samples", seed=held["seed"].min()).drop_duplicates(["split", "client"])
    images = held.groupby(["group", "client"])["value"].sum()
    lines = []
    for group, (printed, count) in sizes().items():
        mine = images.loc[group]
        line = {"group": group, "images, printed": printed, "images of a device, ours": f"{mine.mean():.0f}"}
        lines.append({**line, "devices, printed": count, "devices, ours": len(mine)})
    return pd.DataFrame(lines)


def table2_2(tables: Tables) -> pd.DataFrame:
    """FEMNIST-skewed."""
    return _individual(tables["femnist_skewed"], pairs("table2_2"))


def table2_3(tables: Tables) -> pd.DataFrame:
    """FEMNIST-original."""
    return _individual(tables["femnist_original"], pairs("table2_3"))


def table2_5(tables: Tables) -> pd.DataFrame:
    """Shakespeare, 31 roles."""
    return _individual(tables["shakespeare_31"], pairs("table2_5"))


def real_data(tables: Tables) -> pd.DataFrame:
    """The setting of Table 2.2 on MNIST and Fashion-MNIST."""
    both = {name: tables[name] for name in ("mnist_skewed", "fmnist_skewed")}
    return pd.concat([_individual(t, {}).assign(data=TITLES[name]) for name, t in both.items()])[
        ["data", "method", "setting", "mean", "spread", "only the test set", "excess", "worst tenth of the devices"]
    ]


def table2_4(tables: Tables) -> pd.DataFrame:
    """FEMNIST-3-groups."""
    return _grouped(tables["femnist_3_groups"], "table2_4")


def table2_6(tables: Tables) -> pd.DataFrame:
    """Shakespeare, men and women."""
    return _grouped(tables["shakespeare_2"], "table2_6")


def _individual(table: pd.DataFrame, printed: dict[str, tuple[Printed, Printed]]) -> pd.DataFrame:
    """A line a method: printed mean and spread; ours at the chosen setting, with the spread's two parts."""
    lines = []
    for method in present(table):
        line: dict[str, object] = {"method": METHODS[method][0]}
        if printed:
            for name, number in zip(("mean", "spread"), printed.get(method, (None, None)), strict=True):
                line[f"{name}, printed"] = "" if number is None else f"{number.value:.4g} ({number.spread:.3g})"
        line["setting"] = chosen_setting(table, method)
        for name, metric in (("mean", "accuracy"), ("spread", "spread"), ("only the test set", "sampling")):
            line[name] = percent(rows(table, f"chosen_{metric}", algorithm=method)["value"])
        line["excess"] = percent(rows(table, "chosen_excess", algorithm=method)["value"])
        line["worst tenth of the devices"] = percent(rows(table, "chosen_worst_tenth", algorithm=method)["value"])
        lines.append(line)
    return pd.DataFrame(lines)


def _grouped(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """A line a method: each group's accuracy and the discrepancy, printed, as the printed rows give it, and ours."""
    groups, printed = GROUPS[name], accuracies(name)
    lines = []
    for method in present(table):
        line: dict[str, object] = {"method": METHODS[method][0], "setting": chosen_setting(table, method)}
        for i, group in enumerate(groups):
            mean, sd = printed[method][0][i]
            ours = rows(table, "chosen_group_accuracy", algorithm=method, group=group)["value"]
            line |= {f"{group}, printed": f"{mean:.2f} ({sd:.2f})", group: percent(ours)}
        means = [mean for mean, _ in printed[method][0]]
        line["discrepancy, printed"] = f"{printed[method][1]:.2f}"
        line["of the printed rows"] = f"{max(means) - min(means):.2f}"
        line["discrepancy"] = percent(rows(table, "chosen_discrepancy", algorithm=method)["value"])
        lines.append(line)
    return pd.DataFrame(lines)


# --- the figures of the thesis ----------------------------------------------------------------------------------------


def fig2_3(tables: Tables) -> Drawn:
    """Fig. 2.3: images of FEMNIST, a row a writer, the same characters where they have them."""
    samples = tables["femnist_original.data"]
    writers = np.sort(samples["client"].unique())[:SHOWN_WRITERS]
    mine = samples[samples["client"].isin(writers)]
    common = mine.groupby("y")["client"].nunique().sort_values(ascending=False, kind="stable")
    shown = np.sort(common.index[:SHOWN_IMAGES])
    pixels = [c for c in samples if c.startswith("x")]
    side = int(np.sqrt(len(pixels)))
    fig, axes = figure(len(writers), SHOWN_IMAGES, width=7.0, height=0.75)
    drawn = []
    for i, writer in enumerate(writers):
        for ax in axes[i]:
            ax.set(xticks=[], yticks=[])
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
    return _over_lambda(tables["shakespeare_2"], GROUPS["table2_6"])


def figA_1(tables: Tables) -> Drawn:
    """Fig. A.1: accuracy of the three groups over λ, GIFAIR-FL-Global and -Per."""
    return _over_lambda(tables["femnist_3_groups"], GROUPS["table2_4"])


def _over_lambda(table: pd.DataFrame, groups: tuple[str, ...]) -> Drawn:
    fig, axes = figure(1, 2, width=7.6, height=2.8, sharey=True)
    drawn = []
    for ax, method in zip(axes[0], ("gifair_global", "gifair_per"), strict=True):
        own = rows(table, "group_accuracy", algorithm=method)
        own = own.assign(fraction=own["setting"].str.removeprefix("fraction=").astype(float))
        for group, colour in zip(groups, COLOURS, strict=False):
            line = own[own["group"] == group].groupby("fraction")["value"].agg(["mean", "min", "max"]).reset_index()
            ax.plot(line["fraction"], line["mean"], "o-", color=colour, label=group, markersize=4)
            ax.fill_between(line["fraction"], line["min"], line["max"], color=colour, alpha=0.18, linewidth=0)
            drawn.append(line.assign(method=method, group=group))
        ax.set(title=METHODS[method][0], xlabel="λ / λ_max")
    axes[0, 0].set_ylabel("mean test accuracy\nof the group's devices, %")
    axes[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig, pd.concat(drawn, ignore_index=True)
