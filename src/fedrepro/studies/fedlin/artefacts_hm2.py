"""HM2 of the federated linear models (thesis ch. 3): Tables 3.2 and 3.3, Fig. 3.4, calibration, new devices."""

import math
from functools import partial

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, figure, say_seeds
from fedrepro.studies.fedlin.artefacts import POINTS, spread
from fedrepro.studies.fedlin.datasets.hm2 import SPARSE
from fedrepro.studies.fedlin.measures import HALF_WIDTHS, phi_intervals

CASES = ("I", "II", "III")
#: Table 3.2: (algorithm, setting) → its row; the thesis prints the first
ROWS3_2 = {
    ("hm2", "lasso"): "Lasso (HM2)",
    ("hm2", "lasso narrow"): "Lasso (HM2), narrow prior",
    ("hm2", "ridge"): "Ridge (HM2), σ²/λ",
    ("hm2", "ridge printed"): "Ridge (HM2), σ/λ",
    ("reference", "separate"): "Separate, least squares",
    ("reference", "lasso"): "Lasso, centralised",
    ("reference", "ridge"): "Ridge, centralised",
}
#: Table 3.3: (algorithm, setting) → its row; the ids of its printed error and of its included predictors by school
ROWS3_3 = {
    ("hm2", "lasso"): ("Lasso (HM2)", "t33_lasso_armse", ("t33_lasso_school1", "t33_lasso_school2")),
    ("hm2", "lasso all"): ("Lasso (HM2), predicting with all", None, ()),
    ("hm2", "lasso centred"): ("Lasso (HM2), with intercepts", None, ()),
    ("hm2", "ridge"): ("Ridge (HM2)", "t33_ridge_armse", ("t33_ridge_school1", "t33_ridge_school2")),
    ("hm2", "ridge all"): ("Ridge (HM2), predicting with all", None, ()),
    ("hm2", "ridge centred"): ("Ridge (HM2), with intercepts", None, ()),
    ("hm2", "ridge printed"): ("Ridge (HM2), σ/λ", None, ()),
    ("reference", "lasso"): ("Lasso (centralised)", "t33_central_lasso_rmse", ("t33_central_lasso_included",)),
    ("reference", "ridge"): ("Ridge (centralised)", "t33_central_ridge_rmse", ("t33_central_ridge_included",)),
    ("reference", "separate"): ("Separate, least squares", None, ()),
}
_spread = partial(spread, none="", beyond=math.inf)  # nothing where there is no finite number


def _arm(table: pd.DataFrame, algorithm: str, setting: str) -> pd.DataFrame:
    return table[(table["algorithm"] == algorithm) & (table["setting"] == setting)]


def _by_seed(table: pd.DataFrame, metric: str, reduce: str = "mean") -> pd.Series:
    """One number per seed: a metric's rows of the last round over devices."""
    return final(table, metric).groupby("seed")["value"].agg(reduce)


def table3_2(tables: Tables) -> pd.DataFrame:
    """Table 3.2 with further methods, the limit and the trivial predictor."""
    lines = []
    for case in CASES:
        table = tables[f"hm2_{case.lower()}"]
        for arm, name in ROWS3_2.items():
            mine = _arm(table, *arm)
            if mine.empty:
                continue
            line = {"case": case, "method": name}
            in_print = arm == ("hm2", "lasso")  # the only row in the thesis
            columns = {"A-RMSE": ("armse", 4, final(mine, "a_rmse", split="test")["value"])}
            columns |= {f"{w} incl.": (w, 3, _by_seed(mine, f"{w}_inclusion")) for w in ("correct", "false")}
            for column, (what, digits, own) in columns.items():
                shown = f"{tables.printed[f't32_{case}_{what}'].value:.3f}" if in_print else ""
                line |= {f"printed {column}": shown, column: _spread(own, digits)}
            z = _by_seed(mine, "smallest_z", "min")
            lines.append({**line, "smallest z": f"{z.min():.0f}" if len(z) else ""})
            if in_print and case == "II":
                roots = final(mine, "a_rmse_scarce")["value"]
                lines.append({"case": case, "method": f"{name}, 2 scarce devices", "A-RMSE": _spread(roots, 4)})
        bounds = {"trivial: training mean": "trivial", "limit: the true θ (noise of the targets)": "floor"}
        for name, what in bounds.items():
            values = final(table, f"a_rmse_{what}", split="test", setting="separate")["value"]
            lines.append({"case": case, "method": name, "A-RMSE": _spread(values, 4)})
    return pd.DataFrame(lines).fillna("")


