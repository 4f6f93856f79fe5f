"""DFL (arXiv 2601.01793): Figs. 1–3, and what the paper argues but never shows."""

import networkx as nx
import numpy as np
import pandas as pd

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, band, figure

ROUNDING = 1e-16  # smaller disagreements are drawn here: a logarithmic axis has no zero


def fig1(tables: Tables) -> Drawn:
    """The system of Fig. 1: a graph of servers, each with its own clients."""
    servers, clients = 6, 4
    graph = nx.cycle_graph(servers)
    graph.add_edges_from([(0, 3), (1, 4)])
    angle = np.pi / 2 - 2 * np.pi * np.arange(servers) / servers
    place = {i: np.array([np.cos(a), np.sin(a)]) for i, a in enumerate(angle)}
    links = [{"from": f"server {i}", "to": f"server {j}", "kind": "consensus"} for i, j in graph.edges]
    fig, ((ax,),) = figure(width=5.2, height=4.6)
    for i, j in graph.edges:
        ax.plot(*zip(place[i], place[j], strict=True), color=COLOURS[0], linewidth=1.8, zorder=1)
    for i, a in enumerate(angle):
        for k, offset in enumerate(np.linspace(-0.36, 0.36, clients)):
            spot = 1.95 * np.array([np.cos(a + offset), np.sin(a + offset)])
            ax.annotate("", spot, place[i], arrowprops={"arrowstyle": "<->", "color": "#999999", "linewidth": 0.9})
            ax.scatter(*spot, s=80, marker="s", color=COLOURS[4], zorder=3)
            links.append({"from": f"server {i}", "to": f"client {i}.{k}", "kind": "model"})
        ax.scatter(*place[i], s=420, color=COLOURS[0], zorder=3)
        ax.text(*place[i], f"S{i + 1}", color="white", ha="center", va="center", zorder=4)
    ax.scatter([], [], s=90, color=COLOURS[0], label="server")
    ax.scatter([], [], s=50, marker="s", color=COLOURS[4], label="client")
    ax.legend(loc="lower right")
    ax.set(xlim=(-2.3, 2.3), ylim=(-2.2, 2.2), aspect="equal")
    ax.axis("off")
    return fig, pd.DataFrame(links)


def fig2(tables: Tables) -> Drawn:
    """The timeline of an epoch (Fig. 2), to the scale of the experiment's T_C and T_S."""
    client_steps = int(rows(tables["line"], "client_steps", round=0)["value"].iloc[0])
    server_steps = int(rows(tables["line"], "w0")["step"].max())
    total = client_steps + server_steps
    ticks = [0, client_steps, total]
    phases = ["clients: gradient steps", "servers: consensus steps"]
    spans = pd.DataFrame({"phase": phases, "from": ticks[:2], "to": ticks[1:]})
    fig, ((ax,),) = figure(width=7.0, height=1.9)
    for (phase, begin, end), colour in zip(spans.itertuples(index=False), (COLOURS[4], COLOURS[0]), strict=True):
        ax.barh(0, end - begin, left=begin, color=colour, height=0.5, label=phase)
    events = ("broadcast\nto clients", "servers average\ntheir clients (4)", "next\nepoch")
    for t, text in zip(ticks, events, strict=True):
        ax.axvline(t, ymin=0.2, ymax=0.8, color="black", linewidth=1)
        beside, align = (-1.5, "right") if t else (1.5, "left")
        ax.text(t + beside, 0.42, text, ha=align, va="bottom", fontsize=8)
    names = ["$(p-1)T_E$", f"$(p-1)T_E+T_C$\n($T_C$ = {client_steps})", f"$pT_E$\n($T_S$ = {server_steps})"]
    ax.set(ylim=(-0.35, 1.0), xlim=(-2, total + 2), yticks=[], xticks=ticks, xticklabels=names)
    for label, align in zip(ax.get_xticklabels(), ("left", "right", "left"), strict=True):
        label.set_horizontalalignment(align)
    ax.spines["left"].set_visible(False)
    ax.grid(visible=False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, 1.12), ncols=2)
    return fig, spans


