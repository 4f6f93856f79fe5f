"""A small convolutional network: two convolutions and two dense layers (thesis §2.5.1), cross-entropy.

    conv 5×5, 10 filters → max-pool 2 → ReLU → conv 5×5, 20 filters → max-pool 2 → ReLU → dense 50 → ReLU → dense

The widths are those of the authors' public code; its dropout is left out, since the thesis names none. 21,840
parameters for 28 × 28 pixels and 10 classes: every device can keep its own model.
"""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn.functional import relu

from fedrepro.core.model import Example, Model, max_pool_2

KERNEL = 5


class CNN(Model):
    """x [B, channels, height, width] → logits [B, outputs]."""

    objective = "cross_entropy"
    example = Example((1, 16, 16))

    def __init__(self, inputs: tuple[int, ...], outputs: int, filters: Sequence[int] = (10, 20), dense: int = 50):
        super().__init__()
        channels, *size = inputs
        first, second = filters
        for _ in filters:
            size = [(side - KERNEL + 1) // 2 for side in size]
        self.first = nn.Conv2d(channels, first, KERNEL)
        self.second = nn.Conv2d(first, second, KERNEL)
        self.dense = nn.Linear(second * size[0] * size[1], dense)
        self.head = nn.Linear(dense, outputs)

    def forward(self, x: Tensor) -> Tensor:
        z = relu(max_pool_2(self.first(x)))
        z = relu(max_pool_2(self.second(z)))
        return self.head(relu(self.dense(z.flatten(1))))
