"""FGPR (thesis ch. 4, App. C.1 and C.3): parameter errors over rounds, bad starts, weights, robots and engines."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PRINTED_POINT, PUBLISHED, Drawn, band, figure, say_seeds
from fedrepro.studies.fgpr.datasets.gp_draws import unbalanced_sizes

BLUE, RED, GREEN, GREY = *COLOURS[:3], COLOURS[7]
SCENARIOS = {20: "K = 20, N = 5000", 50: "K = 50, N = 2000", 100: "K = 100, N = 800"}
ONE_OVER_T: dict[str, Any] = {"label": "1/T", **PUBLISHED}
PLOTTED = ["seed", "round", "value"]
INDUCING, INPUTS = 20, 21  # of Modular GP: §4.6; of SARCOS
#: the averaged error of a method, not of a device
OVERALL: dict[str, Any] = {"split": "test", "client": -1}
#: row, experiment, algorithm, setting
Arm = tuple[str, str, str, str]


def fig4_2(tables: Tables) -> Drawn:
    """Fig. 4.2: squared error of (θ₁, θ₂) over iterations, RBF; rows: l known, l learned, l learned with Adam."""
    settings = {"known lengthscale": "l known", "learned lengthscale": "l learned", "adam": "l learned, Adam"}
    fig, axes = figure(3, 3, width=8.6, height=2.1, sharex=True, sharey=True)
    drawn = []
    for column, (devices, title) in zip(axes.T, SCENARIOS.items(), strict=True):
        table = tables[f"homogeneous_{devices}"]
        floor = final(table, "error", algorithm="gp_maximum")["value"].median()
        for ax, (setting, label) in zip(column, settings.items(), strict=True):
            own = rows(table, "error", algorithm="fgpr", setting=setting)
            drawn.append(_draw_errors(ax, table, own).assign(scenario=title, setting=label))
            ax.axhline(floor, color=GREEN, linestyle="--", linewidth=1, label="maximum likelihood, l known")
        column[0].set_title(title)
        column[-1].set_xlabel("1 + iteration T")
    for ax, label in zip(axes[:, 0], settings.values(), strict=True):
        ax.set_ylabel(f"{label}\n‖θ̄ − θ*‖²")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig, pd.concat(drawn, ignore_index=True)


def fig4_3(tables: Tables) -> Drawn:
    """Fig. 4.3: the same with 10 to 10,000 samples per device (fewer at small scales); l known."""
    return _three_scenarios(tables, "unbalanced", "error", "‖θ̄ − θ*‖²", [f"K = {k}" for k in SCENARIOS])


def figC_1(tables: Tables) -> Drawn:
    """Fig. C.1: squared error of θ₂ over iterations, Matérn-3/2, one dimension, l known."""
    return _three_scenarios(tables, "matern", "error_noise", "(θ̄₂ − θ₂*)²", list(SCENARIOS.values()))


def _three_scenarios(tables: Tables, experiment: str, metric: str, label: str, titles: Sequence[str]) -> Drawn:
    fig, axes = figure(1, 3, width=8.6, height=2.8, sharey=True)
    drawn = []
    for ax, devices, title in zip(axes[0], SCENARIOS, titles, strict=True):
        table = tables[f"{experiment}_{devices}"]
        own = rows(table, metric, algorithm="fgpr")
        drawn.append(_draw_errors(ax, table, own).assign(scenario=title))
        ax.set(title=title, xlabel="1 + iteration T")
    axes[0, 0].set_ylabel(label)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig, pd.concat(drawn, ignore_index=True)


def _draw_errors(ax: Axes, table: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """The median over runs with bands of 50 and 90 % of them, over iterations T, and 1/(1 + T) from its start."""
    steps = rows(table, "iterations", algorithm="fgpr").drop_duplicates("round").set_index("round")["value"]
    own = own.assign(iteration=own["round"].map(steps).astype(float))
    at = quantile_bands(ax, own, "iteration", "median over runs, 50 and 90 % of them", RED)
    ax.plot(1 + at["iteration"], at["median"].iloc[0] / (1 + at["iteration"]), **ONE_OVER_T)
    ax.set(xscale="log", yscale="log")
    ax.set_ylim(bottom=1e-6)  # a run that crosses the truth dips without meaning anything
    return own[[*PLOTTED, "iteration"]]


def quantile_bands(ax: Axes, own: pd.DataFrame, x: str, label: str, colour: str, **style: Any) -> pd.DataFrame:
    """Draw the median over runs with bands of the middle 50 and 90 % (x + 1 on iteration axes); returns the numbers."""
    levels = {"low_90": 0.05, "low_50": 0.25, "median": 0.5, "high_50": 0.75, "high_90": 0.95}
    found = own.groupby(x)["value"].quantile(list(levels.values())).unstack()
    found.columns = list(levels)
    found = found.reset_index()
    at = found[x] + (x == "iteration")
    for share, alpha in (("90", 0.12), ("50", 0.25)):
        ends = found[f"low_{share}"], found[f"high_{share}"]
        ax.fill_between(at, *ends, color=colour, alpha=alpha, linewidth=0)
    ax.plot(at, found["median"], color=colour, label=label, **style)
    say_seeds(ax, own)
    return found


def fig4_4(tables: Tables) -> Drawn:
    """Fig. 4.4: the sizes of the devices of Example 2, from the thesis' 10 to 10,000, and those of the runs here."""
    fig, axes = figure(1, 3, width=8.6, height=2.6)
    drawn = []
    bins = np.geomspace(10, 10_001, 13)
    for ax, devices in zip(axes[0], SCENARIOS, strict=True):
        stated = pd.Series(unbalanced_sizes(devices, 10, 10_000), name="samples")
        run = tables[f"unbalanced_{devices}.data"].groupby("client").size().rename("samples")
        ax.hist(stated, bins=bins, color=BLUE, edgecolor="white", linewidth=0.4, label="10 to 10,000")
        ax.hist(run, bins=bins, histtype="step", color=RED, label=f"run here: {run.min()} to {run.max():,}")
        ax.set(xscale="log", xlabel="samples per device", title=f"K = {devices}")
        ax.legend(fontsize=7)
        drawn += [
            own.reset_index(drop=True).to_frame().assign(devices=devices, of=of)
            for of, own in (("thesis", stated), ("run", run))
        ]
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
        for ax in (curves, ends):
            say_seeds(ax, own)
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


