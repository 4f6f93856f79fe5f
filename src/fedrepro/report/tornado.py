"""The figure of an explanation: a claim's number in the main run and under each alternative, with intervals."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fedrepro.evidence.verdicts import DIRECTION, NOT_REPRODUCED, REPRODUCED
from fedrepro.report.plotting import COLOURS, figure

SHADES = {REPRODUCED: COLOURS[2], DIRECTION: COLOURS[5], NOT_REPRODUCED: COLOURS[1]}
OTHER = COLOURS[7]
LONGEST = 60  # characters of a label


def tornado(record: Mapping[str, Any]) -> Figure:
    """One line per alternative and pair, those that move the number most on top; `record` as in
    evidence/explanations.py."""
    run = [one for one in (*record["alternatives"], *record["pairs"]) if one["mean"] is not None]
    run.sort(key=lambda one: -abs(one["moved"] or 0.0))
    rows = [{**record["main"], "label": "main run"}, *({**one, "label": _label(one)} for one in run)]
    fig, grid = figure(width=7.0, height=1.0 + 0.24 * len(rows))
    axes = grid[0, 0]
    target = record["target"]
    if target["low"] is not None:
        axes.axvspan(target["low"], target["high"], color=COLOURS[2], alpha=0.15, linewidth=0)
        axes.axvline((target["low"] + target["high"]) / 2, color="#000000", linestyle=(0, (1, 2)), linewidth=1.2)
    if rows[0]["mean"] is not None:
        axes.axvline(rows[0]["mean"], color="#555555", linewidth=0.8)
    for y, one in enumerate(rows):
        if one["mean"] is None:
            continue
        colour = SHADES.get(one["verdict"], OTHER)
        if one["low"] is not None and np.isfinite([one["low"], one["high"]]).all():
            axes.plot([one["low"], one["high"]], [y, y], color=colour, linewidth=3, solid_capstyle="butt")
        axes.plot(one["mean"], y, marker="o", markersize=4, color=colour)
    axes.set_yticks(range(len(rows)), [row["label"] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(target["label"])
    axes.xaxis.set_major_locator(MaxNLocator(5))
    for name, colour in {**SHADES, "undecided": OTHER}.items():
        axes.plot([], [], marker="o", color=colour, linewidth=3, label=name)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


def _label(one: Mapping[str, Any]) -> str:
    pairs = zip(one["keys"], one["other"].split(" | "), strict=True)
    text = " with ".join(f"{key.rpartition('.')[2]} = {_last(other)}" for key, other in pairs)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _last(other: str) -> str:
    """Of several settings, the last parts of their keys."""
    return ", ".join(
        part.rpartition(".")[2] if not part.replace(".", "").lstrip("-").isdigit() else part
        for part in other.split(", ")
    )
