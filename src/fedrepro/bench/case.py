"""A case of the bench: a model on random samples, and the work of one round of FedAvg."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fedrepro.core import parts, streams
from fedrepro.core.federation import Federation, Holdings, LocalWork, Samples
from fedrepro.core.model import Model, build

LR, CLASSES = 0.05, 10


@dataclass(frozen=True)
class Case:
    """Samples of a shape, and a round: clients, each with its steps of batches."""

    model: str
    shape: tuple[int, ...]
    hyper: dict[str, Any] = field(default_factory=dict)
    clients: int = 50
    steps: int = 5
    batch: int = 10

    @property
    def work(self) -> LocalWork:
        return LocalWork(steps=self.steps, batch=self.batch)

    def build(self, dtype: torch.dtype = torch.float32) -> Model:
        start = streams.torch_generator("bench", 0, "init")
        return build(parts.model(self.model), self.shape, CLASSES, start, **self.hyper).to(dtype)

    def federation(self, dtype: torch.dtype = torch.float32) -> Federation:
        """Each client has as many samples as it uses in a round."""
        rng, rows = streams.generator("bench", 0, "data"), self.clients * self.steps * self.batch
        x = torch.from_numpy(rng.normal(size=(rows, *self.shape)).astype(np.float32))
        return split_evenly(x.to(dtype), torch.from_numpy(rng.integers(0, CLASSES, rows)), self.clients)

    def client_tensors(self) -> Sequence[tuple[Tensor, Tensor]]:
        """(x, y) per client."""
        return [(own.x, own.y) for own in map(self.federation().train.full_batch, range(self.clients))]


def split_evenly(x: Tensor, y: Tensor, clients: int) -> Federation:
    """The rows in order, equally many per client."""
    return Federation(Holdings(Samples(x, y), np.arange(len(y)), np.arange(clients + 1) * (len(y) // clients)))
