"""DFL (arXiv 2601.01793): Figs. 1–3, and what the paper argues but never shows."""

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, band, figure, say_seeds
from fedrepro.studies.dfl.measures import BUDGET

CLOUD_EVERY = 5  # κ₂ of hierarchical FedAvg on the network
ROUNDING = 1e-12  # below this only rounding is left; smaller disagreements are drawn here
#: the rivals at equal messages: label → experiment, algorithm, setting, look
RIVALS = {
    "DFL, $T_S$ = 25": ("rivals", "dfl", "server_steps=25", (COLOURS[0], "-")),
    "DFL, $T_S$ = 1": ("rivals", "dfl", "server_steps=1", (COLOURS[0], "--")),
    "hierarchical FedAvg, κ₂ = 1": ("rivals", "hierarchical_fedavg", "cloud_every=1", (COLOURS[2], "-")),
    "hierarchical FedAvg, κ₂ = 5": ("rivals", "hierarchical_fedavg", "cloud_every=5", (COLOURS[2], "--")),
    "DFL, $T_C$ = $T_S$ = 1": ("rivals_one_step", "dfl", "", (COLOURS[0], ":")),
    "decentralised SGD, γL = 0.6": ("rivals_one_step", "decentralised_sgd", "step_fraction=0.6", (COLOURS[1], "-")),
    "decentralised SGD, γL = 0.1": ("rivals_one_step", "decentralised_sgd", "step_fraction=0.1", (COLOURS[1], "--")),
    "gradient tracking, γL = 0.3": ("rivals_one_step", "gradient_tracking", "step_fraction=0.3", (COLOURS[3], "-")),
    "gradient tracking, γL = 0.1": ("rivals_one_step", "gradient_tracking", "step_fraction=0.1", (COLOURS[3], "--")),
}


def fig1(tables: Tables) -> Drawn:
    """The system of Fig. 1: a graph of servers, each with its own clients."""
    servers, clients = 6, 4
    graph = nx.cycle_graph(servers)
    graph.add_edges_from([(0, 3), (1, 4)])
    angle = np.pi / 2 - 2 * np.pi * np.arange(servers) / servers
    place = {i: np.array([np.cos(a), np.sin(a)]) for i, a in enumerate(angle)}
    links = [{"from": f"server {i + 1}", "to": f"server {j + 1}", "kind": "consensus"} for i, j in graph.edges]
    fig, ((ax,),) = figure(width=5.2, height=4.6)
    for i, j in graph.edges:
        ax.plot(*zip(place[i], place[j], strict=True), color=COLOURS[0], linewidth=1.8, zorder=1)
    for i, a in enumerate(angle):
        for k, offset in enumerate(np.linspace(-0.36, 0.36, clients)):
            spot = 1.95 * np.array([np.cos(a + offset), np.sin(a + offset)])
            ax.annotate("", spot, place[i], arrowprops={"arrowstyle": "<->", "color": "#999999", "linewidth": 0.9})
            ax.scatter(*spot, s=80, marker="s", color=COLOURS[4], zorder=3)
            links.append({"from": f"server {i + 1}", "to": f"client {i + 1}.{k + 1}", "kind": "model"})
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
        label = f"clients of server {int(server) + 1}"
        ax.scatter(own["x0"], own["y"], s=3, color=colour, alpha=0.35, linewidth=0, label=label)
    ax.plot(x, mine["slope"] * x + mine["intercept"], color="black", linewidth=1.8, label="DFL")
    ax.plot(x, 5 * x + 2, label="$w^* = (5, 2)$", **{**PUBLISHED, "color": "#D55E00", "linewidth": 1.8})
    ax.set(xlabel="$x$", ylabel="$y$")
    say_seeds(ax, data)
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
            say_seeds(ax, values)
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


BOUNDS = [
    *("epsilon", "epsilon_over_trivial", "lemma1_bound", "lemma3_bound", "lemma4_bound"),
    *("limit_distance", "limit_mean", "limit_gap", "largest_drift", "distance", "distance_mean", "gap", "drift"),
]


