"""DFL in the engine: a run is resumed to the same bytes, and settings of the server alone share their client steps."""

from __future__ import annotations

import pytest

from fedrepro.studies.dfl.algorithms.dfl import DFL
from tests.builders import FULL_BATCH, RAGGED, federations, make_plan, make_task, run
from tests.crashes import assert_resumes
from tests.unit.core.test_clients import make_works, results

CASES = {
    "every step recorded": (DFL(servers=3, server_steps=1, record="steps"), {"weights": "uniform"}),
    "a server is lost": (DFL(servers=3, lost_at=2, lost_server=1), {}),
}


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
@pytest.mark.parametrize("case", CASES)
def test_a_resumed_run_ends_with_the_same_bytes(tmp_path, case, strategy):
    algorithm, participation = CASES[case]
    by_seed = federations("linear", {0: RAGGED, 1: RAGGED[::-1]})
    plan = make_plan(4, FULL_BATCH, client_metrics="always", **participation)
    task = make_task("linear")
    assert_resumes(
        tmp_path / "job.pt", 4, lambda **options: run(task, by_seed, plan, algorithm, strategy=strategy, **options)
    )


def test_settings_that_differ_only_at_the_server_are_one_call(gradients):
    task = make_task("linear")
    some = [DFL(servers=3, server_steps=1), DFL(servers=1, server_steps=9, graph="path", record="steps")]
    results("vmap", task, make_works(task, some, sizes=[6, 6, 6], model="linear"))
    assert (gradients.calls, gradients.evaluations) == (4, 24)
