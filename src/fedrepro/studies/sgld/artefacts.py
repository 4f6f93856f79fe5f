"""Federated SGLD (ICLR 2021 submission): Fig. 6, and what the paper promises, proves or leaves open."""

import pandas as pd
from matplotlib.ticker import MaxNLocator

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, band, figure, log_axis
from fedrepro.studies.sgld.measures import DELTA

BLUE, RED, GREEN = COLOURS[:3]  # the paper: baseline blue, ours red
#: label, arm to subtract, algorithm, its setting, its setting for the network (None: not run), colour, line
Arm = tuple[str, str, str, str, str | None, str, str]


def fig6_low(tables: Tables) -> Drawn:
    """Fig. 6, upper: training loss of low noise and of FedPD, and the difference to FedPD seed by seed."""
    arms: list[Arm] = [
        ("FedPD", "", "fedpd", "server start", "", BLUE, "-"),
        ("FedPD, own start", "", "fedpd", "own start", None, BLUE, ":"),
        ("SGLD, Algorithm 2", "FedPD", "fed_sgld", "decreasing", "low decreasing", RED, "-"),
        ("SGLD, fixed steps", "FedPD", "fed_sgld", "fixed", "low fixed", GREEN, "--"),
    ]
    return _fig6(tables["low"], tables["mlp"], arms)


def fig6_high(tables: Tables) -> Drawn:
    """Fig. 6, lower: training loss of high noise, with and without averaging; the difference at equal steps."""
    arms: list[Arm] = [
        ("noise, decreasing steps", "", "fedpd_noisy", "decreasing", "high decreasing", BLUE, "-"),
        ("SGLD, Algorithm 2", "noise, decreasing steps", "fed_sgld", "decreasing", "high decreasing", RED, "-"),
        ("noise, fixed steps", "", "fedpd_noisy", "fixed", "high fixed", BLUE, "--"),
        ("SGLD, fixed steps", "noise, fixed steps", "fed_sgld", "fixed", "high fixed", GREEN, "--"),
    ]
    return _fig6(tables["high"], tables["mlp"], arms)


def _fig6(softmax: pd.DataFrame, network: pd.DataFrame, arms: list[Arm]) -> Drawn:
    """Losses above, differences to another arm below, for two steps of softmax regression and the network."""
    panels = [(f"softmax, η = {lr}", softmax, {arm: f"{arm[3]},lr={lr}" for arm in arms}) for lr in (0.05, 0.01)]
    panels.append(("network, η = 0.05", network, {arm: arm[4] for arm in arms if arm[4] is not None}))
    fig, axes = figure(2, 3, width=9.4, height=2.6, sharex=True)
    summaries = []
    for (upper, lower), (title, table, settings) in zip(axes.T, panels, strict=True):
        losses = rows(table, "loss", split="train", client=-1)
        curves = {
            arm[0]: rows(losses, "loss", algorithm=arm[2], setting=setting)[["seed", "round", "value"]]
            for arm, setting in settings.items()
        }
        reach = 1e-9  # of the differences, without the spikes of the first rounds
        for label, other, _, _, _, colour, line in settings:
            summary = band(upper, curves[label], "round", label, colour, linestyle=line)
            summaries.append(summary.assign(panel=title, arm=label, shown="loss"))
            if other:
                gap = curves[label].merge(curves[other], on=["seed", "round"], suffixes=("", "_other"))
                gap = gap.assign(value=gap["value"] - gap["value_other"])
                summary = band(lower, gap, "round", label, colour, linestyle=line)
                summaries.append(summary.assign(panel=title, arm=f"{label} − {other}", shown="difference"))
                late = summary[summary["round"] > summary["round"].max() / 4]
                reach = max(reach, late["high"].max(), -late["low"].min())
        upper.set_title(title)
        log_axis(upper, "y")
        lower.axhline(0, color="#555555", linewidth=0.8)
        lower.set(xlabel="round", ylim=(-1.15 * reach, 1.15 * reach))
    axes[0, 0].set_ylabel("training loss")
    axes[1, 0].set_ylabel("less the baseline's\n(below 0: better)")
    axes[0, 0].legend(loc="upper right", fontsize=7)
    return fig, pd.concat(summaries, ignore_index=True)


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
        log_axis(ax, "x")
    axes[0, 0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.18))
    return fig, drawn


def sensitivity(tables: Tables) -> Drawn:
    """Late training loss and test accuracy over each of the open settings, with the others fixed."""
    panels = {
        "averaging weight σ": {"0": "average 0", "0.5": "average 50", "0.9": "base", "0.99": "average 99"},
        "clip norm C": {"1": "clip 1", "3": "clip 3", "10": "base", "30": "clip 30"},
        "burn-in Q₀": {"0": "no burn in", "Q/2": "base", "4Q/5": "long burn in"},
        "steps of a round": {"Q/5": "fifth of the steps", "Q/2": "half of the steps", "Q": "base"},
    }
    fig, axes = figure(2, 4, width=9.4, height=2.1, sharey="row", sharex="col")
    summaries = []
    for (upper, lower), (label, settings) in zip(axes.T, panels.items(), strict=True):
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
