"""FGPR on pairs of functions (thesis §4.3.3, §4.6, App. C.4): Table 4.2, Fig. 4.1, 4.6 and 4.7, budget, calibration."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, figure, say_seeds
from fedrepro.studies.fgpr.datasets.multi_fidelity import FUNCTIONS

NAMES = {"currin": "CURRIN", "park": "PARK", "branin": "BRANIN", "hartmann": "Hartmann-3D", "borehole": "Borehole"}
#: rows printed in Table 4.2 → their name in published.csv
PRINTED = {"FGPR": "fgpr", "Separate": "separate", "AR": "ar", "Deep": "deep", "Modular GP": "modular"}
#: (algorithm, setting) → row
ROWS = {
    ("fgpr", "published"): "FGPR",
    ("fgpr", "tenfold"): "FGPR, steps ten times as long",
    ("baseline", "shared"): "FGPR's θ to convergence",
    ("baseline", "shared ard"): "FGPR's θ to convergence, ARD",
    ("separate", "published"): "Separate",
    ("separate", "tenfold"): "Separate, steps ten times as long",
    ("baseline", "separate"): "Separate to convergence",
    ("baseline", "separate floor"): "Separate to convergence, noise ≥ 1e-4",
    ("baseline", "separate ard"): "Separate to convergence, ARD",
    ("baseline", "ar"): "AR",
    ("baseline", "ar isotropic"): "AR, isotropic",
    ("baseline", "deep"): "Deep",
    ("baseline", "modular"): "Modular GP",
    ("baseline", "modular isotropic"): "Modular GP, isotropic",
    ("baseline", "limit"): "limit: the high fidelity at all samples, ARD",
}
NLPD_MOST = 6.0  # end of the calibration figure's axis: a few methods that are sure and wrong would hide the others
#: rows shown in the calibration figure
CALIBRATED = (
    *("FGPR", "FGPR's θ to convergence", "Separate", "Separate to convergence", "Separate to convergence, ARD"),
    *("AR", "Deep", "Modular GP"),
)


FIRST = pd.DataFrame({"seed": [0]})  # curves are those of the first seed


def _arm(table: pd.DataFrame, algorithm: str, setting: str) -> pd.DataFrame:
    return table[(table["algorithm"] == algorithm) & (table["setting"] == setting)]


def _values(table: pd.DataFrame, metric: str) -> pd.Series:
    """One value per run, of the last round."""
    return final(table, metric, split="test", group="", client=-1)["value"]


def _spread(values: pd.Series, digits: int = 3) -> str:
    if values.empty:
        return ""
    return f"{values.mean():.{digits}f}" + (f" ± {values.std():.{digits}f}" if len(values) > 1 else "")


def _errors(table: pd.DataFrame) -> dict[str, str]:
    """The error of every row, of the prior that all methods with rounds start from, and of the trivial predictor."""
    found = {name: _spread(_values(_arm(table, *arm), "a_rmse")) for arm, name in ROWS.items()}
    mine = _arm(table, "fgpr", "published")
    start = rows(mine, "a_rmse", split="test", group="", client=-1, round=0)["value"]
    ends = {"no training: FGPR's first θ": start, "trivial: training mean": _values(mine, "a_rmse_trivial")}
    return found | {name: _spread(values) for name, values in ends.items()}


def _printed(tables: Tables, function: str, method: str) -> str:
    return str(tables.printed[f"t42_{function}_{PRINTED[method]}"]) if method in PRINTED else ""


def table4_2(tables: Tables) -> pd.DataFrame:
    """One row per method, two columns per function: printed and ours, mean ± sd over runs."""
    columns: dict[str, list[str]] = {}
    for function, title in NAMES.items():
        errors = _errors(tables[f"multi_fidelity_{function}"])
        columns["method"] = list(errors)
        columns[f"{title}, printed"] = [_printed(tables, function, method) for method in errors]
        columns[title] = list(errors.values())
    return pd.DataFrame(columns)


def scaling(tables: Tables) -> pd.DataFrame:
    """BRANIN and Borehole: inputs as fractions of their domain, or in their own units."""
    both = {"inputs in [0, 1]": "multi_fidelity_{}", "own units": "multi_fidelity_units_{}"}
    return _side_by_side(tables, both, ("branin", "borehole"))


def design(tables: Tables) -> pd.DataFrame:
    """Every function: the released recipe, or one device per fidelity with uniform samples and other steps."""
    both = {"released recipe": "multi_fidelity_{}", "uniform points": "multi_fidelity_uniform_{}"}
    return _side_by_side(tables, both, tuple(NAMES))


def _side_by_side(tables: Tables, both: dict[str, str], functions: Sequence[str]) -> pd.DataFrame:
    """The methods of the second experiment in both, with the values printed in Table 4.2."""
    parts = []
    for function in functions:
        errors = {column: _errors(tables[name.format(function)]) for column, name in both.items()}
        methods = [method for method, value in list(errors.values())[1].items() if value]
        printed = [_printed(tables, function, method) for method in methods]
        own = {column: [values[method] for method in methods] for column, values in errors.items()}
        parts.append(pd.DataFrame({"function": NAMES[function], "method": methods, "printed": printed, **own}))
    return pd.concat(parts, ignore_index=True)


def noise_floor(tables: Tables) -> pd.DataFrame:
    """CURRIN: the gain by sharing at convergence over the least noise variance that the fits may have."""
    errors = final(tables["multi_fidelity_floor"], "a_rmse", split="test", group="", client=-1)
    pairs = errors["setting"].str.extract(r"^(?P<fit>[^,]+),noise_floor=(?P<floor>.+)$")
    wide = errors.assign(fit=pairs["fit"], floor=pairs["floor"].astype(float)).pivot_table(
        index=["floor", "seed"], columns="fit", values="value"
    )
    lines = []
    for floor, own in wide.groupby("floor"):
        gain = 100 * (1 - own["shared"] / own["separate"])
        line = {"least noise variance": f"{floor:g}", "Separate to convergence": _spread(own["separate"])}
        line["FGPR's θ to convergence"] = _spread(own["shared"])
        lines.append(line | {"gain by sharing, %": _quartiles(gain), "runs with a gain": f"{(gain > 0).mean():.0%}"})
    return pd.DataFrame(lines)


def _quartiles(values: pd.Series) -> str:
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.0f} [{low:.0f}, {high:.0f}]"


def budget_multi_fidelity(tables: Tables) -> pd.DataFrame:
    """FGPR's gain over Separate by sharing and by budget: one row per function, in percent."""
    words = {
        "gain_published": "FGPR over Separate, published protocol",
        "gain_budget": "Separate to convergence over Separate",
        "gain_sharing": "sharing, both to convergence",
        "gain_sharing_ard": "sharing, both to convergence, ARD",
    }
    lines = []
    for function, title in NAMES.items():
        table = tables[f"multi_fidelity_{function}"]
        alone, shared = (tables.printed[f"t42_{function}_{method}"].value for method in ("separate", "fgpr"))
        line = {"function": title, "printed gain of FGPR over Separate, %": f"{100 * (1 - shared / alone):.0f}"}
        for metric, label in words.items():
            found = 100 * final(table, metric)["value"]
            line[f"{label}, %"] = _quartiles(found)
        lines.append(line)
    return pd.DataFrame(lines)


