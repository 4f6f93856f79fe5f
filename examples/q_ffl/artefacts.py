"""q-FFL (arXiv 1905.10497): the synthetic rows of Table 1 and the distribution behind them."""

import numpy as np
import pandas as pd
from fedrepro.studies.q_ffl.measures import STATISTICS

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, Drawn, figure

COLUMNS = dict(zip(STATISTICS, ("average", "worst 10 %", "best 10 %", "variance"), strict=True))
PRINTED = {"worst 10 %": "worst", "variance": "variance"}  # column → its numbers in published.csv


def table1(tables: Tables) -> pd.DataFrame:
    lines = []
    for q in sorted(tables["synthetic"]["grid.q"].unique()):
        line = {"q": f"{q:g}"}
        for metric, column in COLUMNS.items():
            values = rows(tables["synthetic"], metric, **{"grid.q": q})["value"]
            line[column] = f"{values.mean():.1f} ({values.std():.1f})"
        for column, of in PRINTED.items():
            line[f"{column}, printed"] = f"{tables.printed[f'{of}_q{q:g}'].value:g}"
        lines.append(line)
    return pd.DataFrame(lines)


def devices(tables: Tables) -> Drawn:
    table = tables["synthetic"]
    found = final(table[table["client"] >= 0], "accuracy", split="test")
    fig, ((ax,),) = figure(width=5.2, height=3.2)
    edges, drawn = np.linspace(0, 100, 21), []
    for (q, own), colour in zip(found.groupby("grid.q"), COLOURS, strict=False):
        counts, _ = np.histogram(100 * own["value"], edges)
        ax.stairs(counts, edges, color=colour, label=f"q = {q:g}", linewidth=1.6)
        drawn.append(pd.DataFrame({"q": q, "from": edges[:-1], "devices": counts}))
    ax.set(xlabel="test accuracy of a device (%)", ylabel="devices")
    ax.legend()
    return fig, pd.concat(drawn)
