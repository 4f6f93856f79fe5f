"""Layers that several architectures share."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import max_pool2d


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
