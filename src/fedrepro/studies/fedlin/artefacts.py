"""Federated linear models (thesis ch. 3): Tables 3.1 and 3.4, Fig. 3.3, and the gain from sharing."""

import itertools

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PRINTED_POINT, PUBLISHED, Drawn, figure, log_axis, say_seeds
from fedrepro.studies.fedlin.measures import NOISE_FREE, variant

#: of points with error bars
POINTS = {"marker": "o", "markersize": 3, "capsize": 2}
#: Table 3.1: (algorithm, setting, arm) → its row; the printed column to compare with
ROWS3_1 = {
    **{("hm1", "", f"box {b}"): (f"Algorithm 3.1, sums over batches of {b}", "hm1") for b in (5, 10, 20)},
    ("hm1", "", "box means"): ("Algorithm 3.1, means over batches of 20", "hm1"),
    **{("hm1", "", f"separate {b}"): (f"Separate, 600 steps on sums over {b}", "separate") for b in (5, 10, 20)},
    ("hm1", "", "separate means"): ("Separate, 600 steps on means over 20", "separate"),
    ("limit", "converged", "box 10"): ("Separate, converged", "separate"),
    ("limit", "bayes", "box 10"): ("limit: true Ω and σ", None),
}
#: what a figure shows, said in it
READING3_3 = "sums over batches of 10, noise as an sd"
READING_GAIN = "Case III, sums over batches of 10, noise as an sd, noise-free targets"
#: how noise and targets are read → the output's name, the metric
TARGETS = {"noise-free": NOISE_FREE, "noisy": "a_rmse"}
READINGS = {f"{noise}, {of}": (noise, metric) for of, metric in TARGETS.items() for noise in ("sd", "variance")}
SENSORS = (2, 3, 7, 8)
#: Table 3.4: (experiment, algorithm, variant) → its row; the printed column
ROWS3_4 = {
    ("cmapss", "hm1", "box"): ("HM1", "hm1"),
    ("cmapss", "hm1", "jitter 100th"): ("HM1, jitter 0.01", "hm1"),
    ("cmapss", "hm1", "separate"): ("Separate", "separate"),
    ("cmapss", "fedavg", ""): ("FedAvg", "fedavg"),
    ("cmapss", "ditto", ""): ("Ditto", "ditto"),
    ("cmapss", "closed_form", "dis_ridge"): ("Dis-Ridge", "dis_ridge"),
    ("cmapss", "closed_form", "converged"): ("Separate, converged", "separate"),
    ("cmapss_random", "hm1", "box"): ("HM1, random start", "hm1"),
    ("cmapss_random", "hm1", "separate"): ("Separate, random start", "separate"),
    ("cmapss_code", "hm1", "box"): ("HM1, as the released code", "hm1"),
    ("cmapss_code", "hm1", "separate"): ("Separate, as the released code", "separate"),
    ("cmapss_code", "hm1", "box last bit"): ("HM1, as the released code, step one bit larger", "hm1"),
}
BEYOND = 1e6
CHOSEN = {True: "least validation error", False: "other candidate of the grid"}
SCALINGS = ("own range", "training range", "training z-score", "whole z-score", "raw")


def spread(values: pd.Series, digits: int = 3, none: str = "diverged", beyond: float = BEYOND) -> str:
    """`0.081 ± 0.001`, over seeds; `none` where no run has a finite number, or where their mean is `beyond` measure."""
    values = values[np.isfinite(values)]
    if values.empty or values.mean() > beyond:
        return none
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1) if len(values) > 1 else 0.0:.{digits}f}"


def sound(table: pd.DataFrame) -> pd.DataFrame:
    """The runs that did not diverge."""
    return table[~table["diverged"].astype(bool)]


def table3_1(tables: Tables) -> pd.DataFrame:
    """Table 3.1 by batch size, under both readings of the noise and of the targets, with limit, floor and trivial
    predictor."""
    lines = []
    for case in ("I", "II", "III", "IV"):
        table = sound(tables[f"hm1_{case.lower()}"])
        for (algorithm, setting, arm), (name, column) in ROWS3_1.items():
            own = table[(table["algorithm"] == algorithm) & (table["setting"] == setting) & (table["split"] == "test")]
            found = {r: final(own, metric, group=f"{arm}, {noise}")["value"] for r, (noise, metric) in READINGS.items()}
            target = None if column is None else tables.printed[f"t31_{case}_{column}"].value
            line = {"case": case, "method": name, "printed": "" if target is None else f"{target:.3f}"}
            line |= {reading: spread(values) for reading, values in found.items()}
            lines.append({**line, "closest": _closest({r: v.mean() for r, v in found.items()}, target)})
        bounds = {"a_rmse_trivial": "trivial: training mean", "a_rmse_floor": "floor: the targets' noise"}
        for metric, name in bounds.items():
            own = final(table, metric, split="test", setting="converged")
            values = {noise: own[own["group"] == f"box 10, {noise}"]["value"] for noise in ("sd", "variance")}
            shown = {f"{noise}, noisy": spread(mine) for noise, mine in values.items()}
            lines.append({"case": case, "method": name, **shown})
    return pd.DataFrame(lines).fillna("")


