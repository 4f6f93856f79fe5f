"""DGP and DVI at the server: with one device they are a plain Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedrepro.core.federation import Federation, Holdings
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.algorithms.gp_distributed import GPDistributed
from fedrepro.studies.fgpr.algorithms.gp_maximum import GPMaximum
from tests.builders import federate, make_plan, make_task, run


def federation(devices: int = 1, outputs: int = 1) -> Federation:
    rng = np.random.default_rng(4)
    data, tests = [], []
    for part in (data, tests):
        for _ in range(devices):
            x = rng.random((14, 1))
            y = np.stack([np.sin((5 + s) * x[:, 0]) for s in range(outputs)], 1) + 0.1 * rng.normal(size=(14, outputs))
            part.append((x, y if outputs > 1 else y[:, 0]))
    return Federation(federate(*data).train, test=federate(*tests).train)


def found(federation: Federation, algorithm, **model):
    return run(make_task("gaussian_process", 1, **model), federation, make_plan(1), algorithm)


def test_one_expert_is_the_process_itself():
    data = federation()
    alone, expert = (found(data, a) for a in (GPMaximum(starts=1), GPDistributed(fit="dgp")))
    plain = alone.values("a_rmse", split="test", client=-1)[-1]
    for metric in ("rmse_central_poe", "rmse_central_gpoe", "rmse_central_bcm"):
        assert expert.values(metric, split="test", client=-1)[-1] == pytest.approx(plain, rel=1e-6)
    # rBCM weighs even a single expert by what it has learned
    assert expert.values("rmse_central", split="test")[-1] == expert.values("a_rmse", split="test", client=-1)[-1]
    assert expert.values("uploaded").tolist() == [2 * 14]


def test_dvi_with_all_samples_as_inducing_points_is_close_to_the_process():
    data = federation()
    alone, sparse = (found(data, a) for a in (GPMaximum(starts=1), GPDistributed(fit="dvi", inducing=14)))
    plain = alone.values("a_rmse", split="test", client=-1)[-1]
    assert sparse.values("rmse_central", split="test", client=-1)[-1] == pytest.approx(plain, abs=0.02)
    assert sparse.values("exchanges")[0] > 1
    assert sparse.values("uploaded")[0] >= sparse.values("exchanges")[0] * 14 * 14


@pytest.mark.parametrize("rule", ["", "_poe", "_gpoe", "_bcm"])
def test_experts_together_beat_the_worst_of_them(rule):
    """rBCM is the rule without a suffix."""
    data = federation(3)
    together = found(data, GPDistributed(fit="dgp")).values(f"rmse_central{rule}", split="test")[-1]
    alone = [found(Federation(_only(data, k), test=_all(data)), GPDistributed(fit="dgp")) for k in range(3)]
    assert together < max(one.values("rmse_central_poe", split="test")[-1] for one in alone)


def _only(data: Federation, k: int) -> Holdings:
    return Holdings(data.train.samples, data.train.of(k), np.array([0, data.train.sizes[k]]))


def _all(data: Federation) -> Holdings:
    return Holdings(data.test.samples, data.test.rows, np.array([0, len(data.test.rows)]))


def test_the_central_error_is_over_all_test_samples_of_all_devices():
    result = found(federation(3), GPDistributed(fit="dgp"))
    mse = result.values("rmse", split="test")
    central = result.values("rmse_central", split="test", client=-1)[-1]
    assert central == pytest.approx(np.sqrt(np.mean(mse**2)))


def test_outputs_are_fitted_one_after_the_other():
    both = found(federation(2, outputs=2), GPDistributed(fit="dgp"), outputs=2)
    assert both.values("rmse_central", group="1", client=-1).shape == (1,)
    assert both.values("rmse_central", group="2", client=-1).shape == (1,)
    assert torch.isfinite(both.only.state["laws"]["rbcm"]).all()


def test_an_unknown_fit_is_an_error():
    with pytest.raises(UserError, match="fit = 'svgp'"):
        GPDistributed(fit="svgp")
