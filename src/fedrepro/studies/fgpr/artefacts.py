"""FGPR (thesis ch. 4 and App. C): parameter errors over rounds, illustrations, robots and engines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedrepro.evidence.tables import final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, band, figure
from fedrepro.studies.fgpr.artefacts_multi_fidelity import (
    budget_multi_fidelity,
    calibration,
    design,
    fig4_6,
    fig4_7,
    held,
    scaling,
    table4_2,
)

#: of multi-fidelity modelling, drawn in fgpr_multi_fidelity.py
__all__ = ["budget_multi_fidelity", "calibration", "design", "fig4_6", "fig4_7", "held", "scaling", "table4_2"]

Tables = dict[str, pd.DataFrame]
Drawn = tuple[Figure, pd.DataFrame]
BLUE, RED, GREEN, GREY = *COLOURS[:3], COLOURS[7]
SCENARIOS = {20: "K = 20, N = 5000", 50: "K = 50, N = 2000", 100: "K = 100, N = 800"}


# --- one prior for opposite functions --------------------------------------------------------------------------------


def fig4_1(tables: Tables) -> Drawn:
    """Fig. 4.1: sin and −sin by one network (FedAvg) and by one prior (FGPR), the first seed."""
    methods = {"network, FedAvg": "opposite_sines_network", "FGPR": "opposite_sines"}
    return _pair(tables, methods, 10.0, "x", lambda x: (np.sin(x), -np.sin(x)))


def example_c4(tables: Tables) -> Drawn:
    """App. C.4: y = 3x and y = x by one slope (FedAvg) and by one prior (FGPR), the first seed."""
    methods = {"y = βx, FedAvg": "two_lines_linear", "FGPR": "two_lines"}
    return _pair(tables, methods, 1.0, "x", lambda x: (3 * x, x))


def _pair(tables: Tables, methods: dict[str, str], width: float, label: str, truth) -> Drawn:
    fig, axes = figure(2, len(methods), width=7.0, height=1.9, sharex=True, sharey="row")
    drawn = []
    for column, (method, name) in zip(axes.T, methods.items(), strict=True):
        table = tables[name]
        for k, ax in enumerate(column):
            curve = _curve(table, k)
            x = curve["x"] * width
            ax.plot(x, truth(x)[k], color="#000000", linestyle="", marker=".", markersize=2.5, label="truth")
            ax.plot(x, curve["mean"], color=RED, label="fit")
            if "sd" in curve:
                low, high = curve["mean"] - 1.96 * curve["sd"], curve["mean"] + 1.96 * curve["sd"]
                ax.fill_between(x, low, high, color=RED, alpha=0.15, linewidth=0)
            error = final(table, "rmse", split="test", client=k)["value"]
            ax.set_title(f"{method}, device {k + 1}: test RMSE {error.mean():.2g}")
            drawn.append(curve.assign(x=x, device=k + 1, method=method, truth=truth(x)[k]))
        column[-1].set_xlabel(label)
    axes[0, 0].legend(loc="best", fontsize=7)
    return fig, pd.concat(drawn, ignore_index=True)


def _curve(table: pd.DataFrame, client: int) -> pd.DataFrame:
    """The last prediction along x of one device, first seed: columns x, mean and, where there is one, sd."""
    own = table[table["metric"].str.startswith("curve_") & (table["client"] == client)]
    own = own[(own["seed"] == own["seed"].min()) & (own["round"] == own["round"].max())]
    wide = own.pivot_table(index="step", columns="metric", values="value")
    return wide.rename(columns=lambda name: name.removeprefix("curve_")).reset_index(drop=True)


# --- parameter errors over rounds ------------------------------------------------------------------------------------


def fig4_2(tables: Tables) -> Drawn:
    """Fig. 4.2: squared error of (θ₁, θ₂) over rounds, RBF; a row with l known, one with l learned, one with Adam."""
    settings = {
        "known lengthscale": "l known",
        "learned lengthscale": "l learned",
        "adam": "l learned, Adam",
    }
    fig, axes = figure(3, 3, width=8.6, height=2.1, sharex=True, sharey=True)
    drawn = []
    for column, (devices, title) in zip(axes.T, SCENARIOS.items(), strict=True):
        table = tables[f"homogeneous_{devices}"]
        floor = final(table, "error", algorithm="gp_maximum")["value"].median()
        for ax, (setting, label) in zip(column, settings.items(), strict=True):
            own = rows(table, "error", algorithm="fgpr", setting=setting)
            drawn.append(_errors(ax, own).assign(scenario=title, setting=label))
            ax.axhline(floor, color=GREEN, linestyle="--", linewidth=1, label="maximum likelihood, l known")
            if ax in axes[:, 0]:
                ax.set_ylabel(f"{label}\n‖θ̄ − θ*‖²")
        column[0].set_title(title)
        column[-1].set_xlabel("round")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig, pd.concat(drawn, ignore_index=True)


def fig4_3(tables: Tables) -> Drawn:
    """Fig. 4.3: the same where devices hold 10 to 10,000 samples (fewer at small scales); l known."""
    return _three(tables, "unbalanced", "error", "‖θ̄ − θ*‖²", [f"K = {k}" for k in SCENARIOS])


def figC_1(tables: Tables) -> Drawn:
    """Fig. C.1: squared error of θ₂ over rounds, Matérn-3/2, one dimension, l known."""
    return _three(tables, "matern", "error_noise", "(θ̄₂ − θ₂*)²", list(SCENARIOS.values()))


def _three(tables: Tables, study: str, metric: str, label: str, titles: list[str]) -> Drawn:
    fig, axes = figure(1, 3, width=8.6, height=2.8, sharey=True)
    drawn = []
    for ax, devices, title in zip(axes[0], SCENARIOS, titles, strict=True):
        own = rows(tables[f"{study}_{devices}"], metric, algorithm="fgpr")
        drawn.append(_errors(ax, own).assign(scenario=title))
        ax.set(title=title, xlabel="round")
    axes[0, 0].set_ylabel(label)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig, pd.concat(drawn, ignore_index=True)


def _errors(ax: Axes, own: pd.DataFrame) -> pd.DataFrame:
    """Every seed's error as a line of its own, their median, and 1/T from the median start."""
    for _, one in own.groupby("seed"):
        ax.plot(one["round"], one["value"], color=BLUE, linewidth=0.6, alpha=0.5)
    middle = own.groupby("round")["value"].median()
    ax.plot(middle.index, middle, color=RED, linewidth=1.8, label="median over seeds")
    ax.plot(middle.index, middle.iloc[0] / (1 + middle.index), label="1/T", **PUBLISHED)
    ax.set_yscale("log")
    ax.set_ylim(bottom=1e-6)  # a run that crosses the truth dips without meaning anything
    return own[["seed", "round", "value"]]