def fig4_5(tables: Tables) -> Drawn:
    """Fig. 4.5: averaged test RMSE over rounds from a start that takes all data for noise."""
    arms = [
        ("Adam, mini-batches", "bad_start", "adam", BLUE, "-"),
        ("SGD, mini-batches", "bad_start", "sgd", RED, "-"),
        ("SGD, η ~ 1/t", "bad_start", "sgd falling", GREEN, "-"),
        ("Adam, full batch", "bad_start_full_batch", "adam", BLUE, ":"),
        ("SGD, full batch", "bad_start_full_batch", "sgd", RED, ":"),
    ]
    fig, ((ax,),) = figure(1, 1, width=7.6, height=3.2)
    drawn = []
    for label, name, setting, colour, line in arms:
        own = rows(tables[name], "a_rmse", algorithm="fgpr", setting=setting, **OVERALL)
        drawn.append(band(ax, own, "round", label, colour, linestyle=line).assign(arm=label))
    limit, trivial = (
        final(tables["bad_start"], metric, algorithm="gp_maximum", **OVERALL)["value"].mean()
        for metric in ("a_rmse", "a_rmse_trivial")
    )
    ax.axhline(limit, color="#000000", linewidth=0.8, linestyle="--", label="maximum likelihood")
    ax.axhline(trivial, color=GREY, linewidth=0.8, label="training mean")
    ax.axhline(0.2, label="noise", **PUBLISHED)
    ax.set(xlabel="round", ylabel="averaged RMSE")
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return fig, pd.concat(drawn, ignore_index=True)