def calibration(tables: Tables) -> Drawn:
    """Coverage of 95 % intervals, NLPD and CRPS of every method on every function."""
    lines = []
    for function, title in NAMES.items():
        for (algorithm, setting), name in ROWS.items():
            mine = _arm(tables[f"multi_fidelity_{function}"], algorithm, setting)
            for metric in ("coverage_50", "coverage_80", "coverage_90", "coverage_95", "nlpd", "crps", "a_rmse"):
                found = _values(mine, metric)
                spread = {"mean": found.mean(), "sd": found.std(), "median": found.median(), "runs": len(found)}
                lines.append({"function": title, "method": name, "metric": metric, **spread})
    numbers = pd.DataFrame(lines)
    fig, axes = figure(3, 1, width=8.0, height=2.3, sharex=True)
    ((coverage,), (nlpd,), (crps,)) = axes
    labels = {"coverage_95": "coverage of 95 % intervals", "nlpd": "NLPD (median)", "crps": "CRPS (median)"}
    for ax, (metric, label) in zip(axes[:, 0], labels.items(), strict=True):
        for i, name in enumerate(CALIBRATED):
            own = numbers[(numbers["metric"] == metric) & (numbers["method"] == name)]
            value = own["mean"] if metric == "coverage_95" else own["median"]
            at = np.arange(len(own)) + 0.08 * (i - (len(CALIBRATED) - 1) / 2)
            look = {"marker": "osD^vP*X"[i], "color": COLOURS[i], "linestyle": "", "markersize": 5, "label": name}
            ax.plot(at, value.clip(upper=NLPD_MOST) if metric == "nlpd" else value, clip_on=False, **look)
            for x, above in zip(at, value, strict=True):
                if metric == "nlpd" and above > NLPD_MOST:
                    ax.annotate(
                        f"{above:.0f}", (x, NLPD_MOST), (0, 4), textcoords="offset points", ha="center", fontsize=5
                    )
        ax.set_ylabel(label)
        for function in NAMES:
            say_seeds(ax, tables[f"multi_fidelity_{function}"])
        for edge in np.arange(len(NAMES) - 1) + 0.5:
            ax.axvline(edge, color="#bbbbbb", linewidth=0.6)
        ax.grid(axis="x", visible=False)
        ax.margins(y=0.12)
    coverage.axhline(0.95, **PUBLISHED)
    nlpd.set_ylim(top=NLPD_MOST)
    crps.set_yscale("log")
    crps.set_xticks(np.arange(len(NAMES)), NAMES.values())
    fig.legend(*coverage.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, numbers


def held(tables: Tables) -> Drawn:
    """CURRIN: the error over the number of samples of the high-fidelity client."""
    table = tables["multi_fidelity_held"]
    errors = final(table, "a_rmse", split="test", group="", client=-1)
    pairs = errors["setting"].str.extract(r"^(?P<method>[^,]+),held=(?P<held>\d+)$")
    errors = errors.assign(method=pairs["method"], held=pairs["held"].astype(int))
    settings = {"separate": "separate", "shared": "shared", "ar": "ar isotropic", "modular": "modular isotropic"}
    fig, ((ax,),) = figure(width=6.4, height=3.6)
    lines = []
    for i, (method, setting) in enumerate(settings.items()):
        own = errors[errors["method"] == method].groupby("held")["value"]
        by_size = own.agg(rmse="median", low="min", high="max", runs="count").reset_index()
        ends = [by_size["rmse"] - by_size["low"], by_size["high"] - by_size["rmse"]]
        lines.append(by_size.assign(method=ROWS["baseline", setting]))
        look = {"marker": "o", "markersize": 3, "capsize": 2, "color": COLOURS[i], "label": ROWS["baseline", setting]}
        ax.errorbar(by_size["held"] * (1 + 0.02 * (i - 1.5)), by_size["rmse"], ends, **look)
    trivial = final(table, "a_rmse_trivial", split="test", group="", client=-1)["value"].median()
    say_seeds(ax, errors)
    ax.axhline(trivial, label="trivial: training mean", **PUBLISHED)
    sizes = sorted(errors["held"].unique())
    ax.set(xscale="log", yscale="log", xlabel="samples of the high-fidelity client", ylabel="test RMSE")
    ax.set_xticks(sizes, map(str, sizes))
    ax.minorticks_off()
    ax.legend(fontsize=7)
    return fig, pd.concat([*lines, pd.DataFrame({"method": ["trivial: training mean"], "rmse": [trivial]})])


def fig4_1(tables: Tables) -> Drawn:
    """Fig. 4.1: sin and −sin by one network (FedAvg) and by one prior (FGPR), the first seed."""
    methods = {"network, FedAvg": "opposite_sines_network", "FGPR": "opposite_sines"}
    return _draw_pair(tables, methods, 10.0, lambda x: (np.sin(x), -np.sin(x)))


def example_c4(tables: Tables) -> Drawn:
    """App. C.4: y = 3x and y = x by one slope (FedAvg) and by one prior (FGPR), the first seed."""
    methods = {"y = βx, FedAvg": "two_lines_linear", "FGPR": "two_lines"}
    return _draw_pair(tables, methods, 1.0, lambda x: (3 * x, x))


def _draw_pair(
    tables: Tables, methods: dict[str, str], width: float, truth: Callable[[pd.Series], tuple[pd.Series, pd.Series]]
) -> Drawn:
    fig, axes = figure(2, len(methods), width=7.0, height=1.9, sharex=True, sharey="row")
    drawn = []
    for column, (method, name) in zip(axes.T, methods.items(), strict=True):
        table = tables[name]
        for k, ax in enumerate(column):
            curve = last_curve(table, k)
            x = curve["x"] * width
            ax.plot(x, truth(x)[k], color="#000000", linestyle="", marker=".", markersize=2.5, label="truth")
            ax.plot(x, curve["mean"], color=COLOURS[1], label="fit")
            if "sd" in curve:
                low, high = curve["mean"] - 1.96 * curve["sd"], curve["mean"] + 1.96 * curve["sd"]
                ax.fill_between(x, low, high, color=COLOURS[1], alpha=0.15, linewidth=0)
            say_seeds(ax, FIRST)
            error = final(table, "rmse", split="test", client=k)["value"]
            ax.set_title(f"{method}, device {k + 1}: test RMSE {error.mean():.2g}")
            drawn.append(curve.assign(x=x, device=k + 1, method=method, truth=truth(x)[k]))
        column[-1].set_xlabel("x")
    axes[0, 0].legend(loc="best", fontsize=7)
    return fig, pd.concat(drawn, ignore_index=True)


def last_curve(table: pd.DataFrame, client: int) -> pd.DataFrame:
    """A client's last prediction along x, first seed: columns mean, sd (if any) and x."""
    own = table[table["metric"].str.startswith("curve_") & (table["client"] == client)]
    own = own[(own["seed"] == own["seed"].min()) & (own["round"] == own["round"].max())]
    wide = own.pivot_table(index="step", columns="metric", values="value")
    return wide.rename(columns=lambda name: name.removeprefix("curve_")).reset_index(drop=True)


def _draw_curve(axes: Axes, tables: Tables, function: str, algorithm: str, setting: str, client: int) -> pd.DataFrame:
    """Draw a method's prediction for one client in the first run, with the truth and the samples."""
    table, samples = tables[f"one_dimensional_{function}"], tables[f"one_dimensional_{function}.data"]
    drawn = last_curve(_arm(table, algorithm, setting), client)[["x", "mean", "sd"]]
    own = samples[samples["client"] == client]
    fidelities = FUNCTIONS[function]
    (low, high), f = fidelities.domain[0], fidelities.levels[client]

    def truth(x: pd.Series) -> np.ndarray:
        return f((low + (high - low) * x.to_numpy())[:, None])

    slope, offset = np.polyfit(truth(own["x0"]), own["y"], 1)  # the client's standardisation
    ends = {"low": drawn["mean"] - 1.96 * drawn["sd"], "high": drawn["mean"] + 1.96 * drawn["sd"]}
    drawn = drawn.assign(truth=slope * truth(drawn["x"]) + offset, **ends)
    x = low + (high - low) * drawn["x"]
    axes.fill_between(x, drawn["low"], drawn["high"], color="#999999", alpha=0.4, linewidth=0, label="95 % interval")
    axes.plot(x, drawn["truth"], color=COLOURS[1], linewidth=1.0, linestyle="--", label="truth")
    axes.plot(x, drawn["mean"], color="#000000", linewidth=1.2, label="mean")
    at = low + (high - low) * own["x0"]
    axes.plot(at, own["y"], "o", color=COLOURS[0], markersize=2.5, label="samples")
    say_seeds(axes, FIRST)
    axes.set(xlabel="x")
    return drawn.assign(function=function, method=algorithm, setting=setting, client=client)


def fig4_6(tables: Tables) -> Drawn:
    """Fig. 4.6: both fidelities of both examples under the one prior that FGPR learned."""
    fig, axes = figure(2, 2, width=8.2, height=2.5)
    parts = []
    for row, function in enumerate(("linear", "nonlinear")):
        for client, level in enumerate(("low", "high")):
            ax = axes[row, client]
            parts.append(_draw_curve(ax, tables, function, "fgpr", "", client))
            ax.set_title(f"Example {row + 1} ({function}), {level} fidelity, FGPR")
        axes[row, 0].set_ylabel("y, standardised")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(parts, ignore_index=True)


def fig4_7(tables: Tables) -> Drawn:
    """Fig. 4.7: Example 2 from the high fidelity's samples alone, and by methods that use both levels."""
    arms = {
        "Separate, published protocol": ("separate", ""),
        "Separate to convergence": ("baseline", "separate"),
        "FGPR": ("fgpr", ""),
        "FGPR's θ to convergence": ("baseline", "shared"),
        "AR": ("baseline", "ar"),
        "Deep": ("baseline", "deep"),
    }
    fig, axes = figure(3, 2, width=8.2, height=2.3, sharex=True, sharey=True)
    parts = []
    for ax, (name, arm) in zip(axes.flat, arms.items(), strict=True):
        parts.append(_draw_curve(ax, tables, "nonlinear", *arm, 1))
        error = final(_arm(tables["one_dimensional_nonlinear"], *arm), "a_rmse", split="test", client=-1)["value"]
        ax.set_title(f"{name} (RMSE {_spread(error, 2)})")
        ax.set_ylim(-4, 5)
    for ax in axes[:, 0]:
        ax.set_ylabel("y, standardised")
    for ax in axes[:-1].flat:
        ax.set_xlabel("")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return fig, pd.concat(parts, ignore_index=True)