def table3_3(tables: Tables) -> pd.DataFrame:
    """Table 3.3 in both courses, in sds of the training grades."""
    lines = []
    for course in ("portuguese", "maths"):
        table = tables[f"student_{course}"]
        for (algorithm, setting), (name, error, counts) in ROWS3_3.items():
            mine = _arm(table, algorithm, setting)
            included = final(mine, "included")
            both = [included] if algorithm == "reference" else [included[included["client"] == k] for k in (0, 1)]
            target = "" if error is None else f"{tables.printed[error].value:.3f}"
            each, together = (_spread(final(mine, f"{m}_scaled")["value"]) for m in ("a_rmse", "rmse"))
            line = {"course": course, "method": name, "printed error": target, "A-RMSE": each, "RMSE": together}
            for school, own in enumerate(both, start=1):
                shown = f"{tables.printed[counts[school - 1]].value:.0f}" if counts else ""
                line |= {f"printed incl. {school}": shown, f"incl. school {school}": _spread(own["value"], 1)}
            lines.append({**line, "also central": _spread(final(mine, "agreement")["value"], 2)})
        central = _arm(table, "reference", "lasso")
        each, together = (_spread(final(central, f"{m}_trivial_scaled")["value"]) for m in ("a_rmse", "rmse"))
        lines.append({"course": course, "method": "trivial: training mean", "A-RMSE": each, "RMSE": together})
    return pd.DataFrame(lines).fillna("")


