"""The same rounds by other simulators, for `make bench`: pfl's simulated backend, in this process, and Flower's
simulation, in the processes that ray starts for it, one per core. Both are imported where they are used: the
environment of the studies has neither.

A round is FedAvg: every client takes its batches once, in the order of its samples, from the server's model; the server
takes the mean. Each simulator is used as its own documentation has it for PyTorch.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

if TYPE_CHECKING:
    from fedrepro.bench.rounds import Case


def there(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


# --- pfl --------------------------------------------------------------------------------------------------------------


class Pfl:
    """pfl's FederatedAveraging over its SimulatedBackend."""

    def __init__(self, case: Case, lr: float, sampled: int | None = None):
        from pfl.aggregate.simulate import SimulatedBackend
        from pfl.data.dataset import Dataset
        from pfl.data.federated_dataset import FederatedDataset
        from pfl.hyperparam import NNTrainHyperParams
        from pfl.model.pytorch import PyTorchModel

        logging.getLogger("pfl").setLevel(logging.ERROR)
        clients = client_tensors(case)

        def make_dataset(user: int) -> Dataset:
            return Dataset(raw_data=clients[user], user_id=user)

        everyone = iter_forever(case.clients)
        rng = np.random.default_rng(0)
        draw = (lambda: next(everyone)) if sampled is None else (lambda: int(rng.integers(case.clients)))
        federated = FederatedDataset(make_dataset, draw)
        module = with_loss(case.build())
        self.module = module
        self.model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
        self.backend = SimulatedBackend(training_data=federated, val_data=None)
        self.train = NNTrainHyperParams(
            local_batch_size=case.batch, local_num_epochs=1, local_learning_rate=lr, local_max_grad_norm=None
        )
        self.cohort = sampled or case.clients

    def rounds(self, count: int) -> list[float]:
        """Seconds of each of `count` rounds, and one more before them that is not told."""
        from pfl.algorithm.base import NNAlgorithmParams
        from pfl.algorithm.federated_averaging import FederatedAveraging
        from pfl.callback.base import TrainingProcessCallback
        from pfl.metrics import Metrics

        ends: list[float] = []

        class Clock(TrainingProcessCallback):
            def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
                ends.append(time.perf_counter())
                return False, Metrics()

        parameters = NNAlgorithmParams(
            central_num_iterations=count + 1,
            evaluation_frequency=10**9,
            train_cohort_size=self.cohort,
            val_cohort_size=0,
        )
        FederatedAveraging().run(
            parameters, self.backend, self.model, self.train, callbacks=[Clock()], send_metrics_to_platform=False
        )
        return list(np.diff(ends))

    def round(self) -> float:
        """Seconds of one round."""
        return self.rounds(1)[0]

    def parameters(self) -> dict[str, Tensor]:
        return {k: v.detach().clone() for k, v in self.module.named_parameters()}


def with_loss(module: torch.nn.Module) -> torch.nn.Module:
    """What pfl asks of a module: its loss and its metrics."""
    module.loss = lambda x, y, eval=False: F.cross_entropy(module(x), y)
    module.metrics = lambda x, y, eval=True: {}
    return module


def iter_forever(count: int):
    while True:
        yield from range(count)


# --- Flower -----------------------------------------------------------------------------------------------------------


def flower_rounds(
    case: Case, lr: float, count: int, sampled: int | None = None, cores: int = 2
) -> tuple[list[float], dict[str, Tensor]]:
    """Seconds of each of `count` rounds of Flower's FedAvg after a first one, and the model after them."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    logging.getLogger("flwr").setLevel(logging.ERROR)
    from flwr.app import ArrayRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    begins: list[float] = []
    final: dict[str, Tensor] = {}

    class Timed(FedAvg):
        def configure_train(self, *arguments, **named):
            begins.append(time.perf_counter())
            return super().configure_train(*arguments, **named)

        def aggregate_train(self, *arguments, **named):
            done = super().aggregate_train(*arguments, **named)
            ends.append(time.perf_counter())
            return done

    ends: list[float] = []
    server, client = ServerApp(), ClientApp()

    @server.main()
    def main(grid, context):
        strategy = Timed(
            fraction_train=(sampled or case.clients) / case.clients,
            fraction_evaluate=0.0,
            min_train_nodes=sampled or case.clients,
            min_available_nodes=case.clients,
        )
        found = strategy.start(
            grid=grid, initial_arrays=ArrayRecord(case.build().state_dict()), num_rounds=count + 1, timeout=3600
        )
        final.update(found.arrays.to_torch_state_dict())

    @client.train()
    def train(message, context):
        return flower_client(message, context, case, lr)

    run_simulation(
        server,
        client,
        case.clients,
        backend_config={
            "init_args": {"num_cpus": cores, "logging_level": "error", "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    seconds = [end - begin for begin, end in zip(begins, ends, strict=True)]
    return seconds[1:], final


def flower_client(message, context, case: Case, lr: float):
    """One client's part of a round, in a process of ray's."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    model, clients = _kept(case)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = clients[int(context.node_config["partition-id"])]
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(y), case.batch):
        optimiser.zero_grad()
        F.cross_entropy(model(x[start : start + case.batch]), y[start : start + case.batch]).backward()
        optimiser.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(y)})}
    return Message(content=RecordDict(content), reply_to=message)


_KEPT: dict[str, tuple] = {}


def _kept(case: Case) -> tuple:
    """The model and the data, made once per process."""
    key = repr(case)
    if key not in _KEPT:
        _KEPT[key] = case.build(), client_tensors(case)
    return _KEPT[key]


# --- the data of both -------------------------------------------------------------------------------------------------


def client_tensors(case: Case) -> Sequence[tuple[Tensor, Tensor]]:
    """(x, y) of every client."""
    holdings = case.federation().train
    batches = map(holdings.full_batch, range(case.clients))
    return [(batch.x, batch.y) for batch in batches]
