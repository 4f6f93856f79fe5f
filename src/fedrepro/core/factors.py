"""A dense first layer of many clients at once, as the factors of what they add to it.

A step of SGD on a batch x [B, in] changes the first layer's weight W [out, in] by −a δᵀx, where δ [B, out] is the
gradient in the layer's product x Wᵀ. After any number of steps a client's weight is therefore

    W_k = W + D_kᵀ X_k,    X_k [R, in] its samples of the round, D_k [R, out] the sums of their −a δ,

and the layer's product at a batch is x Wᵀ + (x X_kᵀ) D_k. So a round needs X_k Wᵀ and X_k X_kᵀ once, its steps move the
small D_k, and W_k, far larger than a cache for all clients together, is written once instead of in every step.

The client's own code does not change: it is given D in the place of W, with D = 0 for the server's weight, and a task
whose gradient in D is δ. That is right where a client only adds, scales and subtracts models and gradients, such that
the factors of the models sum to 1; and where the server only sums what it is sent, no W_k need be made at all. Methods
of which both hold say so: `Algorithm.sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from fedrepro.core.federation import Batch, Samples
from fedrepro.core.params import Params
from fedrepro.core.task import Task


class Weights:
    """The clients' weights W_k [C, out, in], unmade: those of the server, `weight` [out, in] or one a client, and the
    factors d [C, R, out] and x [C, R, in]. It is cut and summed like a tensor with the clients as first axis."""

    def __init__(self, weight: Tensor, d: Tensor, x: Tensor):
        self.weight, self.d, self.x = weight.expand(len(x), -1, -1), d, x

    @property
    def nbytes(self) -> int:
        """Of the weights, which is what clients send."""
        return self.weight.nbytes

    def __getitem__(self, part: slice) -> Weights:
        return Weights(self.weight[part], self.d[part], self.x[part])

    def dense(self) -> Tensor:
        return torch.baddbmm(self.weight, self.d.mT, self.x)

    def unbind(self, axis: int) -> tuple[Tensor, ...]:
        return self.dense().unbind(axis)

    def weighted_sum(self, factors: Tensor) -> Tensor:
        """Σ_k factors[k] · W_k, of which all clients' samples make one product."""
        shared = self.weight.stride(0) == 0
        start = factors.sum() * self.weight[0] if shared else torch.tensordot(factors, self.weight, dims=1)
        d = self.d * factors[:, None, None]
        return torch.addmm(start, d.flatten(0, 1).mT, self.x.flatten(0, 1))


@dataclass(frozen=True)
class Places:
    """Where each step's samples are among those of a round: it unbinds, as the samples would, into one slice a step."""

    steps: int
    batch: int

    def unbind(self, axis: int) -> list[slice]:
        return [slice(t * self.batch, (t + 1) * self.batch) for t in range(self.steps)]


class Factors:
    """The first layer of a stack of clients: their server's weight [out, in] (or one a client), and `x` [C, R, in]."""

    def __init__(self, name: str, weight: Tensor, ready: Samples):
        self.name, self.weight = name, weight
        clients, steps, batch = ready.x.shape[:3]
        self.x = ready.x.reshape(clients, steps * batch, -1)
        self.product = self.x @ weight.mT
        self.gram = self.x @ self.x.mT
        self.places = Places(steps, batch)

    @staticmethod
    def pay(task: Task, algorithm: Any, message: Any, ready: Samples | None) -> bool:
        """Whether the method and the model allow it, and a round's samples are fewer than the layer is wide."""
        name = getattr(task.model, "first_weight", None)
        if name is None or ready is None or not vars(type(algorithm)).get("sums", False):
            return False
        steps, batch = ready.x.shape[1:3]
        return steps * batch <= min(message[name].shape[-2:])

    def message(self, message: Params) -> Params:
        """The server's message with D = 0 in the place of the weight."""
        start = self.weight.new_zeros(*self.weight.shape[:-2], self.x.shape[1], self.weight.shape[-2])
        return Params({**message, self.name: start})

    def ready(self, ready: Samples) -> Samples:
        """The batches, in which the samples of a step are their place among those of the round."""
        return Samples(self.places, ready.y)

    def models(self, uploads: Params) -> Params:
        """The clients' models, of those with D in the place of the weight."""
        return Params({**uploads, self.name: Weights(self.weight, uploads[self.name], self.x)})


class FactoredTask(Task):
    """The task of one client, inside `vmap`, whose batches and first layer are those of `Factors`: product [R, out] and
    gram [R, R] are its own."""

    def __init__(self, task: Task, product: Tensor, gram: Tensor):
        super().__init__(task.model)
        self.name, self.product, self.gram = task.model.first_weight, product, gram
        self.after = _After(task.model)

    def gradient_and_loss(self, w, batch, of=None):
        if of is not None:
            raise NotImplementedError("a part of the gradient, by factors")
        rest = {f"model.{name}": value for name, value in w.items() if name != self.name}
        z = torch.addmm(self.product[batch.x], self.gram[batch.x], w[self.name])

        def objective(rest: dict[str, Tensor], z: Tensor) -> Tensor:
            return self._mean(functional_call(self.after, rest, (z,)), batch)

        (gradients, delta), loss = grad_and_value(objective, argnums=(0, 1))(rest, z)
        here, rows = batch.x, len(self.gram)
        in_place = F.pad(delta, (0, 0, here.start, rows - here.stop))
        found = {name: in_place if name == self.name else gradients[f"model.{name}"] for name in w}
        return Params(found), loss

    def loss(self, w: Params, batch: Batch) -> Tensor:
        raise NotImplementedError("a loss without its gradient, by factors")


class _After(nn.Module):
    """A network from its first layer's product on."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, z: Tensor) -> Tensor:
        return self.model.after_first(z)