def fig4_8(tables: Tables) -> Drawn:
    """Fig. 4.8: CURRIN's test RMSE over the weight of the device with high fidelity, by budget."""
    errors = final(tables["weights"], "a_rmse", **OVERALL)
    fig, ((ax,),) = figure(1, 1, width=7.6, height=3.1)
    drawn = []
    for label, variant, colour in (("as released", "published", BLUE), ("steps ten times as long", "more steps", RED)):
        own = errors[(errors["algorithm"] == "fgpr") & errors["setting"].str.startswith(f"{variant},")]
        own = own.assign(weight=own["setting"].str.rpartition("=", expand=True)[2].astype(float))
        drawn.append(quantile_bands(ax, own, "weight", label, colour, marker="o", markersize=3).assign(arm=label))
    for setting, line in (("shared", "--"), ("separate", ":")):
        value = rows(errors, "a_rmse", algorithm="gp_maximum", setting=setting)["value"].median()
        ax.axhline(value, color="#000000", linewidth=1, linestyle=line, label=f"maximum likelihood, {setting}")
    for place, method in ((tables.printed["hf_weight"].value, "fgpr"), (1.0, "separate")):
        value = tables.printed[f"t42_currin_{method}"].value
        ax.plot(
            place, value, color="#000000", label="Table 4.2, printed" if method == "fgpr" else None, **PRINTED_POINT
        )
    ax.set(xlabel="weight of the high fidelity p₁ (1: Separate)", ylabel="test RMSE")
    ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return fig, pd.concat(drawn, ignore_index=True)


def table4_1(tables: Tables) -> pd.DataFrame:
    """Table 4.1, measured on SARCOS: numbers sent by a device for one output, and how often (Modular GP: counted)."""
    table = tables["sarcos"]
    devices = int(table["client"].max()) + 1
    outputs = rows(table, "a_rmse", **OVERALL)["group"].nunique()
    lines: list[tuple[Any, ...]] = []
    for label, algorithm, setting, theory, inference, load in (
        ("DVI", "gp_distributed", "dvi", "none", "approximate", "statistics of inducing points"),
        ("DGP", "gp_distributed", "dgp", "none", "approximate", "predictions at the test inputs"),
        ("FGPR", "fgpr", "", "Theorems 24, 29, 31", "exact", "model parameters"),
        ("Separate", "gp_separate", "", "", "exact", "nothing"),
    ):
        sent = final(table, "uploaded", algorithm=algorithm, setting=setting)
        often = final(table, "exchanges", algorithm=algorithm, setting=setting)["value"]
        times = often.mean() if len(often) else float(sent["round"].max()) * (sent["value"].mean() > 0)
        total = sent["value"].mean() / devices / outputs
        counts = (round(times), round(total / max(1, times)), round(total))
        lines.append((label, theory, inference, load, *counts, "measured"))
    sent = modular_numbers(INDUCING, INPUTS)
    modular = "pseudo-targets, variational density, parameters, likelihood"
    lines.insert(2, ("Modular GP", "none", "approximate", modular, 1, sent, sent, "counted"))
    names = [
        "method",
        "theory",
        "inference",
        "what is sent",
        "exchanges",
        "numbers an exchange",
        "numbers in all",
        "how",
    ]
    return pd.DataFrame(lines, columns=names)


def modular_numbers(inducing: int, inputs: int) -> int:
    """Numbers that a device of Modular GP sends, once: inducing inputs, pseudo-targets and the mean of the variational
    density, the lower half of its covariance, a lengthscale per input, variance, noise and the bound (Table 4.1)."""
    return inducing * inputs + 2 * inducing + inducing * (inducing + 1) // 2 + inputs + 3


def table4_3(tables: Tables) -> pd.DataFrame:
    """Table 4.3: errors × 10 on SARCOS, mean ± sd over seeds; with the trivial predictor and maximum likelihood."""
    arms = [
        ("FGPR", "sarcos", "fgpr", ""),
        ("FGPR, ARD", "sarcos_ard", "fgpr", ""),
        ("Separate, equal budget", "sarcos", "gp_separate", ""),
        ("FGPR's prior to convergence", "sarcos", "gp_maximum", "shared"),
        ("Separate to convergence", "sarcos", "gp_maximum", "separate"),
        ("Neural, FedAvg", "sarcos_network", "fedavg", ""),
        *((f"Neural, Ditto λ = {s}", "sarcos_network", "ditto", f"strength={s}") for s in ("0.01", "0.1", "1.0")),
        ("DVI, at the server", "sarcos", "gp_distributed", "dvi"),
        ("DGP, at the server", "sarcos", "gp_distributed", "dgp"),
    ]
    return _errors_by_output(tables, arms, "output")


