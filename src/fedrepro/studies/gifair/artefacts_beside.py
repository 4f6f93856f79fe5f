"""GIFAIR-FL, beside the thesis' tables: devices, trade-off, tuning, communication, controls, feasibility."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedrepro.evidence.tables import final, rows
from fedrepro.report.plotting import figure
from fedrepro.studies.gifair.measures import choose, largest_spread, methods, smallest_spread
from fedrepro.studies.gifair.names import (
    METHODS,
    TITLES,
    chosen_setting,
    percent,
    present,
    rows_of,
    sent_bytes,
    short_name,
)
from fedrepro.studies.gifair.printed import TEST_SAMPLES, pairs

Tables = dict[str, pd.DataFrame]
Drawn = tuple[Figure, pd.DataFrame]

#: classes of FEMNIST-skewed, and those on a device (§2.5.1)
CLASSES, HELD = 10, 5
RUNS = 5  # of every printed number
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def devices(tables: Tables) -> Drawn:
    """Accuracy over devices at the chosen settings: a box a method (quartiles; whiskers to the 5th and 95th of 100)."""
    fig, axes = figure(3, 3, width=10.5, height=2.9)
    drawn = []
    for ax, (name, title) in zip(axes.flat, TITLES.items(), strict=False):
        named = methods(tables[name])
        each = final(named[named["client"] >= 0], "accuracy", split="test")
        shown = present(tables[name])
        for place, method in enumerate(shown):
            own = each[(each["algorithm"] == method) & (each["setting"] == chosen_setting(tables[name], method))]
            values = 100 * own["value"].to_numpy()
            colour = METHODS[method][1]
            style = {"color": colour, "linewidth": 1.2}
            ax.boxplot(
                [values],
                positions=[place],
                widths=0.6,
                whis=(5, 95),
                showfliers=False,
                boxprops=style,
                whiskerprops=style,
                capprops=style,
                medianprops=style,
            )
            ax.plot(place, values.mean(), "D", color=colour, markersize=3.5)
            quantiles = {f"q{100 * q:02.0f}": np.quantile(values, q) for q in QUANTILES}
            drawn.append({"data": title, "method": method, "mean": values.mean(), **quantiles})
        ax.set_xticks(range(len(shown)), [short_name(m) for m in shown], rotation=40, ha="right", fontsize=7)
        ax.set_title(title)
    for ax in axes[:, 0]:
        ax.set_ylabel("test accuracy of a device, %")
    for ax in list(axes.flat)[len(TITLES) :]:
        ax.axis("off")
    return fig, pd.DataFrame(drawn)


def tradeoff(tables: Tables) -> Drawn:
    """Mean accuracy against spread (of groups: discrepancy) for every setting of every grid, with the Pareto front."""
    fig, axes = figure(3, 3, width=10.5, height=2.9)
    drawn = []
    for ax, (name, title) in zip(axes.flat, TITLES.items(), strict=False):
        table = tables[name]
        own = table[(table["split"] == "derived") & table["metric"].isin(["accuracy", "unfairness"])]
        points = own.pivot_table(index=["algorithm", "setting"], columns="metric", values="value", sort=False)
        points = points.reset_index().assign(data=title)
        points["front"] = front(points["accuracy"].to_numpy(), points["unfairness"].to_numpy())
        for method, mine in points.groupby("algorithm", sort=False):
            marker = "s" if method in ("ditto", "gifair_per") else "o"
            label = METHODS[method][0]
            hollow = "none" if method in ("gifair_exact", "term_group") else METHODS[method][1]
            style = {"s": 26, "marker": marker, "edgecolor": METHODS[method][1], "facecolor": hollow, "label": label}
            ax.scatter(mine["unfairness"], mine["accuracy"], **style)
        best = points[points["front"]].sort_values("unfairness")
        ax.plot(best["unfairness"], best["accuracy"], color="#777777", linewidth=0.9, zorder=1)
        ax.set_title(title)
        grouped = (table["metric"] == "discrepancy").any()
        ax.set_xlabel("discrepancy of the groups, points" if grouped else "spread over devices, points")
        drawn.append(points)
    for ax in axes[:, 0]:
        ax.set_ylabel("mean test accuracy, %")
    found = {label: handle for ax in axes.flat for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    spare = list(axes.flat)[len(TITLES) :]
    for ax in spare:
        ax.axis("off")
    spare[0].legend(found.values(), found.keys(), loc="upper left")
    return fig, pd.concat(drawn, ignore_index=True)


def front(accuracy: np.ndarray, unfairness: np.ndarray) -> np.ndarray:
    """Which points no other is better than in both [n]."""
    better = (accuracy[None] >= accuracy[:, None]) & (unfairness[None] <= unfairness[:, None])
    strictly = (accuracy[None] > accuracy[:, None]) | (unfairness[None] < unfairness[:, None])
    return ~(better & strictly).any(axis=1)


def tuning(tables: Tables) -> pd.DataFrame:
    """Every candidate of every grid: its validation numbers, what it then gives on test data, and the choice."""
    lines = []
    for name, title in TITLES.items():
        table = tables[name]
        derived = table[table["split"] == "derived"]
        candidates = choose(derived).set_index(["algorithm", "setting"])
        for (method, setting), own in candidates.iterrows():
            if method not in METHODS:
                continue
            test = {
                metric: rows(derived, metric, algorithm=method, setting=setting)["value"].mean()
                for metric in ("accuracy", "unfairness")
            }
            lines.append(
                {
                    "data": title,
                    "method": METHODS[method][0],
                    "setting": setting,
                    "validation mean": round(own["accuracy"], 2),
                    "validation spread or discrepancy": round(own["unfairness"], 2),
                    "as good as FedAvg": "yes" if own["similar"] else "no",
                    "chosen": "chosen" if own["chosen"] else "",
                    "test mean": round(test["accuracy"], 2),
                    "test spread or discrepancy": round(test["unfairness"], 2),
                }
            )
    return pd.DataFrame(lines)


def communication(tables: Tables) -> pd.DataFrame:
    """What a round sends, by method: bytes down and up of all its devices, and what is not FedAvg's."""
    lines = []
    for name, title in TITLES.items():
        table = tables[name]
        sent = {m: [sent_bytes(table, m, way) for way in ("bytes_down", "bytes_up")] for m in present(table)}
        base = sent["fedavg"]
        for method, (down, up) in sent.items():
            line = {"data": title, "method": METHODS[method][0], "bytes down": down, "bytes up": up}
            more = [way - plain for way, plain in zip((down, up), base, strict=True)]
            lines.append({**line, "more than FedAvg, down": more[0], "more than FedAvg, up": more[1]})
    return pd.DataFrame(lines)


