"""The network of Omni-Fedge: its parameters, its own layers and their start."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import leaky_relu, max_pool2d, relu

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


@pytest.mark.parametrize("hyper", [{}, {"filters": 32, "activation": True}])
def test_the_order_of_pixels_and_of_pooling_changes_neither_logits_nor_gradients(hyper):
    model = build(OmniCNN, (1, 28, 28), 10, torch.Generator().manual_seed(0), **hyper).double()
    x = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x[x < 0.7] = 0  # a background of equal pixels: maxima that tie

    z = model.convolution(x)  # as the docstring writes the layers
    z = max_pool2d(relu(z) if model.activation else z, 2)
    plain = leaky_relu(model.head(leaky_relu(model.dense(z.flatten(1)), 0.1)), 0.1)
    ours = model(x)
    torch.testing.assert_close(ours, plain, rtol=0, atol=1e-12)
    parameters = list(model.parameters())
    for mine, theirs in zip(
        torch.autograd.grad(ours.square().sum(), parameters),
        torch.autograd.grad(plain.square().sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)
