"""Federated SGLD (ICLR 2021 submission): Fig. 6, and what the paper promises, proves or leaves open."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, band, figure, log_axis, say_seeds
from fedrepro.studies.sgld.measures import DELTA

BLUE, RED, GREEN = COLOURS[:3]  # the paper: baseline blue, ours red
#: label, arms to subtract, algorithm, its setting, its setting for the network (None: not run), colour, line
Arm = tuple[str, tuple[str, ...], str, str, str | None, str, str]


def fig6_low(tables: Tables) -> Drawn:
    """Fig. 6, upper: training loss of low noise and of FedPD, and the difference to FedPD seed by seed."""
    arms: list[Arm] = [
        ("FedPD", (), "fedpd", "server start", "", BLUE, "-"),
        ("FedPD, own start", (), "fedpd", "own start", None, BLUE, ":"),
        ("SGLD, Algorithm 2", ("FedPD",), "fed_sgld", "decreasing", "low decreasing", RED, "-"),
        ("SGLD, fixed steps", ("FedPD",), "fed_sgld", "fixed", "low fixed", GREEN, "--"),
    ]
    return _fig6(tables["low"], tables["mlp"], arms)


def fig6_high(tables: Tables) -> Drawn:
    """Fig. 6, lower: training loss of high noise, with and without averaging; the differences of the paper's own
    comparison (Algorithm 2 against fixed steps) and at equal steps."""
    fixed, falling = "noise, fixed steps", "noise, decreasing steps"
    arms: list[Arm] = [
        (falling, (), "fedpd_noisy", "decreasing", "high decreasing", BLUE, "-"),
        (fixed, (), "fedpd_noisy", "fixed", "high fixed", BLUE, "--"),
        ("SGLD, Algorithm 2", (fixed, falling), "fed_sgld", "decreasing", "high decreasing", RED, "-"),
        ("SGLD, fixed steps", (fixed,), "fed_sgld", "fixed", "high fixed", GREEN, "--"),
    ]
    return _fig6(tables["high"], tables["mlp"], arms)


def _fig6(softmax: pd.DataFrame, network: pd.DataFrame, arms: list[Arm]) -> Drawn:
    """Losses above, differences to other arms below, for two steps of softmax regression and the network. Lines are
    medians over seeds, bands the middle half."""
    panels = [(f"softmax, η = {lr}", softmax, {arm: f"{arm[3]},lr={lr}" for arm in arms}) for lr in (0.05, 0.01)]
    panels.append(("network, η = 0.05", network, {arm: arm[4] for arm in arms if arm[4] is not None}))
    fig, axes = figure(2, 3, width=9.4, height=2.7, sharex=True)
    summaries = []
    for (upper, lower), (title, table, settings) in zip(axes.T, panels, strict=True):
        losses = rows(table, "loss", split="train", client=-1)
        curves = {
            arm[0]: rows(losses, "loss", algorithm=arm[2], setting=setting)[["seed", "round", "value"]]
            for arm, setting in settings.items()
        }
        reach = 1e-9  # of the differences, without the spikes of the first rounds
        for label, others, _, _, _, colour, line in settings:
            summary = _middle_half(upper, curves[label], label, colour, line)
            summaries.append(summary.assign(panel=title, arm=label, shown="loss"))
            for other, look in zip(others, ((colour, line), (COLOURS[4], "-.")), strict=False):
                gap = curves[label].merge(curves[other], on=["seed", "round"], suffixes=("", "_other"))
                gap = gap.assign(value=gap["value"] - gap["value_other"])
                summary = _middle_half(lower, gap, f"{label} − {other}", *look)
                summaries.append(summary.assign(panel=title, arm=f"{label} − {other}", shown="difference"))
                late = summary[summary["round"] > summary["round"].max() / 4]
                reach = max(reach, late["high"].max(), -late["low"].min())
        upper.set_title(title)
        log_axis(upper, "y")
        lower.axhline(0, color="#555555", linewidth=0.8)
        lower.set(xlabel="round", ylim=(-1.15 * reach, 1.15 * reach))
    axes[0, 0].set_ylabel("training loss")
    axes[1, 0].set_ylabel("less the baseline's\n(below 0: better)")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, fontsize=7)
    fig.legend(*axes[1, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=7)
    return fig, pd.concat(summaries, ignore_index=True)


def _middle_half(ax: Axes, curves: pd.DataFrame, label: str, colour: str, line: str) -> pd.DataFrame:
    """Draw the median over seeds and a faint band of their middle half."""
    quartiles = curves.groupby("round")["value"].quantile([0.25, 0.5, 0.75]).unstack()
    quartiles.columns = pd.Index(["low", "median", "high"])
    ax.plot(quartiles.index, quartiles["median"], color=colour, linestyle=line, label=label)
    ax.fill_between(quartiles.index, quartiles["low"], quartiles["high"], color=colour, alpha=0.12, linewidth=0)
    say_seeds(ax, curves)
    return quartiles.reset_index()


def smoothness(tables: Tables) -> Drawn:
    """Roughness of the training loss, for each arm and seed."""
    titles = {"low": "low noise, β = 1e-4", "high": "high noise, β = 0.5"}
    drawn = pd.concat([rows(tables[name], "roughness").assign(panel=title) for name, title in titles.items()])
    names = {"fedpd": "FedPD", "fedpd_noisy": "noise only", "fed_sgld": "SGLD"}
    setting = drawn["setting"].str.rpartition(",lr=", expand=True)
    drawn = drawn.assign(arm=drawn["algorithm"].map(names) + ", " + setting[0], lr=setting[2].astype(float))
    drawn = drawn[["panel", "arm", "lr", "seed", "value"]].reset_index(drop=True)
    fig, axes = figure(1, 2, width=9.0, height=2.9)
    for ax, (title, panel) in zip(axes[0], drawn.groupby("panel", sort=False), strict=True):
        arms = list(dict.fromkeys(panel["arm"]))
        for shift, (lr, own) in zip((-0.16, 0.16), panel.groupby("lr"), strict=False):
            place = own["arm"].map(arms.index) + shift
            colour = BLUE if shift < 0 else RED
            ax.scatter(own["value"], place, s=9, color=colour, alpha=0.55, linewidth=0, label=f"η = {lr:g}")
            middle = own.groupby("arm")["value"].median()
            ax.scatter(middle, [arms.index(a) + shift for a in middle.index], marker="|", s=130, color=colour)
        ax.set(yticks=range(len(arms)), yticklabels=arms, xlabel="roughness of the training loss", title=title)
        ax.invert_yaxis()
        ax.set_xscale("log")  # powers of ten only: more labels overlap
        ax.xaxis.set_minor_formatter(NullFormatter())
        say_seeds(ax, panel)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig, drawn


def sensitivity(tables: Tables) -> Drawn:
    """Late training loss and test accuracy over each of the open settings, with the others fixed; over the rounds T
    those of the base run at that round."""
    panels = {
        "averaging weight σ": {"0": "average 0", "0.5": "average 50", "0.9": "base", "0.99": "average 99"},
        "clip norm C": {"1": "clip 1", "3": "clip 3", "10": "base", "30": "clip 30"},
        "burn-in Q₀": {"0": "no burn in", "Q/2": "base", "4Q/5": "long burn in"},
        "steps of a round": {"Q/5": "fifth of the steps", "Q/2": "half of the steps", "Q": "base"},
        "penalty γ": {"0.3": "gamma 03", "1": "base", "3": "gamma 3", "10": "gamma 10"},
    }
    fig, axes = figure(2, 6, width=11.0, height=2.1, sharey="row", sharex="col")
    summaries = [_over_rounds(axes[:, 5], tables["sensitivity"])]
    for (upper, lower), (label, settings) in zip(axes.T, panels.items(), strict=False):
        places = {setting: x for x, setting in enumerate(settings.values())}
        for ax, metric, split, colour in ((upper, "late_loss", "derived", RED), (lower, "accuracy", "test", BLUE)):
            own = final(tables["sensitivity"], metric, split=split)
            own = own.assign(x=own["setting"].map(places)).dropna(subset="x")
            summary = band(ax, own, "x", colour=colour, marker="o", markersize=3)
            summaries.append(summary.assign(x=list(settings), setting=label, metric=metric))
        log_axis(upper, "y")
        lower.set(xlabel=label, xticks=range(len(settings)), xticklabels=list(settings))
    axes[0, 0].set_ylabel("late training loss")
    axes[1, 0].set_ylabel("test accuracy")
    return fig, pd.concat(summaries, ignore_index=True)


def _over_rounds(column: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
    """Training loss and test accuracy of the base run over its rounds T, in two axes; returns the drawn numbers."""
    summaries = []
    for ax, metric, split, colour in ((column[0], "loss", "train", RED), (column[1], "accuracy", "test", BLUE)):
        own = rows(table, metric, split=split, setting="base", client=-1)
        summary = band(ax, own[own["round"] > 0], "round", colour=colour)
        summaries.append(summary.rename(columns={"round": "x"}).assign(setting="rounds T", metric=metric))
    log_axis(column[0], "y")
    column[1].set(xlabel="rounds T")
    return pd.concat(summaries, ignore_index=True)


def _account(table: pd.DataFrame) -> pd.DataFrame:
    """One row per run: β, C, ε of the median node, test accuracy, the attack's area and advantage, the bound on it."""
    ends = {
        metric: final(table, metric, **({"split": "test"} if metric == "accuracy" else {})).set_index(
            ["setting", "seed"]
        )
        for metric in ("accuracy", "epsilon_median_node", "attack_area", "attack_advantage", "attack_bound")
    }
    runs = pd.DataFrame({metric: own["value"] for metric, own in ends.items()}).reset_index()
    settings = runs["setting"].str.extract(r"beta=([^,]+)(?:,clip=(.+))?").astype(float)
    return runs.assign(beta=settings[0], clip=settings[1])


