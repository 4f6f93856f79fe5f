"""Tables of GIFAIR-FL (thesis ch. 2): 2.1 to 2.6; added: real data, tuning, communication, controls, feasibility."""

import itertools
import re
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fedrepro.core import parts
from fedrepro.evidence.tables import Printed, Tables, rows
from fedrepro.report.plotting import COLOURS
from fedrepro.studies.gifair.measures import choose, largest_spread, largest_spread_of_any_deal, smallest_spread

#: colours of the thesis' methods, in the order of its tables; other methods follow
THESIS = dict(
    fedavg=6,
    q_ffl=5,
    term=2,
    term_group=2,
    fedmgda_plus=4,
    afl=7,
    ditto=3,
    gifair_global=0,
    gifair_exact=0,
    gifair_per=1,
)
#: variants that differ from the method of their name
VARIANTS = {"gifair_exact": "GIFAIR-FL-Global, exact ranks"}
TITLES = {"mnist_skewed": "MNIST-skewed", "fmnist_skewed": "F-MNIST-skewed", "femnist_skewed": "FEMNIST-skewed"}
TITLES |= {"femnist_few": "FEMNIST-skewed, 6 devices"}
TITLES |= {"femnist_original": "FEMNIST-original", "femnist_3_groups": "FEMNIST-3-groups"}
TITLES |= {"shakespeare_31": "Shakespeare, 31 roles", "shakespeare_2": "Shakespeare, 2 groups"}
GROUPS = {"femnist_3_groups": ("capital", "lowercase", "mixed"), "shakespeare_2": ("male", "female")}

#: table of mean and spread over devices → test samples per device: a fifth of 500 images (§2.5.1), of a FEMNIST
#: writer's 226.83 images on average (LEAF, Caldas et al. 2018, Table 1), of a role's 29,908 windows
TEST_SAMPLES = {"2_2": 100.0, "2_3": 0.2 * 226.83, "2_5": 0.2 * 29_908}
CLASSES, HELD = 10, 5  # of FEMNIST-skewed, and of them on a device (§2.5.1)
RUNS = 5  # of every printed number
#: column of Tables 2.2, 2.3 and 2.5 → measure
METRICS = {"spread of the training loss": "loss_spread", "mean": "accuracy", "spread": "spread"}
METRICS |= {"only the test set": "sampling", "excess": "excess", "worst tenth of the devices": "worst_tenth"}
NONE_ADMISSIBLE = "no admissible setting"


def printed_lines(printed: Mapping[str, Printed], table: str, columns: Sequence[str]) -> dict[str, tuple[Printed, ...]]:
    """Method → its numbers in a table of the thesis (`2_2`), from the ids `t2_2_<method>_<column>`."""
    methods = [found[1] for i in printed if (found := re.fullmatch(f"t{table}_(.*)_{columns[-1]}", i))]
    return {method: tuple(printed[f"t{table}_{method}_{column}"] for column in columns) for method in methods}


def percent(values: pd.Series, digits: int = 1) -> str:
    """`79.2 ± 1.0`: mean and standard deviation over seeds."""
    spread = f" ± {values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}" if len(values) else ""


def shown(metric: str, values: pd.Series) -> str:
    """Losses have three digits, percentages one."""
    return percent(values, 3 if metric.startswith("loss") else 1)


def table2_1(tables: Tables) -> pd.DataFrame:
    """Devices and images of the three groups: printed, and those of the first seed."""
    held = tables["femnist_3_groups"]
    held = rows(held, "samples", seed=held["seed"].min()).drop_duplicates(["split", "client"])
    images = held.groupby(["group", "client"])["value"].sum()
    lines = []
    for group in GROUPS["femnist_3_groups"]:
        mine = images.loc[group]
        asked = [int(tables.printed[f"t2_1_{group}_{what}"].value) for what in ("images", "devices")]
        line = {"group": group, "images, printed": asked[0], "images of a device, ours": f"{mine.mean():.0f}"}
        lines.append({**line, "devices, printed": asked[1], "devices, ours": len(mine)})
    return pd.DataFrame(lines)


def table2_2(tables: Tables) -> pd.DataFrame:
    return _individual(tables, "femnist_skewed", "2_2")


def table2_3(tables: Tables) -> pd.DataFrame:
    return _individual(tables, "femnist_original", "2_3")


def table2_4(tables: Tables) -> pd.DataFrame:
    return _grouped(tables, "femnist_3_groups", "2_4")


def table2_5(tables: Tables) -> pd.DataFrame:
    return _individual(tables, "shakespeare_31", "2_5")


def table2_6(tables: Tables) -> pd.DataFrame:
    return _grouped(tables, "shakespeare_2", "2_6")


def real_data(tables: Tables) -> pd.DataFrame:
    """The setting of Table 2.2 on MNIST and Fashion-MNIST."""
    table = pd.concat([_individual(tables, d).assign(data=TITLES[d]) for d in ("mnist_skewed", "fmnist_skewed")])
    return table[["data", *table.columns.drop("data")]]