def fig4_4(tables: Tables) -> Drawn:
    """Fig. 4.4: the sizes of the devices of one run of Example 2."""
    fig, axes = figure(1, 3, width=8.6, height=2.4)
    drawn = []
    for ax, devices in zip(axes[0], SCENARIOS, strict=True):
        sizes = tables[f"unbalanced_{devices}.data"].groupby("client").size()
        bins = np.geomspace(sizes.min(), sizes.max() + 1, 12)
        ax.hist(sizes, bins=bins, color=BLUE, edgecolor="white", linewidth=0.4)
        ax.set(xscale="log", xlabel="samples of a device", title=f"K = {devices}")
        drawn.append(sizes.rename("samples").reset_index().assign(devices=devices))
    axes[0, 0].set_ylabel("devices")
    return fig, pd.concat(drawn, ignore_index=True)


def local_steps(tables: Tables) -> Drawn:
    """Remark 26 and Theorem 29: E local steps at equal T, and a part of the devices taking part."""
    fig, axes = figure(1, 3, width=9.0, height=2.8)
    table = tables["local_steps"]
    periods = {int(s.removeprefix("period=")): s for s in table["setting"].unique()}
    last = int(table["round"].max())
    drawn = []
    for colour, (period, setting) in zip(COLOURS, sorted(periods.items()), strict=False):
        label = "one-shot" if period > last else f"E = {period}"
        own = rows(table, "error", setting=setting)
        middle = own.groupby("round")["value"].median()
        axes[0, 0].plot(middle.index, middle, color=colour, label=label)
        late = rows(table, "late_error", setting=setting)["value"]
        axes[0, 1].scatter([label] * len(late), late, s=10, color=colour, alpha=0.7)
        axes[0, 1].scatter([label], [late.median()], s=180, marker="_", color=colour)
        drawn.append(own[["seed", "round", "value"]].assign(arm=label))
    axes[0, 0].set(yscale="log", xlabel="iteration T", ylabel="‖θ̄ − θ*‖², median", title="E local steps, K = 50")
    axes[0, 0].legend(fontsize=7)
    axes[0, 1].set(yscale="log", ylabel="late error, every seed", title="where they end")
    axes[0, 1].tick_params(axis="x", rotation=40)
    for name, label, colour in (("homogeneous_20", "all 20 devices", BLUE), ("sampled", "5 of 20 devices", RED)):
        own = rows(tables[name], "error", algorithm="fgpr", setting="known lengthscale")
        band(axes[0, 2], own, "round", label, colour)
        drawn.append(own[["seed", "round", "value"]].assign(arm=label))
    axes[0, 2].set(yscale="log", xlabel="round", title="synchronous or sampled, K = 20")
    axes[0, 2].legend()
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
    fig, axes = figure(1, 1, width=6.4, height=3.2)
    drawn = []
    for label, name, setting, colour, line in arms:
        own = rows(tables[name], "a_rmse", algorithm="fgpr", setting=setting, split="test", client=-1)
        drawn.append(band(axes[0, 0], own, "round", label, colour, linestyle=line).assign(arm=label))
    limit = final(tables["bad_start"], "a_rmse", algorithm="gp_maximum", split="test", client=-1)["value"].mean()
    trivial = final(tables["bad_start"], "a_rmse_trivial", algorithm="gp_maximum", split="test", client=-1)
    axes[0, 0].axhline(limit, color="#000000", linewidth=0.8, linestyle="--", label="maximum likelihood")
    axes[0, 0].axhline(trivial["value"].mean(), color=GREY, linewidth=0.8, label="training mean")
    axes[0, 0].axhline(0.2, label="noise", **PUBLISHED)
    axes[0, 0].set(xlabel="round", ylabel="averaged RMSE")
    axes[0, 0].legend(fontsize=7, ncols=2)
    return fig, pd.concat(drawn, ignore_index=True)


