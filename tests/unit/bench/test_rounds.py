"""The benchmark runs every system it compares."""

from __future__ import annotations

import pytest
import torch

from fedrepro.bench import rounds, runs
from fedrepro.core import parts, streams
from fedrepro.core.model import build


def test_every_system_is_measured_and_the_bare_ones_have_no_overhead():
    rows = rounds.measure("softmax 60-10", repeats=2)
    assert [r["system"] for r in rows] == ["bare loop", "bare vmap", "fedrepro, loop", "fedrepro, vmap"]
    assert [r["not_gradients"] for r in rows[:2]] == [0, 0]
    assert all(r["median_s"] > 0 and r["not_gradients"] < 1 and r["threads"] in rounds.THREADS for r in rows)
    assert all(r["apart"] < 1e-6 for r in rows[2:])


def test_a_system_is_shown_with_its_fastest_number_of_threads():
    times = {("fedrepro, loop", 1): [2.0, 2.0], ("fedrepro, loop", 2): [1.0, 1.0], ("bare loop", 1): [0.9, 0.9]}
    ours, bare = rounds.rows_of("a case", times)
    assert (ours["threads"], ours["median_s"], ours["ratio"]) == (2, 1.0, 1.0)
    assert bare["ratio"] == pytest.approx(0.9)
    assert ours["not_gradients"] == pytest.approx(0.1)


def test_both_bare_rounds_compute_the_same_model():
    torch.manual_seed(0)
    model = build(parts.model("softmax"), (6,), 10, streams.torch_generator("bench", 0, "init"))
    start = [p.detach().clone() for p in model.parameters()]
    x, y = torch.randn(3, 5, 4, 6), torch.randint(0, 10, (3, 5, 4))
    total = [torch.zeros_like(p) for p in start]
    rounds.bare_round(model, start, [list(zip(*client, strict=True)) for client in zip(x, y, strict=True)], total)
    fused = rounds.bare_vmap(model, dict(zip(dict(model.named_parameters()), start, strict=True)), x, y)
    for one, other in zip(total, fused.values(), strict=True):
        assert one == pytest.approx(other.numpy(), abs=1e-6)


def test_a_whole_run_ends():
    runs.whole_run("fedrepro")


def test_the_engine_ends_where_code_by_hand_does():
    """One batch per client: the order of batches cannot matter."""
    case = rounds.Case("softmax", (6,), clients=4, steps=1, batch=5)
    by_hand = rounds.by_hand(case, 3)
    found = rounds.engine_model(case, 3)
    for name, value in by_hand.items():
        assert found[name] == pytest.approx(value.numpy(), abs=1e-6)