def controls(tables: Tables) -> pd.DataFrame:
    """What the fairness is owed to: last local models without λ, stale and exact ranks, λ_max itself."""
    lines = []
    for name in ("mnist_skewed", "fmnist_skewed"):
        table = tables[name]
        arms = {
            "FedAvg": ("fedavg", ""),
            "FedAvg, the devices' last local models (GIFAIR-FL-Per, λ = 0)": ("gifair_per", "fraction=0"),
            "GIFAIR-FL-Per, λ = 0.9 λ_max": ("gifair_per", "fraction=0.9"),
            "GIFAIR-FL-Global, λ = 0.9 λ_max, stale ranks": ("gifair_global", "fraction=0.9"),
            "GIFAIR-FL-Global, λ = 0.9 λ_max, exact ranks": ("gifair_exact", ""),
        }
        for label, (method, setting) in arms.items():
            own = rows_of(table, method, setting)
            line = {"data": TITLES[name], "arm": label}
            line |= {m: percent(rows(own, m)["value"]) for m in ("accuracy", "spread", "excess")}
            limit, agreement = rows(own, "lambda_max")["value"], rows(own, "rank_agreement")["value"]
            line["λ_max"] = f"{limit.mean():.3g}" if len(limit) else ""
            line["stale against exact losses, rank correlation"] = f"{agreement.mean():.2f}" if len(agreement) else ""
            lines.append(line)
    return pd.DataFrame(lines)


def feasibility(_: Tables) -> pd.DataFrame:
    """Every published pair of mean and spread beside the least that the finite test set gives and, for one model on
    FEMNIST-skewed, the most that classes of different difficulty give."""
    lines = []
    for table, samples in TEST_SAMPLES.items():
        for method, ((mean, _), (spread, sd)) in pairs(table).items():
            least = 100 * smallest_spread(mean / 100, samples)
            one_model = table == "table2_2" and method not in ("ditto", "gifair_per")
            most = 100 * largest_spread(mean / 100, samples, CLASSES, HELD) if one_model else np.inf
            allowed = 2 * sd / np.sqrt(RUNS)
            verdict = "below what the test set alone gives" if spread < least - allowed else ""
            verdict = "above what one model can have" if spread > most + allowed else verdict
            lines.append(
                {
                    "table": table.replace("table", "Table ").replace("_", "."),
                    "method": METHODS[method][0],
                    "mean": mean,
                    "spread": spread,
                    "test samples of a device": round(samples),
                    "least spread": f"{least:.2f}",
                    "most, one model": f"{most:.2f}" if one_model else "",
                    "printed spread is": verdict or "possible",
                }
            )
    return pd.DataFrame(lines)