def attack(tables: Tables) -> Drawn:
    """Accuracy beside ε, and a loss-threshold attack beside ε, for the whole gradient clipped and each record's."""
    both = [("whole gradient clipped, C = 10", _account(tables["privacy"]), BLUE)]
    each = _account(tables["privacy_records"])
    both += [
        (f"each record clipped, C = {c:g}", own, k)
        for k, (c, own) in zip((RED, GREEN), each.groupby("clip"), strict=True)
    ]
    fig, axes = figure(1, 2, width=9.0, height=3.0)
    for label, own, colour in both:
        middle = own.groupby("beta").median(numeric_only=True)
        for ax, metric in zip(axes[0], ("accuracy", "attack_area"), strict=True):
            ax.scatter(own["epsilon_median_node"], own[metric], s=8, color=colour, alpha=0.45, linewidth=0)
            ax.plot(middle["epsilon_median_node"], middle[metric], color=colour, label=label, linewidth=1.2)
            say_seeds(ax, own)
    for ax in axes[0]:
        ax.axvline(10, **PUBLISHED)
        ax.set(xscale="log", xlabel=f"ε of the median node (δ = {DELTA:g})")
    axes[0, 0].set_ylabel("test accuracy")
    axes[0, 1].set_ylabel("area under the attack's curve")
    axes[0, 1].axhline(0.5, color="#999999", linewidth=0.8)
    axes[0, 0].legend(fontsize=7)
    return fig, pd.concat([own.assign(method=label) for label, own, _ in both], ignore_index=True)


