"""Neural networks for regression, one per output (thesis Fig. 4.1, Tables 4.3 and C.1, "Neural").

x [B, d] → ŷ [B, S], or [B] for one output, each through its own hidden layers of widths `hidden`: outputs are
independent, so S networks train at once as each would alone. Loss: ½(ŷ − y)², a mean over samples and a sum over
outputs. `activation`: relu or tanh.
"""

import itertools
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad

from fedrepro.core.algorithm import Metric, Problem
from fedrepro.core.federation import Batch
from fedrepro.core.model import AssessingModel, Assessment, Example
from fedrepro.core.params import Params
from fedrepro.studies.fgpr.gp.device_errors import along, columns, curve, device_errors, output_names

ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh}


class Network(AssessingModel):
    """curve: points of a prediction along x that an assessment adds, for inputs of one dimension."""

    objective = "half_squared_error"
    example = Example(outputs=1)

    def __init__(
        self,
        inputs: tuple[int, ...],
        outputs: int = 1,
        hidden: Sequence[int] = (50,),
        activation: str = "relu",
        curve: int = 0,
    ):
        super().__init__()
        self.outputs_apart, self.activation, self.curve = outputs, ACTIVATIONS[activation], curve
        pairs = list(itertools.pairwise([math.prod(inputs), *hidden, 1]))
        self.weights = nn.ParameterList([torch.empty(outputs, a, b) for a, b in pairs])
        self.biases = nn.ParameterList([torch.empty(outputs, 1, b) for _, b in pairs])

    def initialise(self, generator: torch.Generator) -> None:
        """U(±1/√fan_in) for weight and bias, as torch's dense layers."""
        for weight, bias in zip(self.weights, self.biases, strict=True):
            bound = 1 / math.sqrt(weight.shape[1])
            for parameter in (weight, bias):
                parameter.uniform_(-bound, bound, generator=generator)

    def forward(self, x: Tensor) -> Tensor:
        h = x.flatten(1)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            h = (self.activation(h) if i else h) @ weight + bias  # [S, B, width]
        return h[0, :, 0] if self.outputs_apart == 1 else h[:, :, 0].mT

    def batch_loss(self, w: Params, batch: Batch) -> Tensor:
        squares = (functional_call(self, w, (batch.x,)) - batch.y).square()
        each = squares if squares.ndim == 1 else squares.sum(-1)
        return 0.5 * (each * batch.shares()).sum()

    def batch_gradient(self, w: Params, batch: Batch) -> Params:
        return grad(self.batch_loss)(w, batch)

    @torch.no_grad()
    def assess(self, problem: Problem, models: dict[int, Params], split: str) -> Assessment:
        federation = problem.federation
        metrics: list[Metric] = []
        holdings, predictions = getattr(federation, split), {}
        for k, w in models.items():
            x = holdings.samples.x[holdings.of(k)]
            predictions[k] = columns(functional_call(self, w, (x,))), None
            if self.curve and split == "train":
                x = along(federation, k, self.curve)
                metrics += curve(k, x=x[:, 0], mean=columns(functional_call(self, w, (x,)))[:, 0])
        mse, errors = device_errors(predictions, federation, split, output_names(federation, self.outputs_apart))
        return 0.5 * self.outputs_apart * mse, mse, [*metrics, *errors]