def fig4_8(tables: Tables) -> Drawn:
    """Fig. 4.8: CURRIN's test RMSE over the weight of the device with high fidelity, by budget."""
    table = tables["weights"]
    fig, axes = figure(1, 1, width=6.0, height=3.1)
    drawn = []
    for label, variant, colour in (("as released", "published", BLUE), ("steps ten times as long", "more steps", RED)):
        own = final(table, "a_rmse", algorithm="fgpr", split="test", client=-1)
        own = own[own["setting"].str.startswith(f"{variant},")]
        own = own.assign(weight=own["setting"].str.rpartition("=", expand=True)[2].astype(float))
        drawn.append(band(axes[0, 0], own, "weight", label, colour, marker="o", markersize=3).assign(arm=label))
    for setting, line in (("shared", "--"), ("separate", ":")):
        value = final(table, "a_rmse", algorithm="gp_maximum", setting=setting, split="test", client=-1)["value"]
        label = f"maximum likelihood, {setting}"
        axes[0, 0].axhline(value.median(), color="#000000", linewidth=1, linestyle=line, label=label)
    axes[0, 0].set(xlabel="weight of the high fidelity p₁ (1: Separate)", ylabel="test RMSE")
    axes[0, 0].legend(fontsize=7)
    return fig, pd.concat(drawn, ignore_index=True)


# --- tables ----------------------------------------------------------------------------------------------------------


def table4_1(tables: Tables) -> pd.DataFrame:
    """Table 4.1 as measured on SARCOS: numbers that a device sends for one output, and how often."""
    table = tables["sarcos"]
    devices = int(table["client"].max()) + 1
    outputs = rows(table, "a_rmse", split="test", client=-1)["group"].nunique()
    lines = []
    for label, algorithm, setting, inference, load in (
        ("FGPR", "fgpr", "", "exact", "model parameters"),
        ("DVI", "gp_distributed", "dvi", "approximate", "statistics of inducing points"),
        ("DGP", "gp_distributed", "dgp", "approximate", "predictions at the test inputs"),
        ("Separate", "gp_separate", "", "exact", "nothing"),
    ):
        sent = final(table, "uploaded", algorithm=algorithm, setting=setting)
        often = final(table, "exchanges", algorithm=algorithm, setting=setting)["value"]
        times = often.mean() if len(often) else float(sent["round"].max()) * (sent["value"].mean() > 0)
        total = sent["value"].mean() / devices / outputs
        lines.append(
            {
                "method": label,
                "inference": inference,
                "what is sent": load,
                "exchanges": round(times),
                "numbers an exchange": round(total / max(1, times)),
                "numbers in all": round(total),
            }
        )
    return pd.DataFrame(lines)


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
    return _errors_by_output(tables, arms, "output", "sarcos", central=("gp_distributed",))