def fig3a(tables: Tables) -> Drawn:
    """Fig. 3(a): the servers' final line over all clients' data, for the first seed."""
    data = tables["line.data"]
    ends = pd.concat([final(tables["line"], "w0"), final(tables["line"], "w1")])
    ends = ends[ends["step"] == ends["step"].max()]
    servers = ends.pivot_table(index=["seed", "group"], columns="metric", values="value")
    fitted = servers.groupby("seed").mean().reset_index().rename(columns={"w0": "slope", "w1": "intercept"})
    mine = fitted[fitted["seed"] == data["seed"].iloc[0]].iloc[0]
    x = np.array([data["x0"].min(), data["x0"].max()])
    fig, ((ax,),) = figure(width=5.0, height=3.5)
    for colour, (server, own) in zip(COLOURS, data.groupby("group"), strict=False):
        label = f"clients of server {server}"
        ax.scatter(own["x0"], own["y"], s=3, color=colour, alpha=0.35, linewidth=0, label=label)
    ax.plot(x, mine["slope"] * x + mine["intercept"], color="black", linewidth=1.8, label="DFL")
    ax.plot(x, 5 * x + 2, label="$w^* = (5, 2)$", **{**PUBLISHED, "color": "#D55E00", "linewidth": 1.8})
    ax.set(xlabel="$x$", ylabel="$y$")
    ax.set_title(f"ours ({mine['slope']:.3f}, {mine['intercept']:.3f})", loc="right")
    ax.legend(loc="upper left", markerscale=3, fontsize=7)
    return fig, fitted


def fig3b(tables: Tables) -> Drawn:
    """Fig. 3(b): the servers' parameters over server iterations, before and after consensus, for one seed."""
    table = tables["line"]
    first = (table["seed"] == table["seed"].min()) & (table["split"] == "server")
    values = table[first & table["metric"].isin(["w0", "w1"])]
    steps = int(values["step"].max())
    drawn = values.assign(iteration=(values["round"] - 1) * steps + values["step"])
    drawn = drawn[["iteration", "round", "step", "group", "metric", "value"]].reset_index(drop=True)
    last, near = int(drawn["round"].max()), min(3, int(drawn["round"].max()))
    fig, axes = figure(2, 2, width=7.6, height=2.4)
    names = {"w0": ("slope $w_1$", 5.0), "w1": ("intercept $w_2$", 2.0)}
    for ax_row, (metric, (name, truth)) in zip(axes, names.items(), strict=True):
        for ax, epochs in zip(ax_row, (last, near), strict=True):
            part = drawn[(drawn["metric"] == metric) & (drawn["round"] <= epochs)]
            for colour, (server, own) in zip(COLOURS, part.groupby("group"), strict=False):
                ax.plot(own["iteration"], own["value"], color=colour, linewidth=0.8, label=server)
            ax.set_ylabel(name)
        ax_row[0].axhline(truth, label="$w^*$", **PUBLISHED)
    for column, title in enumerate((f"{last} epochs", f"the first {near} epochs")):
        axes[0, column].set_title(title)
        axes[1, column].set_xlabel("server iteration")
    if last >= 160:
        for ax in axes[:, 0]:
            ax.axvline(4000, color="#999999", linewidth=0.8)
        axes[1, 0].annotate("4000", (4000, axes[1, 0].get_ylim()[1]), fontsize=7, color="#555555", va="top", ha="right")
    axes[0, 0].legend(fontsize=7, ncols=2, loc="lower right")
    return fig, drawn