def quadratics(tables: Tables) -> Drawn:
    """Slacks of Theorems 4.1 and 4.2, and the error of Theorem 5.1 over ε."""
    settings = tables["quadratics"]["setting"].str.extract(r"(\w+),separation=(.+)")
    table = tables["quadratics"].assign(gamma=settings[0], separation=settings[1].astype(float))
    names = {
        ("bound41_slack", "usual"): "4.1, with its constant",
        ("bound41_literal", "usual"): "4.1, as stated, γ = 1",
        ("bound41_literal", "stiff"): "4.1, as stated, γ = 20",
        ("bound42_slack", "usual"): "4.2, random duals",
        ("bound42_same_hessians", "usual"): "4.2, equal Hessians",
        ("bound42_closed_gap", "usual"): "4.2, gradients' gap closed",
        ("bound42_both", "usual"): "4.2, both",
    }
    bounds = table[table["separation"] == table["separation"].min()]  # they do not depend on ε
    places = [pair in names for pair in zip(bounds["metric"], bounds["gamma"], strict=True)]
    bounds = bounds[places]
    order = [list(names).index(pair) for pair in zip(bounds["metric"], bounds["gamma"], strict=True)]
    fig, axes = figure(1, 2, width=9.0, height=2.9)
    ax = axes[0, 0]
    ax.scatter(bounds["value"], order, s=14, color=BLUE, linewidth=0, alpha=0.7)
    say_seeds(ax, bounds)
    ax.axvline(0, color="#999999", linewidth=0.8)
    ax.set(yticks=range(len(names)), yticklabels=list(names.values()), xlabel="slack (negative: the bound fails)")
    ax.set_xscale("symlog", linthresh=1.0)
    reach = 2 * max(10.0, bounds["value"].max())
    ax.set(ylim=(len(names) - 0.5, -0.5), xlim=(-reach, reach))
    errors = table[table["metric"].isin(["homogenisation_error", "homogenisation_bias"]) & (table["gamma"] == "usual")]
    labels = {"homogenisation_error": "root mean square", "homogenisation_bias": "of the mean"}
    for colour, (metric, label) in zip((RED, BLUE), labels.items(), strict=True):
        band(axes[0, 1], rows(errors, metric), "separation", label, colour, marker="o", markersize=3)
    axes[0, 1].set(xscale="log", yscale="log", xlabel="ε, fast over slow time", ylabel="relative error, Theorem 5.1")
    axes[0, 1].legend()
    return fig, pd.concat([bounds, errors])[["setting", "seed", "metric", "value"]].reset_index(drop=True)


