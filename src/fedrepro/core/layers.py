"""Layers that several architectures share."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm, max_pool2d


def max_pool_2(z: Tensor) -> Tensor:
    """The largest of every 2×2 pixels, [..., height, width] → [..., height // 2, width // 2].

    torch's own pooling notes where each maximum was. A gradient needs that; without one it only takes time, on a CPU
    several times that of the convolution before it.
    """
    if torch.is_grad_enabled():
        return max_pool2d(z, 2)
    height, width = (size // 2 * 2 for size in z.shape[-2:])
    rows = torch.maximum(z[..., 0:height:2, :], z[..., 1:height:2, :])
    return torch.maximum(rows[..., 0:width:2], rows[..., 1:width:2])


class _Plain(nn.Module):
    """A norm that starts as the identity on normalised values."""

    weight: nn.Parameter
    bias: nn.Parameter

    def initialise(self, generator: torch.Generator) -> None:
        self.weight.fill_(1.0)
        self.bias.zero_()


class GroupNorm(_Plain, nn.GroupNorm):
    pass


class BatchNorm(_Plain):
    """Batch norm over [B, channels, height, width], as torch's: by the batch's statistics in training, by the running
    ones otherwise. These are assigned, never changed in place, so that it also works inside `torch.func.vmap`, and
    there is no count of batches among its buffers, which could not be averaged."""

    momentum, epsilon = 0.1, 1e-5
    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return batch_norm(x, self.mean, self.variance, self.weight, self.bias, eps=self.epsilon)
        variance, mean = torch.var_mean(x.detach(), (0, 2, 3))
        self.mean = torch.lerp(self.mean, mean, self.momentum)
        self.variance = torch.lerp(self.variance, variance, self.momentum)
        return batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.epsilon)
