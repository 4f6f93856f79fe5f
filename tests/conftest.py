"""What all tests share: one thread, as in a training job, and counting of gradient evaluations."""

from __future__ import annotations

import pytest
import torch

from tests.builders import GradientCounter

torch.set_num_threads(1)


@pytest.fixture
def gradients(monkeypatch: pytest.MonkeyPatch) -> GradientCounter:
    """Counts gradient evaluations, one a client and step, however many clients are computed together."""
    counter = GradientCounter()
    counter.install(monkeypatch)
    return counter