def _closest(means: dict[str, float], target: float | None) -> str:
    """The reading whose mean is nearest to the printed number, and its relative error."""
    off = {reading: mean / target - 1 for reading, mean in means.items() if target and mean < BEYOND}
    if not off:
        return ""
    reading = min(off, key=lambda r: abs(off[r]))
    return f"{reading} ({100 * off[reading]:+.0f} %)"


def fig3_3(tables: Tables) -> Drawn:
    """Fig. 3.3: ‖Θ̂ − Θ*‖/√K over rounds in two norms, one line per run; the ends of 600 separate steps and of least
    squares."""
    fig, axes = figure(2, 2, width=8.4, height=2.9, sharex=True, sharey="row")
    drawn = []
    for (line, suffix, norm), (place, case) in itertools.product(
        ((0, "", "Frobenius norm"), (1, "_one", "one-norm")), enumerate(("II", "III"))
    ):
        ax, metric = axes[line, place], f"parameter_error{suffix}"
        curves = rows(tables[f"hm1_start_{case.lower()}"], metric, group="box 10, sd")
        for i, (_, own) in enumerate(curves.groupby("seed")):
            ax.plot(own["round"], own["value"], color=COLOURS[i % len(COLOURS)], linewidth=0.7, alpha=0.8)
        say_seeds(ax, curves)
        drawn.append(curves[["seed", "round", "value"]].assign(case=case, norm=norm, method="Algorithm 3.1"))
        alone = {
            "Separate, 600 steps": ("--", {"algorithm": "hm1", "group": "separate 10, sd"}),
            "Separate, converged": ("-", {"setting": "converged", "group": "box 10, sd"}),
        }
        for label, (style, where) in alone.items():
            ends = final(tables[f"hm1_{case.lower()}"], metric, **where)
            ax.axhline(ends["value"].mean(), color="#000000", linestyle=style, linewidth=1.0, label=label)
            drawn.append(ends[["seed", "round", "value"]].assign(case=case, norm=norm, method=label))
        ax.axvspan(30, 40, color="#999999", alpha=0.25, linewidth=0, label="30–40 rounds")
        ax.set_title(f"Case {case}, {norm}")
    for ax in axes[:, 0]:
        ax.set_ylabel(r"$\|\hat\Theta - \Theta^*\| / \sqrt{K}$")
        log_axis(ax, "y")
    for ax in axes[1]:
        ax.set_xlabel("round")
    axes[0, 0].legend(loc="upper right")
    fig.suptitle(READING3_3)
    return fig, pd.concat(drawn, ignore_index=True)


def table3_4(tables: Tables) -> pd.DataFrame:
    """Table 3.4: tuned A-RMSE by sensor and method, in every scaling, with the trivial predictor."""
    trivial = rows(tables["cmapss"], "a_rmse_trivial", split="test")
    trivial = trivial[trivial["setting"] == trivial["setting"].iloc[0]]
    lines = []
    for sensor in SENSORS:
        shown = []
        for (experiment, algorithm, name), (label, column) in ROWS3_4.items():
            tuned = {"algorithm": algorithm} | ({"split": "test"} if experiment == "cmapss_code" else {})
            found = rows(sound(tables[experiment]), "a_rmse" if "split" in tuned else "a_rmse_tuned", **tuned)
            found = found[found["round"] == found["round"].max()]
            target = tables.printed[f"t34_{sensor}_{column}"].value
            shown.append((label, f"{target:.3f}", found[found["setting"].map(variant) == name]))
        for label, published, found in (*shown, ("trivial: training mean", "", trivial)):
            errors = {s: spread(found[found["group"] == f"sensor {sensor}, {s}"]["value"]) for s in SCALINGS}
            lines.append({"sensor": sensor, "method": label, "printed": published, **errors})
    return pd.DataFrame(lines)