def test_split(tables: Tables) -> pd.DataFrame:
    """FedAvg and GIFAIR-FL on random test sets and on test sets of one class, beside the printed pairs of Table 2.2."""
    printed = printed_lines(tables.printed, "2_2", ("mean", "spread"))
    lines = []
    for data, cut in itertools.product(("femnist_skewed", "fmnist_skewed"), ("", "_tail")):
        table = tables[data + cut]
        for method in [m for m in present(table) if m == "fedavg" or m.startswith("gifair")]:
            line = {"data": TITLES[data], "test set": "one class" if cut else "random", "method": name(method)}
            pair = printed.get(method) if data == "femnist_skewed" else None
            for column, number in zip(("mean", "spread"), pair or (None, None), strict=True):
                line[f"{column}, printed"] = f"{number.value:.4g} ({number.spread:.3g})" if number else ""
            line["setting"] = chosen_setting(table, method)
            for column, metric in METRICS.items():
                line[column] = shown(metric, rows(table, f"chosen_{metric}", algorithm=method)["value"])
            lines.append(line)
    return pd.DataFrame(lines)


def _individual(tables: Tables, data: str, number: str = "") -> pd.DataFrame:
    """One line per method: mean and spread, printed and ours at the chosen setting, with the spread's two parts."""
    table, printed = tables[data], printed_lines(tables.printed, number, ("mean", "spread")) if number else {}
    lines = []
    for method in present(table):
        line = {"method": name(method)}
        if printed:
            numbers = [f"{n.value:.4g} ({n.spread:.3g})" for n in printed.get(method, ())] or ["", ""]
            line |= {"mean, printed": numbers[0], "spread, printed": numbers[1]}
        line["setting"] = chosen_setting(table, method)
        for column, metric in METRICS.items():
            line[column] = shown(metric, rows(table, f"chosen_{metric}", algorithm=method)["value"])
        lines.append(line)
    return pd.DataFrame(lines)


def _grouped(tables: Tables, data: str, number: str) -> pd.DataFrame:
    """One line per method: each group's accuracy and the discrepancy, printed, of the printed rows, and ours."""
    table, groups = tables[data], GROUPS[data]
    printed = printed_lines(tables.printed, number, (*groups, "discrepancy"))
    lines = []
    for method in present(table):
        line = {"method": name(method), "setting": chosen_setting(table, method)}
        *means, discrepancy = printed.get(method, (None,) * (len(groups) + 1))
        for group, mean in zip(groups, means, strict=True):
            line[f"{group}, printed"] = f"{mean.value:.2f} ({mean.spread:.2f})" if mean else ""
            line[group] = percent(rows(table, "chosen_group_accuracy", algorithm=method, group=group)["value"])
        values = [mean.value for mean in means if mean]
        line["discrepancy, printed"] = f"{discrepancy.value:.2f}" if discrepancy else ""
        line["of the printed rows"] = f"{max(values) - min(values):.2f}" if values else ""
        for column, metric in (("discrepancy", "discrepancy"), ("penalty on the training loss", "loss_discrepancy")):
            line[column] = shown(metric, rows(table, f"chosen_{metric}", algorithm=method)["value"])
        lines.append(line)
    return pd.DataFrame(lines)


def shakespeare_fedavg(tables: Tables) -> pd.DataFrame:
    """FedAvg and GIFAIR-FL-Global by λ on both federations: fairness over devices and between groups."""
    lines = []
    for data in ("shakespeare_31", "shakespeare_2"):
        derived = tables[f"{data}_fedavg"].query("split == 'derived'")
        for (method, setting), own in derived.groupby(["algorithm", "setting"], sort=False):
            line = {"data": TITLES[data], "method": name(str(method)), "setting": setting}
            for column, metric in {**METRICS, "discrepancy": "discrepancy", "penalty": "loss_discrepancy"}.items():
                line[column] = shown(metric, rows(own, metric)["value"])
            groups = GROUPS.get(data, ())
            lines.append(line | {g: percent(rows(own, "group_accuracy", group=g)["value"]) for g in groups})
    return pd.DataFrame(lines).fillna("")


def tuning(tables: Tables) -> pd.DataFrame:
    """Every candidate of every grid: its validation numbers, its test numbers, and the choice."""
    found = []
    for data, title in TITLES.items():
        derived, key = tables[data][tables[data]["split"] == "derived"], ["algorithm", "setting"]
        test = derived.pivot_table(index=key, columns="metric", values="value")[["accuracy", "unfairness"]]
        found.append(choose(derived).join(test.add_suffix("_test"), on=key).assign(data=title))
    table = pd.concat(found, ignore_index=True).round(2)
    columns = {"data": "data", "algorithm": "method", "setting": "setting", "accuracy": "validation mean"}
    columns |= {"unfairness": "validation spread or discrepancy", "similar": "as good as FedAvg", "chosen": "chosen"}
    columns |= {"accuracy_test": "test mean", "unfairness_test": "test spread or discrepancy"}
    similar, chosen = np.where(table["similar"], "yes", "no"), np.where(table["chosen"], "chosen", "")
    table = table.assign(algorithm=table["algorithm"].map(name), similar=similar, chosen=chosen)
    return table[list(columns)].rename(columns=columns)


