"""Tables and figures of multi-fidelity modelling from tables made by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedrepro.evidence.tables import TABLE_COLUMNS, Tables, derived_rows, read_printed
from fedrepro.files import ROOT
from fedrepro.studies.fgpr import artefacts_multi_fidelity as artefacts
from fedrepro.studies.fgpr.datasets.multi_fidelity import FUNCTIONS
from fedrepro.studies.fgpr.measures import multi_fidelity_measures

PRINTED = read_printed(ROOT / "config/studies/fgpr/published.csv")
METRICS = ("coverage_50", "coverage_80", "coverage_90", "coverage_95", "nlpd", "crps")


def line(experiment, algorithm, setting, seed, round, metric, value, client=-1, step=0, split="test"):
    return [experiment, algorithm, setting, seed, round, step, client, "", split, metric, value, "synthetic", False]


def table(name, arms=tuple(artefacts.ROWS)):
    """Arm i has the errors 0.1 (i + 1) and 0.1 (i + 1) + 0.02 in seeds 0 and 1 at the last round, and 1 at round 0."""
    lines = []
    for i, (algorithm, setting) in enumerate(arms):
        for seed in (0, 1):
            error = 0.1 * (i + 1) + 0.02 * seed
            about = (f"fgpr/{name}", algorithm, setting, seed)
            lines.append(line(*about, 0, "a_rmse", 1.0))
            lines += [line(*about, 9, metric, 0.9) for metric in METRICS]
            lines += [line(*about, 9, "a_rmse", error), line(*about, 9, "a_rmse_trivial", 2.0)]
    raw = pd.DataFrame(lines, columns=TABLE_COLUMNS)
    return pd.concat([raw, derived_rows(multi_fidelity_measures(raw), raw)], ignore_index=True)


@pytest.fixture(scope="module")
def tables():
    names = [f"multi_fidelity_{function}" for function in artefacts.NAMES]
    return Tables({name: table(name) for name in names}, PRINTED)


def test_table4_2_has_every_method_with_its_printed_value_the_limit_and_the_trivial_predictor(tables):
    found = artefacts.table4_2(tables).set_index("method")
    assert found.loc["FGPR", "CURRIN, printed"] == "0.148 ± 0.056"
    assert found.loc["FGPR", "CURRIN"] == "0.110 ± 0.014"
    assert found.loc["Modular GP", "Borehole, printed"] == "0.621 ± 0.004"
    assert found.loc["Separate to convergence", "PARK, printed"] == ""
    assert found.loc["trivial: training mean", "PARK"] == "2.000 ± 0.000"
    assert found.loc["no training: FGPR's first θ", "BRANIN"] == "1.000 ± 0.000"
    assert found.loc["limit: the high fidelity at all samples, ARD", "PARK"].startswith("1.510")
    assert len(found) == len(artefacts.ROWS) + 2
    assert set(artefacts.PRINTED) <= set(found.index)


def test_the_table_of_budgets_has_gains_in_percent(tables):
    found = artefacts.budget_multi_fidelity(tables).set_index("function")
    assert found.loc["PARK", "printed gain of FGPR over Separate, %"] == "77"
    # FGPR 0.1 and 0.12, Separate 0.5 and 0.52: 80 % and 76.9 %, quartiles 77.7, 78.5, 79.2
    assert found.loc["PARK", "FGPR over Separate, published protocol, %"] == "78 [78, 79]"


def test_side_by_side_only_the_methods_that_both_have():
    few = {("fgpr", "published"): "", ("baseline", "ar"): ""}
    names = [f"multi_fidelity_{infix}{function}" for infix in ("", "units_") for function in ("branin", "borehole")]
    both = {name: table(name, few if "units" in name else tuple(artefacts.ROWS)) for name in names}
    found = artefacts.scaling(Tables(both, PRINTED))
    found = found[found["function"] == "Borehole"]
    assert found["method"].tolist() == ["FGPR", "AR", "no training: FGPR's first θ", "trivial: training mean"]
    assert found["printed"].tolist() == ["0.604 ± 0.006", "0.615 ± 0.005", "", ""]
    assert found["own units"].tolist()[:2] == ["0.110 ± 0.014", "0.210 ± 0.014"]


def test_the_noise_floor_table_pairs_the_gain_by_seed():
    arms = {("baseline", f"{fit},noise_floor={floor}"): "" for floor in (1e-06, 0.01) for fit in ("shared", "separate")}
    found = artefacts.noise_floor(Tables({"multi_fidelity_floor": table("multi_fidelity_floor", arms)}))
    assert found["least noise variance"].tolist() == ["1e-06", "0.01"]
    # shared 0.1 and 0.12, separate 0.2 and 0.22: gains of 50 % and 45.5 %
    assert found["gain by sharing, %"].tolist()[0] == "48 [47, 49]"
    assert found["runs with a gain"].tolist() == ["100%", "100%"]


def test_calibration_has_every_method_function_and_metric(tables):
    _, numbers = artefacts.calibration(tables)
    assert len(numbers) == len(artefacts.NAMES) * len(artefacts.ROWS) * 7
    assert numbers.loc[numbers["metric"] == "nlpd", "mean"].eq(0.9).all()


def test_error_over_samples_held_reads_them_from_the_settings():
    arms = {("baseline", f"{m},held={n}"): "" for m in ("separate", "shared", "ar", "modular") for n in (5, 40)}
    _, numbers = artefacts.held(Tables({"multi_fidelity_held": table("multi_fidelity_held", arms)}))
    own = numbers[numbers["method"] == "Separate to convergence"]
    assert own["held"].tolist() == [5, 40]
    assert own["rmse"].tolist() == pytest.approx([0.11, 0.21])
    assert numbers.set_index("method").loc["trivial: training mean", "rmse"] == 2.0


def curves(function):
    """FGPR's curve is the truth itself, in the units of samples that were standardised by (f − 3) / 2."""
    fidelities, x = FUNCTIONS[function], np.linspace(0, 1, 9)
    (low, high), samples, lines = fidelities.domain[0], [], []
    for client, f in enumerate(fidelities.levels):
        y = (f((low + (high - low) * x)[:, None]) - 3) / 2
        samples.append(pd.DataFrame({"x0": x, "y": y, "client": client}))
        for step, (at, mean) in enumerate(zip(x, y, strict=True)):
            for metric, value in (("curve_x", at), ("curve_mean", mean), ("curve_sd", 0.5)):
                lines.append(line(f"fgpr/{function}", "fgpr", "", 0, 4, metric, value, client, step, ""))
    return pd.DataFrame(lines, columns=TABLE_COLUMNS), pd.concat(samples)


def test_fig4_6_draws_the_truth_in_the_clients_units():
    given = {}
    for function in ("linear", "nonlinear"):
        given[f"one_dimensional_{function}"], given[f"one_dimensional_{function}.data"] = curves(function)
    _, drawn = artefacts.fig4_6(Tables(given))
    np.testing.assert_allclose(drawn["mean"], drawn["truth"], atol=1e-9)
    np.testing.assert_allclose(drawn["high"] - drawn["low"], 2 * 1.96 * 0.5)
    assert drawn.groupby(["function", "client"]).size().tolist() == [9] * 4
