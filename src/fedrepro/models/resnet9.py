"""ResNet-9 as FL-SC-NIID has it, whose partitions paper 000 uses (§V-B: "3 convolutional layers, 2 residual layers, a
pooling layer and one linear layer").

    conv w → conv 2w, pool 2 → residual(2w, 2w) → conv 4w, pool 2 → conv 8w, pool 2 → residual(8w, 8w) → pool 4 → dense

with w = 64; each conv is 3×3, padded, then norm and ReLU. The paper counts 8 layers; ResNet-9, and this one, have 9
(4 + 4 + 1). `norm: batch` has running statistics, which the server averages like parameters; `norm: group` has none. A
narrower network (`width`) is a deviation that an experiment states.
"""

from torch import Tensor, nn
from torch.nn.functional import max_pool2d, relu

from fedrepro.core.model import LOOP, BatchNorm, Example, GroupNorm, Model, max_pool_2
from fedrepro.errors import UserError

GROUP = 4  # channels that share a mean and a variance; assumed: small enough for narrow networks
NORMS = {"batch": BatchNorm, "group": lambda channels: GroupNorm(max(1, channels // GROUP), channels)}


class ResNet9(Model):
    """x [B, channels, height, width] → logits [B, outputs]; sides of at least 32 pixels."""

    objective = "cross_entropy"
    example = Example((2, 32, 32), hyper={"width": 2, "norm": "group"})
    strategies = LOOP  # vmap cannot leave padding out of batch norm's statistics

    def __init__(self, inputs: tuple[int, ...], outputs: int, width: int = 64, norm: str = "batch"):
        super().__init__()
        if norm not in NORMS:
            raise UserError(f"resnet9: norm = '{norm}': must be one of {', '.join(NORMS)}")
        channels, *sides = inputs
        if min(sides) < 32:
            raise UserError(f"resnet9: pictures of {sides[0]}×{sides[1]} pixels: 32×32 are the least")
        w = width
        self.first, self.second = Convolution(channels, w, norm), Convolution(w, 2 * w, norm)
        self.third = nn.Sequential(Convolution(2 * w, 2 * w, norm), Convolution(2 * w, 2 * w, norm))
        self.fourth, self.fifth = Convolution(2 * w, 4 * w, norm), Convolution(4 * w, 8 * w, norm)
        self.sixth = nn.Sequential(Convolution(8 * w, 8 * w, norm), Convolution(8 * w, 8 * w, norm))
        self.head = nn.Linear(8 * w * (sides[0] // 32) * (sides[1] // 32), outputs)

    def forward(self, x: Tensor) -> Tensor:
        z = max_pool_2(self.second(self.first(x)))
        z = z + self.third(z)
        z = max_pool_2(self.fifth(max_pool_2(self.fourth(z))))
        z = z + self.sixth(z)
        return self.head(max_pool2d(z, 4).flatten(1))


class Convolution(nn.Module):
    """3×3 with padding, norm, ReLU: [B, channels, h, w] → [B, filters, h, w]."""

    def __init__(self, channels: int, filters: int, norm: str):
        super().__init__()
        self.convolution = nn.Conv2d(channels, filters, 3, padding=1)
        self.norm = NORMS[norm](filters)

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.norm(self.convolution(x)))
