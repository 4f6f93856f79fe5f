"""The network of Omni-Fedge: its parameters, its own layers and their start."""

from __future__ import annotations

import math

import pytest
import torch

from fedrepro.core.model import build
from fedrepro.studies.omni.models.omni_cnn import OmniCNN


@pytest.mark.parametrize(("hyper", "parameters"), [({}, 607_394), ({"filters": 32, "activation": True}, 693_962)])
def test_the_network_of_omni_fedge_has_as_many_parameters_as_the_authors_have(hyper, parameters):
    model = build(OmniCNN, (1, 28, 28), 10, torch.Generator().manual_seed(0), **hyper)
    assert sum(p.numel() for p in model.parameters()) == parameters
    assert sum(dict(model.named_parameters())[name].numel() for name in model.own) == 1_290
    bound = math.sqrt(6 / (128 + 10))  # Glorot
    assert 0.97 * bound < model.head.weight.abs().max() <= bound
    assert not model.head.bias.any()
    assert model(torch.randn(4, 1, 28, 28)).shape == (4, 10)
