"""One style for all figures: sizes, colours that colour-blind readers can tell apart, bands, tables."""

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib
from cycler import cycler

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogFormatterSciNotation, LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

#: Okabe & Ito's palette, in the order in which curves are drawn
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")
PUBLISHED = {"color": "#000000", "linestyle": (0, (1, 2)), "linewidth": 1.2}
#: a printed number as a point, in the colour of its method; numbers read from a figure say so in the legend
PRINTED_POINT: Any = {"marker": "*", "markersize": 8, "markerfacecolor": "none", "linestyle": "none"}
NOTE = "seeds"  # group id of the note beside a panel
#: returned by the function of a figure: the figure and its numbers
Drawn = tuple[Figure, pd.DataFrame]
#: a literal that matplotlib's types do not list
NO_LAYOUT: Any = "none"
#: in the picture of a federation: the most bars drawn one by one, the most entries of a legend
FEW_CLIENTS, FEW_CLASSES = 40, 12

STYLE: Any = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titley": 1.0,  # fixed, else matplotlib searches for it: no figure has ticks on top
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "svg.hashsalt": "fedrepro",
    "svg.fonttype": "path",
    "figure.constrained_layout.use": True,
}


def figure(
    rows: int = 1, columns: int = 1, width: float = 7.0, height: float = 2.8, **options: Any
) -> tuple[Figure, np.ndarray]:
    """A figure in the common style and its axes [rows, columns]."""
    plt.rcParams.update(STYLE)
    return plt.subplots(rows, columns, figsize=(width, height * rows), squeeze=False, **options)


def band(
    axes: Axes, table: pd.DataFrame, x: str, label: str | None = None, colour: str | None = None, **style: Any
) -> pd.DataFrame:
    """Draw the median over seeds, with a band from minimum to maximum; returns the drawn numbers."""
    summary = table.groupby(x)["value"].agg(median="median", low="min", high="max").reset_index()
    (line,) = axes.plot(summary[x], summary["median"], label=label, color=colour, **style)
    axes.fill_between(summary[x], summary["low"], summary["high"], color=line.get_color(), alpha=0.18, linewidth=0)
    say_seeds(axes, table)
    return summary


def say_seeds(axes: Axes, table: pd.DataFrame) -> None:
    """Note beside the panel how many seeds it shows; of several tables, the fewest and the most."""
    if "seed" not in table or table.empty:
        return
    found = [text for text in axes.texts if text.get_gid() == NOTE]
    count = table["seed"].nunique()
    counts = {count, *(int(n) for text in found for n in re.findall(r"\d+", text.get_text()))}
    words = f"{min(counts)}–{max(counts)} seeds" if len(counts) > 1 else f"{count} seed{'s' * (count > 1)}"
    if found:
        found[0].set_text(words)
    else:
        style: Any = {"rotation": 270, "ha": "left", "va": "top", "fontsize": 6, "color": "#777777", "gid": NOTE}
        axes.text(1.005, 1.0, words, transform=axes.transAxes, **style)


def say_scale(fig: Figure, scale: str) -> None:
    """Add the scale of the run to the panels' notes."""
    for text in (text for axes in fig.axes for text in axes.texts if text.get_gid() == NOTE):
        text.set_text(f"{scale}, {text.get_text()}")


def leave_empty(axes: Axes, reason: str) -> None:
    """A panel from which nothing can be judged: only the reason."""
    style: Any = {"ha": "center", "va": "center", "fontsize": 8, "color": "#555555", "in_layout": False}
    axes.text(0.5, 0.4, reason, transform=axes.transAxes, **style)
    axes.grid(visible=False)


def log_axis(axes: Axes, which: str) -> None:
    """A logarithmic axis (`x` or `y`) whose ticks 1, 2, 5, … are plain numbers."""
    axes.set(**{f"{which}scale": "log"})
    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    plain_ticks(axis)


def plain_ticks(axis: Axis) -> None:
    """Major ticks as plain numbers, minor ones without."""
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def stamp(fig: Figure, text: str) -> None:
    """Mark the picture itself, so that it cannot be shown without the mark."""
    style: Any = {"fontsize": 8, "fontweight": "bold", "bbox": {"facecolor": "#E69F00", "edgecolor": "none", "pad": 2}}
    if not fig.axes:  # a table: the line of its title has room
        fig.text(1 - 0.1 / fig.get_figwidth(), 1 - 0.16 / fig.get_figheight(), text, ha="right", va="center", **style)
    else:
        fig.supxlabel(text, **style)  # the layout makes room for it


