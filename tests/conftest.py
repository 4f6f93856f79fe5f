"""What all tests share: one thread, as in a training job, no clock in property tests, and counting of gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

from tests.builders import GradientCounter

torch.set_num_threads(1)
settings.register_profile("no clock", deadline=None)  # a busy machine is no failure
settings.load_profile("no clock")


@pytest.fixture
def gradients(monkeypatch: pytest.MonkeyPatch) -> GradientCounter:
    """Counts gradient evaluations, one a client and step, however many clients are computed together."""
    counter = GradientCounter()
    counter.install(monkeypatch)
    return counter
