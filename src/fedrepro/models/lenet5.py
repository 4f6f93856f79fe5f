"""LeNet-5 (LeCun et al. 1998, Fig. 2), as paper 000, §V-B has it for Fashion-MNIST: three convolutions with pooling
between them, then two dense layers.

    conv 6@5×5, padding 2 → pool 2 → conv 16@5×5 → pool 2 → conv 120@5×5 → dense 84 → dense 10

61,706 parameters on 28×28 pixels and ten classes. Deviations from 1998, on which the paper is silent: ReLU for tanh,
max-pooling for trained averages, all six maps for every filter of the second convolution, and a plain last layer under
cross-entropy for radial basis functions.
"""

from torch import Tensor, nn
from torch.nn.functional import linear, relu

from fedrepro.core.model import LOOP_BUT_ON_CUDA, Example, Model, channels_last, max_pool_2


class LeNet5(Model):
    """x [B, channels, height, width] → logits [B, outputs]; 28×28 pixels leave one by one for the dense layers."""

    objective = "cross_entropy"
    example = Example((1, 28, 28))
    strategies = LOOP_BUT_ON_CUDA
    own = ("head.weight", "head.bias")

    def __init__(self, inputs: tuple[int, ...], outputs: int):
        super().__init__()
        channels, height, width = inputs
        self.first = nn.Conv2d(channels, 6, 5, padding=2)
        self.second = nn.Conv2d(6, 16, 5)
        self.third = nn.Conv2d(16, 120, 5)
        left = [(side // 2 - 4) // 2 - 4 for side in (height, width)]
        self.dense = nn.Linear(120 * left[0] * left[1], 84)
        self.head = nn.Linear(84, outputs)

    def forward(self, x: Tensor) -> Tensor:
        z = relu(max_pool_2(self.first(channels_last(x))))
        z = relu(max_pool_2(self.second(z)))
        z = relu(self._third(z))
        return self.head(relu(self.dense(z.flatten(1))))

    def _third(self, z: Tensor) -> Tensor:
        """The third convolution; on maps as large as its filters (28×28 pixels) a dense layer, which is faster."""
        if z.shape[-2:] != self.third.kernel_size:
            return self.third(z)
        return linear(z.flatten(1), self.third.weight.flatten(1), self.third.bias)