def describe(fig: Figure) -> str:
    """What is seen, in words for those who do not see it: panels, axes, the names in legends."""
    panels = [axes for axes in fig.axes if axes.axison and axes.get_label() != "<colorbar>"]
    legends = [*fig.legends, *(legend for axes in panels if (legend := axes.get_legend()))]
    seen = {
        f"{len(panels)} panels" if len(panels) > 1 else "Panel": (axes.get_title() for axes in panels),
        "Across": (axes.get_xlabel() for axes in panels),
        "Up": (axes.get_ylabel() for axes in panels),
        "Drawn": (text.get_text() for legend in legends for text in legend.get_texts()),
    }
    parts = {name: "; ".join(dict.fromkeys(filter(None, texts))) for name, texts in seen.items()}
    told = " ".join(f"{name}: {text}." for name, text in parts.items() if text)
    return " ".join(told.replace("$", "").split())


def save(fig: Figure, kind: str) -> bytes:
    """The figure as `svg` or `png`; the same figure gives the same bytes."""
    _lay_out(fig)
    buffer = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    fig.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _lay_out(fig: Figure) -> None:
    """Lay the figure out once; `savefig` would do it for each kind, and draw the figure once more each time."""
    if (engine := fig.get_layout_engine()) is None:
        return
    for axes in fig.axes:
        for spine in axes.spines.values():
            spine.set_in_layout(False)  # its extent is that of the ticks, which are measured anyway
        for axis in (axes.xaxis, axes.yaxis):
            if not axis.get_label_text():
                axis.set_label_coords(0.5, 0.5)  # no label: skip the search for its position
            for ticks in (axis.major, axis.minor):
                if type(ticks.formatter) is LogFormatterSciNotation:
                    ticks.formatter = PowerFormatter(ticks.formatter, axis)
    fig.dpi = plt.rcParams["savefig.dpi"]  # so that the measurements hold for the saved picture
    engine.execute(fig)
    with matplotlib.rc_context({"figure.constrained_layout.use": False}):
        fig.set_layout_engine(None)


class PowerFormatter(LogFormatterSciNotation):
    """Powers of ten as plain text, 10⁻³. Matplotlib writes formulas, which take longer to parse than all drawing."""

    SMALL = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    FORMULA = re.compile(r"\$\\mathdefault\{(?:(?P<factor>[-\d.]+)\\times)?(?P<sign>-?)10\^\{(?P<power>-?\d+)\}\}\$")

    def __init__(self, other: LogFormatterSciNotation, axis: Axis):
        """A formatter of the ticks of `axis` in place of `other`."""
        self.__dict__.update(other.__dict__)
        self.set_axis(axis)

    def __call__(self, x: float, pos: int | None = None) -> str:
        formula = super().__call__(x, pos)
        if not (found := self.FORMULA.fullmatch(formula)):
            return formula
        factor, sign = f"{found['factor']}×" if found["factor"] else "", "−" if found["sign"] else ""
        return f"{factor}{sign}10{found['power'].translate(self.SMALL)}"


def table_figure(table: pd.DataFrame, title: str) -> Figure:
    """A table as a picture, for viewers that show pictures only."""
    plt.rcParams.update(STYLE)
    rows = table.itertuples(index=False)
    cells = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    columns = zip(table.columns, *cells, strict=True)
    letters = np.array([2 + max(len(str(cell)) for cell in column) for column in columns])  # widths
    width, height = max(4.0, 0.075 * letters.sum()), 0.4 + 0.2 * (len(table) + 1)
    fig = Figure(figsize=(width, height), layout=NO_LAYOUT)  # all positions are known
    left = (np.cumsum(letters) - letters) / letters.sum() * (1 - 0.2 / width) + 0.1 / width
    fig.text(0.1 / width, 1 - 0.16 / height, title, fontsize=STYLE["axes.titlesize"], va="center")
    for line, row in enumerate([list(table.columns), *cells]):
        middle = 1 - (0.4 + 0.2 * line) / height
        for place, cell in zip(left, row, strict=True):
            fig.text(place, middle, cell, fontsize=8, va="center", parse_math=False)
        below = middle - 0.1 / height
        fig.add_artist(Line2D([0.1 / width, 1 - 0.1 / width], [below, below], color="#bbbbbb", linewidth=0.5))
    return fig