def theorem1(tables: Tables) -> Drawn:
    """Bounds, the measured limit (for Lemma 3 the largest drift) and the last epoch, over the step."""
    table = tables["theorem1"]
    ids = ["setting", "seed", "grid.step_fraction", "grid.server_steps"]
    numbers = table[(table["group"] == "") & table["metric"].isin(BOUNDS)]
    numbers = numbers[numbers["round"] == numbers.groupby([*ids, "metric"])["round"].transform("max")]
    numbers = numbers.pivot_table(index=ids, columns="metric", values="value").reset_index()
    names = {"grid.step_fraction": "step_fraction", "grid.server_steps": "server_steps"}
    numbers = numbers.rename(columns=names).astype({"server_steps": int})
    numbers["trivial"] = numbers["epsilon"] / numbers["epsilon_over_trivial"]
    panels = [
        ("epsilon", "limit_distance", "distance", r"servers to $w^*$, Theorem 1"),
        ("lemma4_bound", "limit_mean", "distance_mean", "their mean to $w^*$, Lemma 4"),
        ("lemma1_bound", "limit_gap", "gap", "disagreement, Lemma 1"),
        ("lemma3_bound", "largest_drift", "drift", "a client's way within an epoch, Lemma 3"),
    ]
    fig, axes = figure(2, 2, width=9.4, height=2.7, sharex=True)
    for ax, (bound, measured, last, title) in zip(axes.flat, panels, strict=True):
        for i, (colour, (steps, own)) in enumerate(zip(COLOURS, numbers.groupby("server_steps"), strict=False)):
            mean = own.groupby("step_fraction")[[bound, measured, last]].mean()
            x = mean.index + 0.012 * (i - 1)  # side by side where values coincide
            size: Any = {"color": colour, "marker": "os^"[i], "markersize": 4.5 - i, "linewidth": 2.4 - 0.7 * i}
            ax.plot(x, mean[bound], "--", **size)
            ax.plot(x, mean[measured].clip(lower=ROUNDING), "-", label=f"$T_S$ = {steps}", **size)
            ax.plot(x, mean[last].clip(lower=ROUNDING), ":", **{**size, "linewidth": 1.0})
        ax.set(yscale="log", title=title)
        say_seeds(ax, numbers)
    trivial = numbers.groupby("step_fraction")["trivial"].mean()
    axes[0, 0].plot(trivial.index, trivial, label=r"trivial bound $\theta/\mu$", **PUBLISHED)
    axes[0, 0].axvline(0.5, color="#999999", linewidth=0.8)
    looks = {"bound": "--", "limit, or largest drift": "-", "last epoch": ":"}
    more = [axes[0, 1].plot([], [], look, color="#555555", label=name)[0] for name, look in looks.items()]
    fig.legend(handles=[*axes[0, 0].get_legend_handles_labels()[0], *more], loc="outside right center")
    for ax in axes[:, 0]:
        ax.set_ylabel("distance, parameters")
    for ax in axes[1]:
        ax.set_xlabel(r"$\gamma L T_C$")
    return fig, numbers


def topologies(tables: Tables) -> Drawn:
    """Disagreement after consensus and distance to w* over epochs for four graphs and two T_S."""
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


def laws(tables: Tables) -> Drawn:
    """Epochs until the common value settles and the averages agree, over the law of x and the clients' differences."""
    words = {"unit": "U(0, 1), calibrated", "centred": "U(−1, 1)", "normal": "N(0, 1)", "wide": "U(0, 10)"}
    shown = {"settles": "common value settled", "agrees": "averages agree", "limit_true": r"limit to $(5, 2)$"}
    found = []
    for name, table in tables.items():
        if name.startswith("law_"):
            _, law, clients = name.split("_")
            own = table[table["metric"].isin(shown)]
            found.append(own.assign(law=words[law], clients=clients)[["law", "clients", "seed", "metric", "value"]])
    numbers = pd.concat(found, ignore_index=True)
    fig, axes = figure(1, 3, width=9.4, height=2.9)
    order, kinds = list(words.values()), ["alike", "differing", "apart"]
    for ax, (metric, title) in zip(axes[0], shown.items(), strict=True):
        for i, (colour, clients) in enumerate(zip(COLOURS, kinds, strict=False)):
            own = numbers[(numbers["metric"] == metric) & (numbers["clients"] == clients)]
            place = own["law"].map(order.index) + 0.22 * (i - 1)
            finite = np.isfinite(own["value"])
            ax.scatter(own["value"][finite], place[finite], s=9, color=colour, linewidth=0, label=f"clients {clients}")
            never = place[~finite].unique()
            ax.scatter([0.98] * len(never), never, marker=">", color=colour, transform=ax.get_yaxis_transform())
        if metric != "limit_true":
            ax.axvline(tables.printed["consensus_epochs"].value, label="the paper's 160", **PUBLISHED)
        say_seeds(ax, numbers)
        ax.set(xscale="log", title=title, yticks=range(len(order)), yticklabels=order if ax is axes[0, 0] else [])
        ax.set_xlabel("distance, parameters" if metric == "limit_true" else "epochs (▸: never)")
        ax.invert_yaxis()
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return fig, numbers