def communication(tables: Tables) -> pd.DataFrame:
    """Traffic of a round by method: bytes down and up of all its devices, and the difference to FedAvg."""
    lines = []
    for data, title in TITLES.items():
        ends = {way: rows(tables[data], f"bytes_{way}", split="derived") for way in ("down", "up")}
        sent = {way: end.groupby("algorithm")["value"].mean().astype(int) for way, end in ends.items()}
        for method in present(tables[data]):
            line = {"data": title, "method": name(method), **{f"bytes {way}": n[method] for way, n in sent.items()}}
            lines.append(line | {f"more than FedAvg, {way}": n[method] - n["fedavg"] for way, n in sent.items()})
    return pd.DataFrame(lines)


def controls(tables: Tables) -> pd.DataFrame:
    """Possible reasons of the fairness: last local models without λ, stale and exact ranks, λ_max itself."""
    arms = {
        "FedAvg": ("fedavg", None),
        "FedAvg, the devices' last local models (GIFAIR-FL-Per, λ = 0)": ("gifair_per", 0),
        "GIFAIR-FL-Per, λ = 0.9 λ_max": ("gifair_per", 0.9),
        "GIFAIR-FL-Global, λ = 0.9 λ_max, stale ranks": ("gifair_global", 0.9),
        "GIFAIR-FL-Global, λ = 0.9 λ_max, exact ranks": ("gifair_exact", None),
    }
    lines = []
    for data in ("mnist_skewed", "fmnist_skewed"):
        for label, (method, fraction) in arms.items():
            where = {"split": "derived", "algorithm": method} | (
                {} if fraction is None else {"grid.fraction": fraction}
            )
            metrics = ("accuracy", "spread", "excess", "lambda_max", "rank_agreement")
            *shares, limit, agreement = (rows(tables[data], metric, **where)["value"] for metric in metrics)
            line = {"data": TITLES[data], "arm": label, **dict(zip(metrics, map(percent, shares), strict=False))}
            line["λ_max"] = f"{limit.mean():.3g}" if len(limit) else ""
            line["stale against exact losses, rank correlation"] = f"{agreement.mean():.2f}" if len(agreement) else ""
            lines.append(line)
    return pd.DataFrame(lines)


def feasibility(tables: Tables) -> pd.DataFrame:
    """Every published mean and spread; the least spread and, of one model on FEMNIST-skewed, the largest possible."""
    lines = []
    for table, samples in TEST_SAMPLES.items():
        for method, ((mean, _), (spread, sd)) in printed_lines(tables.printed, table, ("mean", "spread")).items():
            least = 100 * smallest_spread(mean / 100, samples)
            one_model = table == "2_2" and method not in ("ditto", "gifair_per")
            random, most = (
                100 * largest(mean / 100, samples, CLASSES, HELD) if one_model else np.inf
                for largest in (largest_spread, largest_spread_of_any_deal)
            )
            allowed = 2 * sd / np.sqrt(RUNS)
            verdict = "below what the test set alone gives" if spread < least - allowed else "possible"
            verdict = "above what one model can have" if spread > most + allowed else verdict
            line = {"table": f"Table {table.replace('_', '.')}", "method": name(method), "mean": mean, "spread": spread}
            line |= {"test samples of a device": round(samples), "least spread": f"{least:.2f}"}
            line |= {"most, one model, random classes": f"{random:.2f}" if one_model else ""}
            line |= {"most, one model, any deal": f"{most:.2f}" if one_model else "", "printed spread is": verdict}
            lines.append(line)
    return pd.DataFrame(lines)


def name(method: str) -> str:
    """A method's label; a variant that is neither a method nor in VARIANTS goes by its own name."""
    return VARIANTS.get(method) or (parts.label(method) if method in parts.modules("algorithms") else method)


def present(*tables: pd.DataFrame) -> list[str]:
    """The methods with results in one of the tables, in the order in which they are shown."""
    ends = (rows(table, "accuracy", split="derived") for table in tables)
    have = dict.fromkeys(method for own in ends for method in own["algorithm"].unique())
    return [*(method for method in THESIS if method in have), *(method for method in have if method not in THESIS)]


def colours(methods: Sequence[str]) -> dict[str, str]:
    """Method → colour. Methods beyond the thesis take the colours that are free, and then all colours in turn."""
    found = {method: COLOURS[THESIS[method]] for method in methods if method in THESIS}
    free = [colour for colour in COLOURS if colour not in found.values()]
    others = [method for method in methods if method not in THESIS]
    return found | dict(zip(others, itertools.chain(free, itertools.cycle(COLOURS)), strict=False))


def chosen_setting(table: pd.DataFrame, method: str) -> str:
    """The setting that the tuning rule chooses, or that none is admissible."""
    chosen = rows(table, "chosen_accuracy", algorithm=method)["setting"]
    return NONE_ADMISSIBLE if chosen.empty else str(chosen.iloc[0])
