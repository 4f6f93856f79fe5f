"""Methods without servers have none of the study's measures."""

from __future__ import annotations

from fedrepro.core.metrics import MetricLog
from fedrepro.studies.dfl.measures import measure


def test_a_diverged_run_of_another_method_has_no_measures():
    log = MetricLog()
    log.add(("", 0), 0, "loss", 4.0, split="train")
    log.add(("", 0), 1, "diverged", 1.0)
    table = log.frame("dfl/line", "fedavg").assign(data="synthetic", diverged=True)
    assert len(measure(table)) == 0
