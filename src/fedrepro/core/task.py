"""A model and its objective: losses, gradients and scores at given parameters.

Inside `torch.func.vmap`, `gradient` uses the functional form of the model; outside, autograd on the one resident
module, whose parameters are set to `w`.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call, grad_and_value

from fedrepro.core.federation import Batch, Batches, Holdings
from fedrepro.core.model import ClosedFormModel, Model
from fedrepro.core.params import Params, inside_transform
from fedrepro.errors import UserError

EVALUATION_BYTES = 2**20  # of samples evaluated at a time: few enough that activations stay in the cache


def cross_entropy(output: Tensor, y: Tensor, reduction: str = "none") -> Tensor:
    """−log p_y per sample: output [B, classes], y [B] → [B] (or their mean)."""
    return F.cross_entropy(output, y, reduction=reduction)


def half_squared_error(output: Tensor, y: Tensor, reduction: str = "none") -> Tensor:
    """½ (ŷ − y)² per sample: [B], [B] → [B] (or their mean)."""
    return 0.5 * F.mse_loss(output, y, reduction=reduction)


def accuracy(output: Tensor, y: Tensor) -> Tensor:
    return (output.argmax(-1) == y).to(output.dtype)


def squared_error(output: Tensor, y: Tensor) -> Tensor:
    return (output - y).square()


#: objective → (loss of a sample, score of a sample, name of the score's mean)
OBJECTIVES = {
    "cross_entropy": (cross_entropy, accuracy, "accuracy"),
    "half_squared_error": (half_squared_error, squared_error, "mse"),
}


class Task:
    """The clients' problem: a model under its `objective`."""

    def __init__(self, model: Model):
        self.model = model
        self.sample_loss, self.sample_score, self.score_name = OBJECTIVES[model.objective]
        self._parameters = dict(model.named_parameters())
        # buffers outside the state (persistent=False) are constants
        self._buffers = [name for name in model.state_dict() if name not in self._parameters]

    def parameters(self) -> Params:
        """A copy of the module's parameters, then of its buffers (see `Params`)."""
        both = {**self._parameters, **{name: self.model.get_buffer(name) for name in self._buffers}}
        return Params({k: p.detach().clone() for k, p in both.items()})

    def loss(self, w: Params, batch: Any) -> Tensor:
        """Mean loss over the batch (or its summary), a scalar."""
        if isinstance(self.model, ClosedFormModel):
            return self.model.batch_loss(w, batch)
        return self._loss_and_buffers(w, self._without_padding(batch))[0]

    def gradient(self, w: Params, batch: Any, of: Sequence[str] | None = None) -> Params:
        """∇ of the mean loss over the batch at w, in all parameters or those named in `of`."""
        if isinstance(self.model, ClosedFormModel):
            whole = self.model.batch_gradient(w, batch)
            return whole if of is None else Params({name: whole[name] for name in of})
        return self.gradient_and_loss(w, batch, of)[0]

    def gradient_and_loss(self, w: Params, batch: Any, of: Sequence[str] | None = None) -> tuple[Params, Tensor]:
        if isinstance(self.model, ClosedFormModel):
            return self.model.batch_gradient(w, batch), self.model.batch_loss(w, batch)
        names = list(self._parameters) if of is None else list(of)
        batch = self._without_padding(batch)
        if inside_transform():
            part = Params({name: w[name] for name in names})
            objective = grad_and_value(lambda at: self._loss_and_buffers({**w, **at}, batch), has_aux=True)
            gradient, (loss, buffers) = objective(part)
            return gradient.with_buffers(buffers) if buffers else gradient, loss
        for name, parameter in self._parameters.items():
            parameter.data = w[name]
        if self._buffers:
            loss, buffers = self._loss_and_buffers({**self._parameters, **{k: w[k] for k in self._buffers}}, batch)
        else:
            loss, buffers = self._mean(self.model(batch.x), batch), {}
        gradients = torch.autograd.grad(loss, [self._parameters[name] for name in names])
        gradient = Params(zip(names, gradients, strict=True))
        return gradient.with_buffers(buffers) if buffers else gradient, loss.detach()

    @torch.no_grad()
    def training_loss(self, w: Params, batches: Batches) -> Tensor:
        """F_k(w), a scalar: over the samples of the round's first pass, or of its steps if these are fewer."""
        if batches.whole is not None:
            return self.loss(w, batches.whole)
        total: Any = 0.0
        count: Any = 0.0
        for batch in batches.head(min(batches.steps, batches.steps_per_epoch)):
            size = len(batch.y) if batch.weight is None else batch.weight.sum()
            total, count = total + size * self.loss(w, batch), count + size
        loss: Tensor = total / count
        return loss

    @torch.no_grad()
    def evaluate(self, w: Params, holdings: Holdings, clients: list[int]) -> Tensor:
        """Mean loss and mean score of each client on its own rows: [2, len(clients)], on the device, in float64 if it
        has that type."""
        samples = holdings.samples
        sizes = np.array([len(holdings.of(k)) for k in clients])
        rows = samples.on_device(np.concatenate([holdings.of(k) for k in clients]))
        owner = samples.on_device(np.repeat(np.arange(len(clients)), sizes))
        exact = torch.float32 if rows.device.type == "mps" else torch.float64
        sums = torch.zeros(2, len(clients), dtype=exact, device=rows.device)
        self.model.eval()
        size = max(1, EVALUATION_BYTES // max(1, samples.x[0].nbytes))
        for start in range(0, len(rows), size):
            part = rows[start : start + size]
            y = samples.y[part]
            output = functional_call(self.model, w, (samples.inputs(samples.x[part]),))
            both = torch.stack([self.sample_loss(output, y), self.sample_score(output, y)])
            sums.index_add_(1, owner[start : start + size], both.to(exact))
        self.model.train()
        return sums / samples.on_device(sizes)

    def _loss_and_buffers(self, w: dict[str, Tensor], batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Mean loss over the batch, and the buffers after it."""
        at = dict(w)  # functional_call writes a module's new buffers into it
        loss = self._mean(functional_call(self.model, at, (batch.x,)), batch)
        return loss, {name: at[name] for name in self._buffers}

    def _without_padding(self, batch: Batch) -> Batch:
        """For models with buffers: padding would enter the statistics of the batch."""
        if not self._buffers or batch.weight is None:
            return batch
        if inside_transform():
            raise UserError(f"strategy: vmap needs whole batches for {type(self.model).__name__}'s buffers: use loop")
        held = batch.weight > 0
        shares = batch.weight[held]
        return Batch(batch.x[held], batch.y[held], None if batch.size is None else shares, batch.size)

    def _mean(self, output: Tensor, batch: Batch) -> Tensor:
        if batch.weight is None:
            return self.sample_loss(output, batch.y, "mean")
        return (self.sample_loss(output, batch.y) * batch.shares()).sum()