def tuning(tables: Tables) -> Drawn:
    """The test error of every candidate of the grids, by method, scaled by the training range; filled: the one of
    least validation error."""
    errors = final(sound(tables["cmapss"]), "a_rmse")
    wide = errors[errors["split"].isin(["validation", "test"])]
    keys = ["algorithm", "setting", "group"]
    wide = wide.pivot_table(index=keys, columns="split", values="value", aggfunc="mean").reset_index()
    places = [
        ("cmapss", algorithm, variant(setting))
        for algorithm, setting in zip(wide["algorithm"], wide["setting"], strict=True)
    ]
    wide["method"] = [ROWS3_4[place][0] for place in places]
    wide = wide[wide["method"] != "Separate, converged"]
    wide["chosen"] = wide["validation"] == wide.groupby(["group", "method"])["validation"].transform("min")
    order = [label for (experiment, *_), (label, _) in ROWS3_4.items() if experiment == "cmapss"][::-1]
    order = [label for label in order if label in set(wide["method"])]
    fig, axes = figure(1, 4, width=11.0, height=2.6, sharey=True)
    for ax, sensor in zip(axes[0], SENSORS, strict=True):
        own = wide[wide["group"] == f"sensor {sensor}, training range"]
        for chosen, points in own.groupby("chosen"):
            at, look = (
                points["method"].map(order.index),
                {"facecolor": COLOURS[0] if chosen else "none", "zorder": 2 + chosen},
            )
            ax.scatter(points["test"], at, s=26, edgecolor=COLOURS[0], label=CHOSEN[bool(chosen)], **look)
        say_seeds(ax, errors)
        for place, label in enumerate(order):
            if number := tables.printed.get(f"t34_{sensor}_{label.lower().replace('-', '_')}"):
                ax.plot(
                    number.value,
                    place,
                    color=COLOURS[1],
                    label="Table 3.4, printed" if place == 0 else None,
                    **PRINTED_POINT,
                )
        ax.set(title=f"sensor {sensor}", xlabel="test A-RMSE", ylim=(-0.6, len(order) - 0.4))
        log_axis(ax, "x")
    axes[0, 0].set_yticks(range(len(order)), order)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig, wide.sort_values(["group", "method", "validation"], ignore_index=True)


def gain(tables: Tables) -> Drawn:
    """Error against noise-free targets over that of converged Separate, by the rank of Ω: the limit and the methods."""
    methods = {
        ("limit", "bayes", "box"): ("limit: true Ω and σ", COLOURS[2]),
        ("hm1", "true omega", "map"): ("Algorithm 3.1, true Ω, the model's weight of the prior", COLOURS[4]),
        ("limit", "multitask", "box"): ("multitask relationship learning", COLOURS[3]),
        ("hm1", "learned", "map"): ("Algorithm 3.1, the model's weight of the prior", COLOURS[5]),
        ("hm1", "learned", "box"): ("Algorithm 3.1", COLOURS[0]),
        ("hm1", "learned", "separate"): ("Separate, 600 steps", COLOURS[1]),
    }
    fig, ((ax,),) = figure(width=6.6, height=4.2)
    lines = []
    table = sound(tables["gain"])  # a run is left out with all its outputs if one of them diverged
    ranks = sorted({int(name.partition("rank ")[2]) for name in table["group"].unique() if "rank " in name})
    for (algorithm, setting, arm), (label, colour) in methods.items():
        for rank in ranks:
            where = {"algorithm": algorithm, "setting": setting, "group": f"{arm}, rank {rank}"}
            ratio = 1 - rows(table, "gain_over_converged", **where)["value"]
            lines.append({"rank": rank, "method": label, "ratio": ratio.mean(), "sd": ratio.std(), "seeds": len(ratio)})
        own = pd.DataFrame(lines).query("method == @label")
        ax.errorbar(own["rank"], own["ratio"], own["sd"], color=colour, label=label, **POINTS)
    say_seeds(ax, rows(table, "gain_over_converged"))
    ax.axhline(1, label="Separate, converged", **PUBLISHED)
    ax.set(xscale="log", yscale="log", xlabel="rank of Ω (100 devices)", ylabel="error / error of converged Separate")
    ax.set_title(READING_GAIN)
    ax.set_xticks(ranks, map(str, ranks), minor=False)
    ax.minorticks_off()
    fig.legend(loc="outside lower center", ncols=2, fontsize=7)
    return fig, pd.DataFrame(lines)


def sweep(tables: Tables) -> pd.DataFrame:
    """The error of Algorithm 3.1 by the prior's weight, α and jitter (Case II), by participation (Case III), and of the
    released script, with the share of diverged runs and the median of the others."""
    names = {"hm1_sweep": "II", "hm1_iii_partial": "III, 30 devices a round", "hm1_script": "the released script"}
    lines = []
    for experiment, case in names.items():
        for setting, own in tables[experiment].groupby("setting", sort=False):
            runs = own.groupby("seed")["diverged"].any()
            found = final(sound(own), NOISE_FREE)
            arms = dict.fromkeys(name.rpartition(", ")[0] for name in final(own, NOISE_FREE)["group"])
            for arm in arms or [""]:
                line = {"case": case, "setting": setting, "arm": arm}
                for noise in ("sd", "variance"):
                    mine = found[found["group"] == ", ".join(filter(None, (arm, noise)))]["value"]
                    line[f"A-RMSE, {noise}"] = spread(mine, none="") if len(mine) else ""
                    line[f"median, {noise}"] = f"{mine.median():.3f}" if len(mine) else ""
                for end in ("smallest", "largest"):
                    eigenvalue = final(own, f"omega_{end}")["value"]
                    line[f"Ω, {end} eigenvalue"] = f"{eigenvalue.median():.1e}" if len(eigenvalue) else ""
                lines.append({**line, "diverged": f"{int(runs.sum())} of {len(runs)}"})
    return pd.DataFrame(lines)