def privacy(tables: Tables) -> Drawn:
    """ε per node after the run over the noise, and the accuracy at that noise."""
    table = tables["privacy"]
    table = table.assign(beta=table["setting"].str.removeprefix("beta=").astype(float))
    nodes = {
        "epsilon_smallest_node": ("node with least data", RED),
        "epsilon_median_node": ("median node", BLUE),
        "epsilon_largest_node": ("node with most data", GREEN),
        "epsilon_each_record": ("median node, each record clipped", COLOURS[7]),
    }
    fig, axes = figure(1, 3, width=9.4, height=3.0)
    summaries = []
    for metric, (label, colour) in nodes.items():
        line = "--" if metric == "epsilon_each_record" else "-"
        summary = band(axes[0, 0], rows(table, metric), "beta", label, colour, linestyle=line)
        summaries.append(summary.assign(metric=metric))
    axes[0, 0].axhline(10, label="ε = 10", **PUBLISHED)
    axes[0, 0].set(yscale="log", ylabel=f"ε after the run (δ = {DELTA:g})")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
    accuracy = final(table, "accuracy", split="test")
    summary = band(axes[0, 1], accuracy, "beta", "test accuracy", BLUE, marker="o", markersize=3)
    summaries.append(summary.assign(metric="accuracy"))
    axes[0, 1].set_ylabel("test accuracy")
    both = accuracy.merge(rows(table, "epsilon_median_node"), on=["setting", "seed"], suffixes=("", "_epsilon"))
    axes[0, 2].scatter(both["value_epsilon"], both["value"], s=10, color=BLUE, linewidth=0, alpha=0.6)
    say_seeds(axes[0, 2], both)
    axes[0, 2].axvline(10, **PUBLISHED)
    axes[0, 2].set(xscale="log", xlabel="ε of the median node", ylabel="test accuracy")
    for ax in axes[0, :2]:
        ax.set(xscale="log", xlabel="noise β")
        for beta in (1e-4, 0.5):
            ax.axvline(beta, color="#999999", linewidth=0.8)
    return fig, pd.concat(summaries, ignore_index=True)


def contraction(tables: Tables) -> Drawn:
    """The distance of two coupled runs over rounds, as a share of the distance at the start, for each seed."""
    fig, axes = figure(1, 2, width=7.6, height=2.9, sharey=True)
    drawn = []
    for ax, (name, title) in zip(axes[0], (("contraction", "softmax"), ("contraction_mlp", "network")), strict=True):
        for colour, setting in ((BLUE, "plain loss"), (RED, "with ridge")):
            own = rows(tables[name], "distance", setting=setting)
            start = own.loc[own["round"] == 0].set_index("seed")["value"]
            own = own.assign(value=own["value"] / own["seed"].map(start))
            for _, one in own.groupby("seed"):
                ax.plot(one["round"], one["value"], color=colour, linewidth=0.5, alpha=0.4)
            middle = own.groupby("round")["value"].median()
            ax.plot(middle.index, middle, color=colour, linewidth=1.8, label=setting)
            say_seeds(ax, own)
            drawn.append(own.assign(model=title)[["model", "setting", "seed", "round", "value"]])
        ax.set(xlabel="round", title=title)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        log_axis(ax, "y")
    axes[0, 0].set_ylabel("distance / distance at the start")
    axes[0, 0].legend()
    return fig, pd.concat(drawn, ignore_index=True)


def fixed_point(tables: Tables) -> pd.DataFrame:
    """Distance of the low-noise runs' ends from λ_i + ∇F_i = 0 and Σ λ_i = 0, and the share of clipped steps."""
    columns = {"residual": "‖λ + ∇F‖", "relative_residual": "‖λ + ∇F‖/‖∇F‖"}
    columns |= {"dual_sum": "‖Σλ‖/Σ‖λ‖", "clipped": "share clipped"}
    lines = []
    for (method, setting), own in tables["low"].groupby(["algorithm", "setting"], sort=False):
        ends = {label: final(own, metric)["value"] for metric, label in columns.items()}
        shown = {label: f"{end.mean():.3f} ± {end.std():.3f}" for label, end in ends.items()}
        lines.append({"method": method, "setting": setting, **shown})
    return pd.DataFrame(lines)