def tableC_1(tables: Tables) -> pd.DataFrame:
    """Table C.1: errors × 10 on engines that took no part; with the trivial predictor and maximum likelihood."""
    arms = [
        ("FGPR", "cmapss", "fgpr", ""),
        ("FGPR, time as share of life", "cmapss_life", "fgpr", ""),
        ("FGPR's prior to convergence", "cmapss", "gp_maximum", "shared"),
        ("Separate to convergence", "cmapss", "gp_maximum", "separate"),
        ("Neural, FedAvg", "cmapss_network", "fedavg_transfer", ""),
    ]
    table = _errors_by_output(tables, arms, "sensor", "cmapss")
    polynomial = tables["cmapss_polynomial"]
    lines = []
    for basis in ("monomial", "legendre"):
        names = polynomial["group"][polynomial["group"].str.contains(basis)].unique()
        degrees = sorted({int(name.rpartition(" ")[2]) for name in names})
        chosen = [d for d in degrees if d in (1, 10, 20)]
        errors = final(polynomial, "a_rmse", split="test", client=-1)
        own = errors[errors["group"].str.contains(basis)]
        best = own.assign(degree=own["group"].str.rpartition(" ")[2].astype(int)).groupby("degree")["value"].mean()
        least = int(best.idxmin())
        for degree in sorted({*chosen, least}):
            line = {"method": f"Polynomial, {basis}, p = {degree}" + " (best)" * (degree == least)}
            for sensor in ("2", "7"):
                group = f"{sensor}, {basis}, degree {degree}"
                for metric in ("a_rmse", "sd_rmse"):
                    line[f"{metric}, sensor {sensor}"] = _spread(polynomial, metric, group=group)
            lines.append(line)
    return pd.concat([table, pd.DataFrame(lines)], ignore_index=True)


def budget(tables: Tables) -> pd.DataFrame:
    """How much of FGPR's gain over Separate is sharing, and how much is steps: RMSE at two budgets and at none.

    sharing: Separate less FGPR at the same budget; steps: what FGPR itself gains from there to convergence.
    """
    lines = []
    for title, name, group in [
        ("CURRIN", "weights", ""),
        *((f"SARCOS {o}", "sarcos", o) for o in ("1", "3", "5", "7")),
    ]:
        table = tables[name]
        pairs = {"to convergence": (("gp_maximum", "shared"), ("gp_maximum", "separate"))}
        if name == "weights":
            for label, variant in (("as released", "published"), ("steps ten times as long", "more steps")):
                arms = tuple(("fgpr", f"{variant},last_weight={w}") for w in ("0.1667", "1.0"))
                pairs = {label: arms} | pairs
        else:
            pairs = {"equal budget": (("fgpr", ""), ("gp_separate", ""))} | pairs
        for label, arms in pairs.items():
            shared, separate = (
                final(table, "a_rmse", algorithm=a, setting=s, split="test", client=-1, group=group).set_index("seed")[
                    "value"
                ]
                for a, s in arms
            )
            gain = separate - shared
            lines.append(
                {
                    "data": title,
                    "budget": label,
                    "shared": f"{shared.mean():.3f} ± {shared.std():.3f}",
                    "separate": f"{separate.mean():.3f} ± {separate.std():.3f}",
                    "gain by sharing": f"{gain.mean():+.3f} ± {gain.std():.3f}",
                }
            )
    return pd.DataFrame(lines)


def _errors_by_output(tables: Tables, arms, kind: str, of: str, central: tuple[str, ...] = ()) -> pd.DataFrame:
    """A line a method: averaged RMSE and sd of RMSE, both × 10, of every output."""
    outputs = list(dict.fromkeys(rows(tables[of], "a_rmse", split="test", client=-1)["group"]))
    lines = []
    for label, name, algorithm, setting in arms:
        line = {"method": label}
        for output in outputs:
            where = {"algorithm": algorithm, "setting": setting, "group": output}
            metric = "rmse_central" if algorithm in central else "a_rmse"
            line[f"a_rmse, {kind} {output}"] = _spread(tables[name], metric, **where)
            line[f"sd_rmse, {kind} {output}"] = _spread(tables[name], "sd_rmse", **where)
        lines.append(line)
    trivial = {"method": "mean of the training targets"}
    for output in outputs:
        trivial[f"a_rmse, {kind} {output}"] = _spread(
            tables[of], "a_rmse_trivial", algorithm=arms[0][2], setting="", group=output
        )
        trivial[f"sd_rmse, {kind} {output}"] = ""
    return pd.DataFrame([*lines, trivial])


def _spread(table: pd.DataFrame, metric: str, **where) -> str:
    """10 · mean ± 10 · sd over seeds of a metric's last test value."""
    values = 10 * final(table, metric, split="test", client=-1, **where)["value"]
    return f"{values.mean():.2f} ± {values.std():.2f}" if len(values) else ""
