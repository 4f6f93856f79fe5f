"""All printed numbers of the study gifair are shown; the feasibility of each pair, and the Pareto front."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedrepro.core.config import ROOT
from fedrepro.evidence.tables import TABLE_COLUMNS
from fedrepro.studies.gifair import artefacts as gifair
from fedrepro.studies.gifair.artefacts_beside import feasibility, front
from fedrepro.studies.gifair.measures import measure
from fedrepro.studies.gifair.names import METHODS, TITLES
from fedrepro.studies.gifair.printed import GROUPS, TEST_SAMPLES, accuracies, pairs, sizes

PUBLISHED = pd.read_csv(ROOT / "config" / "published" / "gifair.csv").set_index("id")


def test_the_tables_show_every_published_number():
    shown = {}
    for group, (images, devices) in sizes().items():
        shown |= {f"t2_1_{group}_images": images, f"t2_1_{group}_devices": devices}
    for table in TEST_SAMPLES:
        for method, (mean, spread) in pairs(table).items():
            shown |= {f"t{table[5:]}_{method}_mean": mean.value, f"t{table[5:]}_{method}_spread": spread.value}
    for table, groups in GROUPS.items():
        for method, (found, discrepancy) in accuracies(table).items():
            shown[f"t{table[5:]}_{method}_discrepancy"] = discrepancy
            shown |= {f"t{table[5:]}_{method}_{g}": a for g, (a, _) in zip(groups, found, strict=True)}
    tables = PUBLISHED[PUBLISHED["read"] == "table"]["value"].to_dict()
    assert tables == shown


def test_two_printed_discrepancies_of_table_2_4_disagree_with_its_rows():
    off = {}
    for table in GROUPS:
        for method, (found, discrepancy) in accuracies(table).items():
            means = [mean for mean, _ in found]
            if abs(max(means) - min(means) - discrepancy) > 0.011:
                off[table, method] = round(max(means) - min(means), 2)
    assert off == {("table2_4", "gifair_global"): 4.88, ("table2_4", "ditto"): 9.68}


def test_which_published_pairs_are_impossible():
    table = feasibility({})
    found = table[table["printed spread is"] != "possible"].groupby("printed spread is")
    impossible = {why: list(zip(own["table"], own["method"], strict=True)) for why, own in found}
    # √(0.792 · 0.208/9) = 13.5 < 22.3 and so on; √(0.841 · 0.159/45.4) = 5.43 > 4.5 by more than 2 · 0.8/√5 = 0.72,
    # while Global's √(0.832 · 0.168/45.4) = 5.55 is above 5.2 by less
    assert impossible == {
        "above what one model can have": [("Table 2.2", m) for m in ("FedAvg", "q-FFL", "TERM", "FedMGDA+")],
        "below what the test set alone gives": [("Table 2.3", "GIFAIR-FL-Per")],
    }


def test_the_front_by_hand():
    accuracy, unfairness = np.array([90, 80, 85, 85, 70]), np.array([10, 2, 5, 6, 2])
    assert front(accuracy, unfairness).tolist() == [True, True, True, False, False]


# --- on a table made by hand ------------------------------------------------------------------------------------------


def table(groups: list[str], settings: list[str]) -> pd.DataFrame:
    """Six devices about 60 %, the closer to each other the later the setting; two seeds alike."""
    lines = []
    for seed in (0, 1):
        for i, setting in enumerate(settings):
            run = {"setting": setting, "seed": seed, "algorithm": "global"}
            for client, group in enumerate(groups):
                value = 0.6 + 0.02 * (client - 2.5) * (1 - 0.1 * i)
                for split in ("validation", "test"):
                    device = {**run, "client": client, "split": split}
                    lines.append({**device, "metric": "accuracy", "value": value, "round": 2})
                    lines.append({**device, "metric": "samples", "value": 20, "group": group})
            lines += [{**run, "metric": f"bytes_{way}", "value": 100.0 + i, "round": 2} for way in ("down", "up")]
    frame = pd.DataFrame(lines).fillna({"client": -1, "split": "", "group": "", "round": 0})
    frame = frame.assign(experiment="gifair/x", step=0, data="real", diverged=False).astype(
        {"client": int, "round": int}
    )
    frame = frame[TABLE_COLUMNS]
    return pd.concat([frame, measure(frame)], ignore_index=True)


SETTINGS = ["fedavg", "q_ffl,q=1", "term,t=1", "fedmgda_plus,epsilon=1", "afl,gamma=0.1", "gifair_exact"]
SETTINGS += [f"{m},fraction={f}" for m in ("gifair_global", "gifair_per") for f in (0, 0.9)] + ["ditto,strength=0.5"]


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    kinds = {"femnist_3_groups": ["capital", "lowercase", "mixed"] * 2, "shakespeare_2": ["male", "female"] * 3}
    # Tables 2.4 and 2.6 know no AFL and no exact ranks, but TERM-Group
    grouped = [s for s in SETTINGS if not s.startswith(("afl", "gifair_exact"))]
    made = {}
    for name in TITLES:
        settings = grouped if name in kinds else SETTINGS
        settings = [s for s in settings if name != "shakespeare_2" or not s.startswith("term,")]
        made[name] = table(kinds.get(name, [""] * 6), settings)
    return made


def test_tables_have_a_line_a_method_with_printed_and_measured_numbers(tables):
    drawn = gifair.table2_2(tables).set_index("method")
    assert drawn.loc["FedAvg", "mean, printed"] == "79.2 (1)"
    assert drawn.loc["FedAvg", "mean"] == "60.0 ± 0.0"
    assert drawn.loc["AFL", "mean, printed"] == ""
    assert drawn.loc["GIFAIR-FL-Global", "setting"] == "fraction=0.9"
    drawn = gifair.table2_4(tables).set_index("method")
    assert drawn.loc["Ditto", ["discrepancy, printed", "of the printed rows"]].tolist() == ["9.02", "9.68"]
    assert drawn.loc["FedAvg", "discrepancy"] == "4.0 ± 0.0"
    assert gifair.table2_1(tables)["devices, ours"].tolist() == [2, 2, 2]


def test_every_method_has_a_name(tables):
    named = {s.partition(",")[0] for s in SETTINGS}
    assert named <= set(METHODS)


def test_communication_is_held_against_fedavg(tables):
    drawn = gifair.communication(tables).set_index(["data", "method"])
    assert drawn.loc[("MNIST-skewed", "q-FFL"), "more than FedAvg, up"].item() == 1


def test_tuning_lists_every_candidate_and_one_choice_a_method(tables):
    drawn = gifair.tuning(tables)
    mine = drawn[drawn["data"] == "F-MNIST-skewed"]
    assert len(mine) == len(SETTINGS)
    assert mine.groupby("method")["chosen"].apply(lambda c: (c == "chosen").sum()).eq(1).all()


def test_controls_show_local_models_without_lambda_beside_per(tables):
    drawn = gifair.controls(tables).set_index(["data", "arm"])
    assert drawn.loc[("MNIST-skewed", "FedAvg"), "accuracy"] == "60.0 ± 0.0"
    assert len(drawn) == 10


@pytest.mark.parametrize("name", ["fig2_4", "figA_1", "devices", "tradeoff"])
def test_figures_return_what_they_draw(tables, name):
    fig, numbers = getattr(gifair, name)(tables)
    assert len(numbers) > 5
    assert any(ax.has_data() for ax in fig.axes)