def load(tables: Tables) -> Drawn:
    """Vectors per server and epoch over the clients of a server: five servers against a single one."""
    facts = {}
    for name, shared, alone in (
        ("faults", "no fault", "single server lost"),
        ("many_clients", "five servers", "single server"),
    ):
        own = rows(tables[name], "messages").groupby("setting")["value"].first()
        clients = (own[alone] / 2) / 5
        facts[clients] = {"five servers": own[shared], "single server": own[alone]}
    measured = pd.DataFrame(facts).T.rename_axis("clients").reset_index()
    consensus = measured["five servers"].iloc[0] - 2 * measured["clients"].iloc[0]  # 2·T_S·degree
    even = consensus / (2 * (5 - 1))
    clients = np.geomspace(1, 200, 60)
    fig, ((ax,),) = figure(width=5.0, height=2.9)
    for colour, name, line in (
        (COLOURS[0], "five servers", 2 * clients + consensus),
        (COLOURS[1], "single server", 10 * clients),
    ):
        ax.plot(clients, line, color=colour, label=name)
        ax.scatter(measured["clients"], measured[name], color=colour, s=22, zorder=3)
    ax.axvline(even, color="#999999", linewidth=0.8)
    ax.annotate(f"break-even at {even:g}", (even, ax.get_ylim()[1]), fontsize=7, color="#555555", ha="right", va="top")
    ax.set(xscale="log", yscale="log", xlabel="clients per server", ylabel="vectors per server and epoch")
    ax.legend(loc="lower right")
    return fig, measured.assign(break_even=even)


def rivals(tables: Tables) -> Drawn:
    """Distance of the furthest server to w*, over the vectors that a server exchanges and over gradient steps."""
    fig, axes = figure(1, 2, width=9.4, height=3.4, sharey=True)
    summaries = []
    for label, (name, algorithm, setting, (colour, line)) in RIVALS.items():
        own = tables[name][(tables[name]["algorithm"] == algorithm) & (tables[name]["setting"] == setting)]
        each, steps = (rows(own, fact)["value"].iloc[0] for fact in ("messages", "client_steps"))
        distance = rows(own, "distance", split="server")
        distance = distance[distance["round"] > 0].assign(value=distance["value"].clip(lower=ROUNDING))
        within = distance[distance["round"] * each <= BUDGET]
        summary = band(axes[0, 0], within.assign(x=within["round"] * each), "x", label, colour, linestyle=line)
        middle = distance.groupby("round")["value"].median()
        axes[0, 1].plot(middle.index * steps, middle, color=colour, linestyle=line, label=label)
        summaries.append(summary.assign(method=label, steps_per_round=steps, vectors_per_round=each))
    for ax, name in zip(axes[0], ("vectors per server", "gradient steps per client"), strict=True):
        ax.set(yscale="log", xlabel=name)
    axes[0, 1].set(xscale="log")
    axes[0, 0].set_ylabel("distance to $w^*$")
    axes[0, 1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return fig, pd.concat(summaries, ignore_index=True)


def fashion(tables: Tables) -> Drawn:
    """Test accuracy of the first server and disagreement over the vectors that a server exchanges, on a network."""
    arms = {
        "DFL, $T_S$ = 25": ("fashion", "dfl", "five servers", COLOURS[0], "-"),
        "DFL, $T_S$ = 1": ("fashion", "dfl", "one consensus step", COLOURS[0], "--"),
        "single server": ("fashion", "dfl", "single server", "#000000", ":"),
        "hierarchical FedAvg, κ₂ = 5": ("fashion", "hierarchical_fedavg", "", COLOURS[2], "-"),
        "decentralised SGD, γ = 0.2": ("fashion_one_step", "decentralised_sgd", "gamma=0.2", COLOURS[1], "-"),
        "decentralised SGD, γ = 0.05": ("fashion_one_step", "decentralised_sgd", "gamma=0.05", COLOURS[1], "--"),
        "gradient tracking, γ = 0.2": ("fashion_one_step", "gradient_tracking", "gamma=0.2", COLOURS[3], "-"),
        "gradient tracking, γ = 0.05": ("fashion_one_step", "gradient_tracking", "gamma=0.05", COLOURS[3], "--"),
    }
    fig, axes = figure(1, 2, width=9.4, height=3.2)
    summaries = []
    for label, (name, algorithm, setting, colour, line) in arms.items():
        own = tables[name][(tables[name]["algorithm"] == algorithm) & (tables[name]["setting"] == setting)]
        each = rows(own, "messages")["value"].iloc[0]
        for ax, metric, split in ((axes[0, 0], "accuracy", "test"), (axes[0, 1], "gap_relative", "server")):
            if metric == "gap_relative" and setting == "single server":
                continue
            kept = rows(own, metric, split=split)
            kept = kept[kept["round"] > 0].assign(value=kept["value"].clip(lower=1e-8), x=kept["round"] * each)
            if metric == "gap_relative" and algorithm == "hierarchical_fedavg":  # zero after an average of all
                kept = kept.groupby(["seed", (kept["round"] - 1) // CLOUD_EVERY], as_index=False)[["value", "x"]].max()
            summary = band(ax, kept, "x", label, colour, linestyle=line)
            summaries.append(summary.assign(method=label, metric=metric))
    axes[0, 0].set(xlabel="vectors per server", ylabel="test accuracy")
    axes[0, 1].set(xlabel="vectors per server", ylabel="disagreement over norm", yscale="log")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside right center", fontsize=7)
    return fig, pd.concat(summaries, ignore_index=True)
