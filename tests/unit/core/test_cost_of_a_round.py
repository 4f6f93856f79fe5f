"""The cost of a round, counted by torch's profiler instead of timed: more gradients, more copies of the model or more
memory fail here on any machine."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from torch.profiler import ProfilerActivity, profile

from fedrepro.bench.rounds import FEDAVG, Case, one_run
from fedrepro.core.clients import strategy
from fedrepro.core.rounds import advance
from fedrepro.core.task import Task

INPUTS, HIDDEN = 300, 40
TENSORS = 4  # two layers' weights and biases
MODEL_BYTES = 4 * (INPUTS * HIDDEN + HIDDEN + HIDDEN * 10 + 10)


@dataclass(frozen=True)
class Cost:
    calls: Counter  # of torch's operations
    allocated: float  # bytes, as models

    @property
    def operations(self) -> int:
        return sum(self.calls.values())

    @property
    def gradients(self) -> int:
        """Backward passes: each goes through the loss once."""
        return self.calls["aten::_log_softmax_backward_data"]

    @property
    def models_copied(self) -> float:
        return self.calls["aten::clone"] / TENSORS


def cost(way: str, clients: int, steps: int, sampled: int | None = None) -> Cost:
    """The cost of the second round of FedAvg."""
    case = Case("mlp", (INPUTS,), {"hidden": [HIDDEN]}, clients=clients, steps=steps, batch=3)
    task, data = Task(case.build()), case.federation()
    plan, replicate = one_run(task, data, case.work, FEDAVG, sampled)
    advance(task, [replicate], plan, strategy(way), 0)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        advance(task, [replicate], plan, strategy(way), 1)
    events = found.events()
    allocated = sum(max(0, e.self_cpu_memory_usage) for e in events)
    return Cost(Counter(e.name for e in events if e.name.startswith("aten::")), allocated / MODEL_BYTES)


def test_the_loop_takes_one_gradient_per_step_and_one_copy_of_the_model_per_client():
    found = cost("loop", clients=6, steps=3)
    assert found.gradients == 6 * 3
    assert found.models_copied <= 6


def test_vmap_takes_one_gradient_per_step_for_all_clients():
    assert cost("vmap", clients=6, steps=3).gradients == 3
    assert cost("vmap", clients=24, steps=3).gradients == 3


def test_vmaps_operations_hardly_grow_with_the_clients():
    few, many = cost("vmap", clients=6, steps=3), cost("vmap", clients=24, steps=3)
    assert many.models_copied == few.models_copied
    assert (many.operations - few.operations) / (24 - 6) < 0.02 * few.operations


def test_the_loops_operations_are_linear_in_clients_and_steps():
    base, clients, steps = cost("loop", 4, 2), cost("loop", 8, 2), cost("loop", 4, 4)
    assert clients.operations <= 2 * base.operations
    assert steps.operations <= 2 * base.operations


@pytest.mark.parametrize("way", ["loop", "vmap"])
def test_a_step_allocates_a_gradient_and_little_else(way):
    """Per client, in models: its gradient and, under vmap (which does not work in place), its next parameters."""
    short, long = cost(way, clients=6, steps=2), cost(way, clients=6, steps=6)
    each = (long.allocated - short.allocated) / (6 * 4)
    assert each < (1.3 if way == "loop" else 2.5)


@pytest.mark.parametrize("way", ["loop", "vmap"])
def test_clients_that_take_no_part_cost_nothing(way):
    few, many = cost(way, clients=10, steps=2, sampled=5), cost(way, clients=200, steps=2, sampled=5)
    assert many.gradients == few.gradients
    assert many.operations == few.operations
    assert many.allocated == pytest.approx(few.allocated, rel=0.01)