def fig3_4(tables: Tables) -> Drawn:
    """Fig. 3.4: posterior means and 90 % intervals of one run; left θ of device 1 in Case I, right φ of a hierarchy."""
    fig, axes = figure(1, 2, width=8.8, height=3.2)
    table = tables["hm2_i"]
    mine = table[(table["client"] == 0) & (table["seed"] == table["seed"].min()) & (table["setting"] == "lasso")]
    parts = [final(mine, f"theta_{name}").set_index("step")["value"].rename(name) for name in ("mean", "low", "high")]
    theta = pd.concat(parts, axis=1).sort_index().assign(true=SPARSE)
    ax, at = axes[0, 0], np.arange(len(theta))
    off = theta[["mean", "low", "high"]].sub(theta["true"], axis=0)
    ends = [off["mean"] - off["low"], off["high"] - off["mean"]]
    ax.errorbar(at, off["mean"], ends, fmt="o", capsize=3, markersize=4)
    say_seeds(ax, mine)
    ax.axhline(0, **PUBLISHED)
    ax.set_xticks(at, [f"$\\theta_{{1,{j + 1}}}$\n= {v:g}" for j, v in enumerate(theta["true"])])
    ax.set(title=r"Case I, $\theta_1$, lasso", ylabel="posterior − truth, 90 % interval")
    found = phi_intervals(tables["hm2_hierarchy"])
    phi = found[found["seed"] == found["seed"].min()].sort_values("step")
    ax, at, width = axes[0, 1], np.arange(len(phi)), HALF_WIDTHS[90]
    ax.errorbar(at, phi["mean"], width * phi["sd"], fmt="o", capsize=3, markersize=4, label="mean and 90 % interval")
    ax.scatter(at, phi["true"], marker="x", color=COLOURS[1], zorder=3, label="truth")
    ax.set_xticks(at, [f"${name}_{j + 1}$" for name in (r"\mu", r"\log\tau") for j in range(len(phi) // 2)])
    ax.set(title=r"hierarchy, $\phi$")
    say_seeds(ax, phi)
    ax.legend()
    phi = phi.assign(low=phi["mean"] - width * phi["sd"], high=phi["mean"] + width * phi["sd"])
    both = [theta.reset_index().assign(panel="theta of device 1, Case I"), phi.assign(panel="phi, hierarchy")]
    drawn = pd.concat(both, ignore_index=True).rename(columns={"step": "component"})
    return fig, drawn[["panel", "component", "mean", "low", "high", "true"]]


def calibration(tables: Tables) -> Drawn:
    """Coverage of the 50, 80, 90 and 95 % intervals over all runs, of θ and of φ: one panel per case."""
    cases = {f"Case {case}": (f"hm2_{case.lower()}", ["lasso", "ridge"]) for case in CASES}
    panels = {**cases, "hierarchy": ("hm2_hierarchy", [""])}
    fig, axes = figure(2, len(panels), width=9.6, height=2.3, sharex=True, sharey="row")
    lines = []
    levels = np.array(list(HALF_WIDTHS))
    for line, (prefix, of) in enumerate((("coverage", "θ"), ("phi_coverage", "φ"))):
        for ax, (panel, (experiment, settings)) in zip(axes[line], panels.items(), strict=True):
            ax.axhline(0, **PUBLISHED)
            for i, setting in enumerate(settings):
                mine = _arm(tables[experiment], "hm2", setting)
                say_seeds(ax, mine)
                each = [100 * _by_seed(mine, f"{prefix}_{level}") for level in levels]
                means = np.array([own.mean() for own in each])
                errors = np.array([own.sem() if len(own) > 1 else 0.0 for own in each])
                shifted = np.arange(len(levels)) + 0.16 * (2 * i - len(settings) + 1)  # so that bars do not overlap
                look = {"color": COLOURS[i if setting else 2], "linestyle": "", "label": setting or "normal", **POINTS}
                ax.errorbar(shifted, means - levels, errors, **look)
                arm = ", ".join(filter(None, (panel, setting)))
                lines += [
                    {"of": of, "arm": arm, "level": level, "coverage": mean, "standard error": error, "runs": len(own)}
                    for level, mean, error, own in zip(levels.tolist(), means, errors, each, strict=True)
                ]
            ax.set_title(f"{of}, {panel}")
            ax.set_xticks(np.arange(len(levels)), [f"{level}" for level in levels])
        axes[line, 0].set_ylabel("actual − nominal, points")
    for ax in axes[1]:
        ax.set_xlabel("nominal coverage, %")
    handles = {label: handle for ax in axes[0] for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    fig.legend(handles.values(), [f"{label} prior" for label in handles], loc="outside lower center", ncols=3)
    return fig, pd.DataFrame(lines)


def new_device(tables: Tables) -> Drawn:
    """The test error of a new device over its number of samples, from different starts."""
    table = tables["hm2_hierarchy"]
    rounds = table["round"].max()
    ways = {
        "from q(φ)": ("hm2", "q(φ)", rounds, COLOURS[0], "-"),
        "from the mean of q, gradient descent": ("hm2", "mean of q", rounds, COLOURS[5], "-"),
        "from FedAvg, gradient descent": ("fedavg", "model", rounds, COLOURS[1], "--"),
        "from zero, gradient descent": ("fedavg", "model", 0, COLOURS[3], "-"),
        "limit: true law and noise": ("hm2", "limit", rounds, COLOURS[2], ":"),
    }
    fig, ((ax,),) = figure(width=6.6, height=3.6)
    lines = []
    for name, (algorithm, group, at, colour, style) in ways.items():
        own = rows(table, "newcomer_rmse", algorithm=algorithm, group=group, round=at).groupby("step")["value"]
        # with as many samples as coefficients, errors of least squares have no mean: median and quartiles
        by_n = own.agg(rmse="median", low=lambda v: v.quantile(0.25), high=lambda v: v.quantile(0.75), runs="count")
        ends = [by_n["rmse"] - by_n["low"], by_n["high"] - by_n["rmse"]]
        ax.errorbar(np.arange(len(by_n)), by_n["rmse"], ends, color=colour, linestyle=style, label=name, **POINTS)
        lines.append(by_n.rename_axis("samples").reset_index().assign(way=name))
    sizes, zero, name = lines[0]["samples"].tolist(), lines[3]["rmse"].iloc[0], "trivial: 0, the mean of all targets"
    ax.axhline(zero, label=name, **PUBLISHED)
    ax.set_xticks(np.arange(len(sizes)), map(str, sizes))
    ax.set(yscale="log", xlabel="samples of the new device", ylabel="test RMSE")
    say_seeds(ax, rows(table, "newcomer_rmse"))
    ax.legend(fontsize=7)
    trivial = pd.DataFrame({"samples": sizes, "rmse": zero, "way": name})
    return fig, pd.concat([*lines, trivial], ignore_index=True)
