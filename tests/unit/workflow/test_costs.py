"""Estimates: counts by hand, and paces from earlier runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrepro.files import write_json
from fedrepro.workflow import costs
from fedrepro.workflow.layout import Layout
from tests.configs import experiment, write_config


def test_gradient_steps_by_hand():
    # 3 rounds × 4 clients × 5 full-batch steps × 1 setting × 2 seeds
    assert costs.gradient_steps(experiment(), "fedavg", seeds=2) == 3 * 4 * 5 * 2
    grid = experiment({"algorithms.fedavg.grid": {"lr": [0.1, 0.2, 0.3]}})
    assert costs.gradient_steps(grid, "fedavg", seeds=2) == 3 * 3 * 4 * 5 * 2


def test_gradient_steps_of_sampled_clients_in_epochs():
    # two of the four clients; six samples in batches of four are two steps per epoch, three epochs
    changes = {"participation.clients": 2, "local": {"epochs": 3, "batch": 4}}
    assert costs.gradient_steps(experiment(changes), "fedavg", seeds=1) == 3 * 2 * (3 * 2)


def test_a_method_without_rounds_takes_no_gradient_steps():
    fit = experiment({"algorithms": {"exact": {"method": "closed_form"}}})
    assert costs.gradient_steps(fit, "exact", seeds=2) == 0


def test_a_linear_model_is_guessed_to_be_faster_than_a_network():
    linear, network = experiment(), experiment({"model": {"name": "mlp", "hidden": [4]}})
    assert costs.unknown_pace(linear, flops=0.0, rate=10.0) == costs.UNKNOWN_LINEAR_PACE
    assert costs.unknown_pace(network, flops=0.0, rate=10.0) == costs.UNKNOWN_PACE
    # 2 GFLOP at 10 GFLOP/s, plus the fixed cost of a step
    assert 1 / costs.unknown_pace(network, flops=2e9, rate=10.0) == pytest.approx(0.2 + 1 / costs.UNKNOWN_PACE)


def test_the_arithmetic_of_a_step_by_hand():
    # 784 × 200 + 200 × 10 products: twice as many operations forward, four times as many back, none for the pixels
    spec = {"dataset": {"name": "mnist"}, "model": {"name": "mlp", "hidden": [200]}, "local": {"steps": 1, "batch": 10}}
    each = 2 * (784 * 200 + 200 * 10)
    assert costs.step_flops(experiment(spec), 60) == 10 * (each + each + 2 * 200 * 10)
    whole = {**spec, "local": {"steps": 1, "batch": "full"}}
    assert costs.step_flops(experiment(whole), 60) == 6 * costs.step_flops(experiment(spec), 60)
    assert costs.step_flops(experiment(), 60) == 0  # not a network


def test_a_pace_is_slowed_down_by_a_larger_network_and_never_sped_up():
    known = costs.Known(seconds=8.0, steps=100, runs=2, flops=1e9)
    assert known.seconds_of(50, 2, flops=1e9, rate=10.0) == 4.0
    # 2 GFLOP more per step, 10 GFLOP per second
    assert known.seconds_of(50, 2, flops=3e9, rate=10.0) == pytest.approx(4.0 + 50 * 0.2)
    assert known.seconds_of(50, 2, flops=1e8, rate=10.0) == 4.0


def test_a_method_without_rounds_takes_its_time_per_run():
    assert costs.Known(seconds=8.0, steps=0, runs=2, flops=0.0).seconds_of(0, 30, flops=0.0, rate=10.0) == 120.0


@pytest.fixture
def layout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Layout(write_config(tmp_path))


def manifest(steps: int, seconds: float, resumed: int | None = None) -> dict:
    known = {
        "experiment": "toy/line",
        "algorithm": "fedavg",
        "scale": "smoke",
        "seeds": [0],
        "config": experiment().spec,
    }
    return {**known, "gradient_steps": steps, "seconds": seconds, "resumed_from": resumed}


def test_an_estimate_takes_the_pace_of_the_largest_whole_run(layout, tmp_path):
    runs = tmp_path / "results" / "smoke" / "runs" / "toy" / "line" / "fedavg"
    write_json(runs / "0-1.json", manifest(1000, 10.0))
    write_json(runs / "2-3.json", manifest(10000, 20.0))
    write_json(runs / "4-5.json", manifest(90000, 6.0, resumed=7))
    write_json(runs / "6-7.json", manifest(80000, 4.0))  # too short to be used
    jobs = {
        j.algorithm: j for j in costs.training_jobs(Path(layout.results).parent, layout.experiments.values(), rate=10.0)
    }
    assert jobs["fedavg"].measured
    assert jobs["fedavg"].seconds == pytest.approx(costs.START + 120 / 500)
    assert not jobs["fedpd"].measured
    assert jobs["fedpd"].seconds == pytest.approx(costs.START + 120 / costs.UNKNOWN_LINEAR_PACE)


def test_gpu_seconds_are_those_of_the_arithmetic_or_of_the_steps():
    # 3 rounds of 5 steps are 15 ms on a GPU, and 10 TFLOP are 5 s
    e = experiment()
    assert costs.gpu_seconds(e, 6, flops=1e13) == pytest.approx(costs.GPU_START + 5.0)
    assert costs.gpu_seconds(e, 6, flops=1e9) == pytest.approx(costs.GPU_START + 0.015)


def test_a_core_computes_something():
    assert costs.core_rate(size=64, seconds=0.01) > 0


def test_disk_by_what_earlier_runs_wrote(layout, tmp_path):
    e = layout.experiments["toy/line"]
    empty = costs.Sizes.found(tmp_path / "results")
    # rounds 0, 2, 3 of 2 seeds; 24 samples in each of 2 seeds
    assert empty.run(e, "fedavg", seeds=2) == 3 * 2 * costs.EVALUATION_BYTES
    assert empty.data([e, e]) == 2 * 24 * costs.SAMPLE_BYTES
    demo = tmp_path / "results" / "demo"
    run = demo / "runs" / "toy" / "line" / "fedavg" / "0-3.json"
    about = {"experiment": "toy/line", "algorithm": "fedavg", "scale": "demo", "seeds": [0, 1, 2, 3]}
    write_json(run, {**about, "config": {**e.spec, "rounds": 8}})  # rounds 0, 2, …, 8 of 4 seeds
    run.with_suffix(".parquet").write_bytes(bytes(5 * 4 * 70))
    data = demo / "data" / "dfl_line-1" / "0-3.json"
    write_json(data, {"name": "dfl_line", "samples": {"train": 20, "test": 5}})
    data.with_suffix(".npz").write_bytes(bytes(4 * 25 * 16))
    found = costs.Sizes.found(tmp_path / "results")
    assert found.run(e, "fedavg", seeds=2) == 3 * 2 * 70
    assert found.run(e, "fedpd", seeds=2) == empty.run(e, "fedpd", seeds=2)
    assert found.data([e]) == 2 * 24 * 16