def federation_figure(rows: Sequence[np.ndarray], labels: np.ndarray | None, groups: Sequence[str]) -> Figure:
    """Samples by client, and by class where `labels` are classes (integers [n]). Few clients with few classes are bars,
    stacked by class; else sizes, with a map of classes by clients below where there are. Groups have colours."""
    sizes, counts = np.array([len(held) for held in rows]), None
    if labels is not None and labels.ndim == 1 and np.issubdtype(labels.dtype, np.integer):
        classes = int(labels.max(initial=0)) + 1
        counts = np.stack([np.bincount(labels[held], minlength=classes) for held in rows], axis=1)  # [classes, clients]
    if counts is not None and len(rows) <= FEW_CLIENTS and len(counts) <= FEW_CLASSES:
        fig, axes = figure(height=2.6)
        _draw_stacks(axes[0, 0], counts, groups)
    elif counts is not None:
        fig, axes = figure(2, height=2.2, sharex=True, height_ratios=[1, 2])
        _draw_sizes(axes[0, 0], sizes, groups)
        _draw_map(fig, axes[1, 0], counts)
    else:
        fig, axes = figure(height=2.4, layout=None if groups else NO_LAYOUT)
        if not groups:  # the most frequent figure: its positions are known
            fig.subplots_adjust(left=0.095, right=0.985, bottom=0.19, top=0.955)
        _draw_sizes(axes[0, 0], sizes, groups)
    axes[0, 0].set(ylabel="training samples")
    axes[-1, 0].set(xlabel="client", xlim=(-0.6, len(rows) - 0.4))
    axes[-1, 0].xaxis.set_major_locator(MaxNLocator(integer=True))
    if groups:
        names = list(dict.fromkeys(groups))
        handles = [Patch(color=COLOURS[i % len(COLOURS)], label=name) for i, name in enumerate(names[:FEW_CLASSES])]
        fig.legend(handles=handles, title="group", loc="outside upper center", ncols=min(6, len(handles)))
    return fig


def _group_colours(groups: Sequence[str]) -> list[str]:
    names = list(dict.fromkeys(groups))
    return [COLOURS[names.index(group) % len(COLOURS)] for group in groups]


def _draw_stacks(axes: Axes, counts: np.ndarray, groups: Sequence[str]) -> None:
    """Bars by client, stacked by class; marks under the bars show the groups."""
    clients, bottom = np.arange(counts.shape[1]), np.zeros(counts.shape[1])
    shades = plt.get_cmap("viridis")(np.linspace(0, 1, len(counts)))
    for number, (held, shade) in enumerate(zip(counts, shades, strict=True)):
        style: dict[str, Any] = {"color": shade, "width": 0.9, "linewidth": 0.3, "edgecolor": "white"}
        axes.bar(clients, held, bottom=bottom, label=str(number), **style)
        bottom += held
    axes.grid(axis="x", visible=False)
    axes.legend(title="class", reverse=True, loc="center left", bbox_to_anchor=(1.0, 0.5), labelspacing=0.2)
    if groups:
        axes.tick_params(axis="x", length=0, pad=9)
        at: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 3}
        axes.scatter(clients, np.full(len(clients), -0.035), s=22, marker="s", c=_group_colours(groups), **at)


def _draw_sizes(axes: Axes, sizes: np.ndarray, groups: Sequence[str]) -> None:
    """Bars by client in the groups' colours; one outline per group where bars would be too thin."""
    colours = np.array(_group_colours(groups) if groups else [COLOURS[0]] * len(sizes))
    if len(sizes) <= FEW_CLIENTS:
        axes.bar(np.arange(len(sizes)), sizes, color=colours, width=0.9, linewidth=0)
    else:
        for colour in dict.fromkeys(colours):
            mine = np.where(colours == colour, sizes, 0)
            axes.stairs(mine, np.arange(len(sizes) + 1) - 0.5, fill=True, color=colour, linewidth=0)
    axes.grid(axis="x", visible=False)


def _draw_map(fig: Figure, axes: Axes, counts: np.ndarray) -> None:
    """Samples by class and client as shades; white means none."""
    norm = PowerNorm(0.5, vmin=0, vmax=max(1, int(counts.max())))  # small counts stay visible
    style: Any = {"cmap": "viridis_r", "aspect": "auto", "origin": "lower", "interpolation": "none"}
    image = axes.imshow(np.ma.masked_equal(counts, 0), norm=norm, **style)
    axes.set(ylabel="class")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(visible=False)
    fig.colorbar(image, ax=axes, label="samples", pad=0.01, ticks=MaxNLocator(4, integer=True))
