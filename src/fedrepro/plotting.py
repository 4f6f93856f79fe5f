"""One look for all figures: sizes, colours that colour-blind readers can tell apart, intervals, tables."""

from __future__ import annotations

import io
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Okabe & Ito's palette, in the order in which curves are drawn
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
PUBLISHED = {"color": "#000000", "linestyle": (0, (1, 2)), "linewidth": 1.2}

STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "fedrepro",
    "svg.fonttype": "path",
    "figure.constrained_layout.use": True,
}


def figure(
    rows: int = 1, columns: int = 1, width: float = 7.0, height: float = 2.8, **options
) -> tuple[Figure, np.ndarray]:
    """A figure in the common style and its axes [rows, columns]."""
    plt.rcParams.update(STYLE)
    return plt.subplots(rows, columns, figsize=(width, height * rows), squeeze=False, **options)


def band(axes: Axes, table: pd.DataFrame, x: str, label: str | None = None, colour=None, **style) -> pd.DataFrame:
    """Median over the seeds with the band from the smallest to the largest; returns what was drawn."""
    summary = table.groupby(x)["value"].agg(median="median", low="min", high="max").reset_index()
    (line,) = axes.plot(summary[x], summary["median"], label=label, color=colour, **style)
    axes.fill_between(summary[x], summary["low"], summary["high"], color=line.get_color(), alpha=0.18, linewidth=0)
    return summary


def save(fig: Figure, kind: str) -> bytes:
    """The figure as `svg` or `png`; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    fig.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def table_figure(table: pd.DataFrame, title: str) -> Figure:
    """A table as a picture, for places that show pictures only."""
    plt.rcParams.update(STYLE)
    fig, axes = plt.subplots(figsize=(max(4.0, 1.25 * len(table.columns)), 0.6 + 0.26 * (len(table) + 1)))
    axes.axis("off")
    axes.set_title(title, loc="left")
    cells = [[_cell(v) for v in row] for row in table.itertuples(index=False)]
    drawn = axes.table(cells, colLabels=list(table.columns), loc="center", cellLoc="left", edges="horizontal")
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(8)
    return fig


def federation_figure(rows: Sequence[np.ndarray], labels: np.ndarray | None, groups: Sequence[str]) -> Figure:
    """Who holds what: samples by client, stacked by class where there are classes, else coloured by group."""
    fig, axes = figure(width=7.0, height=2.4)
    ax = axes[0, 0]
    clients = np.arange(len(rows))
    if labels is not None and np.issubdtype(labels.dtype, np.integer):
        classes = np.unique(labels)
        counts = np.array([[np.sum(labels[held] == c) for c in classes] for held in rows])
        bottom = np.zeros(len(rows))
        shades = plt.get_cmap("viridis")(np.linspace(0, 1, len(classes)))
        for c, shade in zip(range(len(classes)), shades, strict=True):
            ax.bar(clients, counts[:, c], bottom=bottom, color=shade, width=0.9, linewidth=0)
            bottom += counts[:, c]
    else:
        names = sorted(set(groups)) if groups else [""]
        colours = [COLOURS[names.index(g) % len(COLOURS)] for g in groups] if groups else COLOURS[0]
        ax.bar(clients, [len(held) for held in rows], color=colours, width=0.9, linewidth=0)
    ax.set(xlabel="client", ylabel="training samples")
    ax.grid(axis="x", visible=False)
    return fig


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
