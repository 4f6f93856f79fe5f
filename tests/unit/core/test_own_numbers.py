"""Extensions for methods: numbers that a client reports about itself, and noise of a given width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest

from fedrepro.algorithms.fedavg import FedAvg
from fedrepro.core.algorithm import Metric
from tests.builders import federations, make_plan, make_task, run


@dataclass(frozen=True)
class Telling(FedAvg):
    noisy: ClassVar[bool] = True

    def noise_width(self, parameters):
        return 2 * parameters + 1

    def init_client(self, problem, client, w):
        return w["w"].new_zeros(2)

    def client_update(self, task, message, local, batches):
        w, _ = super().client_update(task, message, None, batches)
        return w, w["w"].new_tensor(list(batches.noise.shape))

    def client_metrics(self, problem, local, client):
        yield Metric("steps", local[0].item())
        yield Metric("width", local[1].item(), step=client)


@pytest.mark.parametrize(("when", "rounds"), [("never", []), ("last", [3]), ("always", [0, 1, 2, 3])])
def test_clients_own_numbers_are_recorded_with_their_losses(when, rounds):
    by_seed = federations("linear", {0: (4, 5)})
    found = run(make_task("linear"), by_seed, make_plan(3, client_metrics=when), Telling(lr=0.01))
    own = found.frame[found.frame["metric"] == "steps"]
    assert sorted(set(own["round"])) == rounds
    assert own[own["round"] == 3]["client"].tolist() == ([0, 1] if rounds else [])


def test_noise_has_the_width_that_a_method_asks_for():
    """Four parameters (three features and the intercept), two epochs of full batches."""
    by_seed = federations("linear", {0: (4, 5)})
    found = run(make_task("linear"), by_seed, make_plan(1), Telling(lr=0.01))
    assert found.values("steps", round=1).tolist() == [2, 2]
    assert found.values("width", round=1).tolist() == [9, 9]
