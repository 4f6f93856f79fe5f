"""Federated linear models (thesis ch. 3): Tables 3.1 and 3.4, Fig. 3.3, and the gain from sharing."""

import numpy as np
import pandas as pd

from fedrepro.evidence.tables import Tables, final, rows
from fedrepro.report.plotting import COLOURS, PUBLISHED, Drawn, figure, log_axis
from fedrepro.studies.fedlin.measures import NOISE_FREE, variant

#: of points with error bars
POINTS = {"marker": "o", "markersize": 3, "capsize": 2}
#: Table 3.1: (algorithm, setting) → its row; the printed column to compare with
ROWS3_1 = {
    ("hm1", "box"): ("Algorithm 3.1, means", "hm1"),
    ("hm1", "sums"): ("Algorithm 3.1, sums", "hm1"),
    ("hm1", "sums tenth"): ("Algorithm 3.1, sums, η₂/10", "hm1"),
    ("hm1", "separate"): ("Separate, 600 steps, means", "separate"),
    ("hm1", "separate sums tenth"): ("Separate, 600 steps, sums, η₂/10", "separate"),
    ("limit", "converged"): ("Separate, converged", "separate"),
    ("limit", "bayes"): ("limit: true Ω and σ", None),
}
#: how noise and targets are read → the output's name, the metric
TARGETS = {"noise-free": NOISE_FREE, "noisy": "a_rmse"}
READINGS = {f"{noise}, {of}": (noise, metric) for of, metric in TARGETS.items() for noise in ("variance", "sd")}
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
    ("cmapss_code", "hm1", "means"): ("HM1, means, degree 4", "hm1"),
}
BEYOND = 1e6
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
    """Table 3.1 under both readings of the noise and of the targets, with limit, floor and trivial predictor."""
    lines = []
    for case in ("I", "II", "III", "IV"):
        table = sound(tables[f"hm1_{case.lower()}"])
        for (algorithm, setting), (name, column) in ROWS3_1.items():
            where = {"split": "test", "algorithm": algorithm, "setting": setting}
            found = {r: final(table, metric, group=noise, **where)["value"] for r, (noise, metric) in READINGS.items()}
            target = None if column is None else tables.printed[f"t31_{case}_{column}"].value
            line = {"case": case, "method": name, "printed": "" if target is None else f"{target:.3f}"}
            line |= {reading: spread(values) for reading, values in found.items()}
            lines.append({**line, "closest": _closest({r: v.mean() for r, v in found.items()}, target)})
        bounds = {"a_rmse_trivial": "trivial: training mean", "a_rmse_floor": "floor: the targets' noise"}
        for metric, name in bounds.items():
            own = final(table, metric, split="test", setting="converged")
            shown = {f"{noise}, noisy": spread(own[own["group"] == noise]["value"]) for noise in ("variance", "sd")}
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
    """Fig. 3.3: ‖Θ̂ − Θ*‖/√K over rounds, one line per run; the ends of 600 separate steps and of least squares."""
    fig, axes = figure(1, 2, width=8.4, height=3.2, sharey=True)
    drawn = []
    for ax, case in zip(axes[0], ("II", "III"), strict=True):
        curves = rows(tables[f"hm1_start_{case.lower()}"], "parameter_error", group="variance")
        for i, (_, own) in enumerate(curves.groupby("seed")):
            ax.plot(own["round"], own["value"], color=COLOURS[i % len(COLOURS)], linewidth=0.7, alpha=0.8)
        drawn.append(curves[["seed", "round", "value"]].assign(case=case, method="Algorithm 3.1"))
        alone = {"Separate, 600 steps": ("--", "separate"), "Separate, converged": ("-", "converged")}
        for label, (style, setting) in alone.items():
            ends = final(tables[f"hm1_{case.lower()}"], "parameter_error", setting=setting, group="variance")
            ax.axhline(ends["value"].mean(), color="#000000", linestyle=style, linewidth=1.0, label=label)
            drawn.append(ends[["seed", "round", "value"]].assign(case=case, method=label))
        ax.axvspan(30, 40, color="#999999", alpha=0.25, linewidth=0, label="30–40 rounds")
        ax.set(xlabel="round", title=f"Case {case}")
    axes[0, 0].set_ylabel(r"$\|\hat\Theta - \Theta^*\| / \sqrt{K}$")
    log_axis(axes[0, 0], "y")
    axes[0, 0].legend(loc="upper right")
    return fig, pd.concat(drawn, ignore_index=True)