def theorem1(tables: Tables) -> Drawn:
    """Measured values and proved bounds at the end, and the trivial bound θ/μ."""
    table = tables["theorem1"]
    derived = ["epsilon", "epsilon_over_trivial", "lemma1_bound", "lemma4_bound"]
    numbers = (
        table[table["metric"].isin(derived)]
        .pivot_table(index=["setting", "seed"], columns="metric", values="value")
        .reset_index()
    )
    grid = {"grid.step_fraction": "step_fraction", "grid.server_steps": "server_steps"}
    numbers = numbers.merge(table[["setting", *grid]].drop_duplicates(), on="setting").rename(columns=grid)
    numbers = numbers.astype({"server_steps": int})
    for metric in ("distance", "distance_mean", "gap"):
        last = final(table, metric)[["setting", "seed", "value"]].rename(columns={"value": metric})
        numbers = numbers.merge(last, on=["setting", "seed"])
    numbers["trivial"] = numbers["epsilon"] / numbers["epsilon_over_trivial"]
    panels = [
        ("distance", "epsilon", r"servers to $w^*$, Theorem 1: $\epsilon$"),
        ("distance_mean", "lemma4_bound", "their mean to $w^*$, Lemma 4"),
        ("gap", "lemma1_bound", "disagreement, Lemma 1"),
    ]
    fig, axes = figure(1, 3, width=9.0, height=3.2)
    for ax, (measured, bound, title) in zip(axes[0], panels, strict=True):
        for colour, (steps, own) in zip(COLOURS, numbers.groupby("server_steps"), strict=False):
            mean = own.groupby("step_fraction")[[measured, bound]].mean()
            ax.plot(mean.index, mean[bound], "--", color=colour, marker="s", markersize=3)
            ax.plot(mean.index, mean[measured], color=colour, marker="o", markersize=3, label=f"$T_S$ = {steps}")
        ax.set(yscale="log", xlabel=r"$\gamma L T_C$", title=title)
    trivial = numbers.groupby("step_fraction")["trivial"].mean()
    axes[0, 0].plot(trivial.index, trivial, label=r"trivial bound $\theta/\mu$", **PUBLISHED)
    axes[0, 0].axvline(0.5, color="#999999", linewidth=0.8)
    axes[0, 0].legend(loc="center left", bbox_to_anchor=(0.0, 0.44))
    looks = {"measured": "-", "bound": "--"}
    handles = [axes[0, 1].plot([], [], look, color="#555555", label=name)[0] for name, look in looks.items()]
    axes[0, 1].legend(handles=handles, loc="center left", bbox_to_anchor=(0.0, 0.5))
    return fig, numbers


def topologies(tables: Tables) -> Drawn:
    """Disagreement after consensus and distance to w* over epochs for four graphs and three T_S."""
    table = tables["topologies"]
    drawn = table[table["metric"].isin(["gap", "distance"]) & (table["round"] > 0)]
    steps = sorted(drawn["grid.server_steps"].astype(int).unique())
    fig, axes = figure(2, len(steps), width=8.0, height=2.3, sharex=True, sharey="row")
    summaries = []
    for column, server_steps in zip(axes.T, steps, strict=True):
        for ax, metric in zip(column, ("gap", "distance"), strict=True):
            for colour, graph in zip(COLOURS, ("complete", "star", "ring", "path"), strict=False):
                own = rows(drawn, metric, **{"grid.graph": graph, "grid.server_steps": server_steps})
                own = own.assign(value=own["value"].clip(lower=ROUNDING))
                summary = band(ax, own, "round", graph, colour)
                summaries.append(summary.assign(graph=graph, server_steps=server_steps, metric=metric))
            ax.set_yscale("log")
        column[0].set_title(f"$T_S$ = {server_steps}")
        column[1].set_xlabel("epoch")
    axes[0, 0].set_ylabel("disagreement")
    axes[1, 0].set_ylabel("distance to $w^*$")
    axes[1, 0].legend()
    return fig, pd.concat(summaries, ignore_index=True)


def faults(tables: Tables) -> Drawn:
    """Distance of the remaining servers to the minimiser over all clients' data after a loss."""
    table = tables["faults"]
    fig, axes = figure(1, 2, width=7.6, height=2.9)
    summaries = []
    looks = {"no fault": "-", "link lost": "--", "server lost": "-", "single server lost": "-"}
    for colour, (setting, line) in zip(COLOURS, looks.items(), strict=False):
        distance = rows(table, "distance", split="server", setting=setting)
        summary = band(axes[0, 0], distance, "round", setting, colour, linestyle=line)
        summaries.append(summary.assign(setting=setting, metric="distance"))
        if setting != "single server lost":
            gap = rows(table, "gap", setting=setting)
            gap = gap[gap["round"] > 0].assign(value=gap["value"].clip(lower=ROUNDING))
            summary = band(axes[0, 1], gap, "round", setting, colour, linestyle=line)
            summaries.append(summary.assign(setting=setting, metric="gap"))
    alive = rows(table, "alive", setting="single server lost")
    lost = int(alive.loc[alive["value"] > 0, "round"].max()) + 1  # after the last epoch of the single server
    for ax in axes[0]:
        ax.axvline(lost, color="#999999", linewidth=0.8)
        ax.set(yscale="log", xlabel="epoch")
    axes[0, 0].set(ylabel="distance to $w^*$ of all clients")
    axes[0, 1].set(ylabel="disagreement of the remaining servers")
    axes[0, 0].legend(loc="lower left")
    return fig, pd.concat(summaries, ignore_index=True)