def tableC_1(tables: Tables) -> pd.DataFrame:
    """Table C.1: errors × 10 on engines that took no part; with the trivial predictor and maximum likelihood."""
    arms = [
        ("FGPR", "cmapss", "fgpr", ""),
        ("FGPR, time as share of life", "cmapss_life", "fgpr", ""),
        ("FGPR's prior to convergence", "cmapss", "gp_maximum", "shared"),
        ("Separate to convergence", "cmapss", "gp_maximum", "separate"),
        ("Neural, FedAvg", "cmapss_network", "fedavg_transfer", ""),
    ]
    polynomial, lines = tables["cmapss_polynomial"], []
    for basis in ("monomial", "legendre"):
        errors = final(polynomial, "a_rmse", **OVERALL)
        own = errors[errors["group"].str.contains(basis)]
        by_degree = own.assign(degree=own["group"].str.rpartition(" ")[2].astype(int)).groupby("degree")["value"].mean()
        least = int(by_degree.idxmin())
        for degree in sorted({least, *by_degree.index.intersection([1, 10, 20])}):
            line = {"method": f"Polynomial, {basis}, p = {degree}" + " (best)" * (degree == least)}
            for sensor in ("2", "7"):
                group = f"{sensor}, {basis}, degree {degree}"
                for metric in ("a_rmse", "sd_rmse"):
                    line[f"{metric}, sensor {sensor}"] = _spread(polynomial, metric, group=group)
            lines.append(line)
    return pd.concat([_errors_by_output(tables, arms, "sensor"), pd.DataFrame(lines)], ignore_index=True)


def _errors_by_output(tables: Tables, arms: Sequence[Arm], kind: str) -> pd.DataFrame:
    """One line per method: averaged RMSE and sd of RMSE, both × 10, of every output of the first arm's experiment."""
    _, first, algorithm, _ = arms[0]
    outputs = list(dict.fromkeys(rows(tables[first], "a_rmse", **OVERALL)["group"]))
    trivial: Arm = ("mean of the training targets", first, algorithm, "")
    lines = []
    for arm in (*arms, trivial):
        label, name, algorithm, setting = arm
        averaged = "rmse_central" if algorithm == "gp_distributed" else "a_rmse_trivial" if arm is trivial else "a_rmse"
        line = {"method": label}
        for output in outputs:
            where = {"algorithm": algorithm, "setting": setting, "group": output}
            line[f"a_rmse, {kind} {output}"] = _spread(tables[name], averaged, **where)
            line[f"sd_rmse, {kind} {output}"] = "" if arm is trivial else _spread(tables[name], "sd_rmse", **where)
        lines.append(line)
    return pd.DataFrame(lines)


def _spread(table: pd.DataFrame, metric: str, **where: Any) -> str:
    values = 10 * final(table, metric, **OVERALL, **where)["value"]
    return f"{values.mean():.2f} ± {values.std():.2f}" if len(values) else ""


def budget(tables: Tables) -> pd.DataFrame:
    """RMSE of one shared prior and of each device's own, at equal budgets and at convergence: sharing or steps."""
    converged = {"to convergence": (("gp_maximum", "shared"), ("gp_maximum", "separate"))}
    weights = {
        label: tuple(("fgpr", f"{variant},last_weight={w}") for w in ("0.1667", "1.0"))
        for label, variant in (("steps ten times as long", "more steps"), ("as released", "published"))
    }
    sarcos = {"equal budget": (("fgpr", ""), ("gp_separate", ""))}
    cases: Any = [
        ("CURRIN", "weights", "", weights),
        *((f"SARCOS {o}", "sarcos", o, sarcos) for o in ("1", "3", "5", "7")),
    ]
    lines = []
    for title, name, group, budgets in cases:
        errors = final(tables[name], "a_rmse", group=group, **OVERALL)
        for label, arms in (budgets | converged).items():
            both = [rows(errors, "a_rmse", algorithm=a, setting=s).set_index("seed")["value"] for a, s in arms]
            gain = both[1] - both[0]
            line = {"data": title, "budget": label}
            line |= {c: f"{v.mean():.3f} ± {v.std():.3f}" for c, v in zip(("shared", "separate"), both, strict=True)}
            lines.append(line | {"gain by sharing": f"{gain.mean():+.3f} ± {gain.std():.3f}"})
    return pd.DataFrame(lines)