def table3_4(tables: Tables) -> pd.DataFrame:
    """Table 3.4: tuned A-RMSE by sensor and method, in every scaling, with the trivial predictor."""
    trivial = rows(tables["cmapss"], "a_rmse_trivial", split="test")
    trivial = trivial[trivial["setting"] == trivial["setting"].iloc[0]]
    lines = []
    for sensor in SENSORS:
        shown = []
        for (experiment, algorithm, name), (label, column) in ROWS3_4.items():
            found = rows(sound(tables[experiment]), "a_rmse_tuned", algorithm=algorithm)
            target = tables.printed[f"t34_{sensor}_{column}"].value
            shown.append((label, f"{target:.3f}", found[found["setting"].map(variant) == name]))
        for label, published, found in (*shown, ("trivial: training mean", "", trivial)):
            errors = {s: spread(found[found["group"] == f"sensor {sensor}, {s}"]["value"]) for s in SCALINGS}
            lines.append({"sensor": sensor, "method": label, "printed": published, **errors})
    return pd.DataFrame(lines)


def tuning(tables: Tables) -> Drawn:
    """Every candidate of the grids: test over validation error, in the scaling of the training range."""
    errors = final(sound(tables["cmapss"]), "a_rmse")
    wide = errors[errors["split"].isin(["validation", "test"])]
    keys = ["algorithm", "setting", "group"]
    wide = wide.pivot_table(index=keys, columns="split", values="value", aggfunc="mean").reset_index()
    names = wide["setting"].map(variant)
    wide["method"] = names.where(names != "", wide["algorithm"]).replace("box", "hm1")
    wide = wide[wide["method"] != "converged"]
    fig, axes = figure(1, 4, width=11.0, height=2.9)
    for ax, sensor in zip(axes[0], SENSORS, strict=True):
        own = wide[wide["group"] == f"sensor {sensor}, training range"]
        for colour, (method, points) in zip(COLOURS, own.groupby("method"), strict=False):
            ax.scatter(points["validation"], points["test"], s=22, color=colour, label=method)
        ax.set(title=f"sensor {sensor}", xlabel="validation A-RMSE")
    axes[0, 0].set_ylabel("test A-RMSE")
    axes[0, 0].legend()
    return fig, wide.sort_values(["group", "method", "validation"], ignore_index=True)


def gain(tables: Tables) -> Drawn:
    """Error against noise-free targets over that of converged Separate, by the rank of Ω: the limit and the methods."""
    methods = {
        ("limit", "bayes"): ("limit: true Ω and σ", COLOURS[2]),
        ("hm1", "map true omega"): ("Algorithm 3.1 with true Ω, prior's weight of the model", COLOURS[4]),
        ("hm1", "box"): ("Algorithm 3.1", COLOURS[0]),
        ("hm1", "sums"): ("Algorithm 3.1, sums", COLOURS[5]),
        ("hm1", "separate"): ("Separate, 600 steps", COLOURS[1]),
    }
    fig, ((ax,),) = figure(width=6.4, height=4.0)
    lines = []
    table = tables["gain"]  # a run is left out with all its outputs if one of them diverged
    ranks = sorted(int(name.removeprefix("rank ")) for name in table["group"].unique() if name)
    for (algorithm, setting), (label, colour) in methods.items():
        for rank in ranks:
            where = {"algorithm": algorithm, "setting": setting, "group": f"rank {rank}"}
            ratio = 1 - rows(sound(table), "gain_over_converged", **where)["value"]
            lines.append({"rank": rank, "method": label, "ratio": ratio.mean(), "sd": ratio.std(), "seeds": len(ratio)})
        own = pd.DataFrame(lines).query("method == @label")
        ax.errorbar(own["rank"], own["ratio"], own["sd"], color=colour, label=label, **POINTS)
    ax.axhline(1, label="Separate, converged", **PUBLISHED)
    ax.set(xscale="log", yscale="log", xlabel="rank of Ω (100 devices)", ylabel="error / error of converged Separate")
    ax.set_xticks(ranks, map(str, ranks), minor=False)
    ax.minorticks_off()
    fig.legend(loc="outside lower center", ncols=2, fontsize=7)
    return fig, pd.DataFrame(lines)


def sweep(tables: Tables) -> pd.DataFrame:
    """The error of Algorithm 3.1 by weights, α and jitter (Case II), and by batches and participation (Case III)."""
    names = {
        "hm1_sweep": "II",
        "hm1_iii_sgd": "III, mini-batches of 10",
        "hm1_iii_partial": "III, 30 devices a round",
        "hm1_script": "the released script",
    }
    lines = []
    for experiment, case in names.items():
        for setting, own in tables[experiment].groupby("setting", sort=False):
            runs = own.groupby("seed")["diverged"].any()
            found = final(sound(own), NOISE_FREE)
            line = {"case": case, "setting": setting}
            for noise in ("variance", "sd"):
                mine = found[found["group"] == noise]["value"]
                line[f"A-RMSE, {noise}"] = spread(mine) if noise in set(own["group"]) else ""
            for end in ("smallest", "largest"):
                eigenvalue = final(own, f"omega_{end}")["value"]
                line[f"Ω, {end} eigenvalue"] = f"{eigenvalue.median():.1e}" if len(eigenvalue) else ""
            lines.append({**line, "diverged": f"{int(runs.sum())} of {len(runs)}"})
    return pd.DataFrame(lines)
