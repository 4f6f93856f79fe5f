"""The same rounds by other simulators: pfl's simulated backend, in this process, and Flower's simulation, in ray's
processes, one per core, each as its documentation describes for PyTorch and imported where it is used: the studies'
environment has neither. Every client takes its batches once, in the order of its samples; the server averages."""

import importlib.util
import logging
import os
import time
from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedrepro.bench.case import Case

#: case → its model and its data, made once per process
_KEPT: dict[str, tuple[nn.Module, Sequence[tuple[Tensor, Tensor]]]] = {}


def there(name: str) -> bool:
    """Whether a package is installed."""
    return importlib.util.find_spec(name) is not None


class Pfl:
    """pfl's FederatedAveraging over its SimulatedBackend."""

    def __init__(self, case: Case, lr: float, sampled: int | None = None):
        from pfl.aggregate.simulate import SimulatedBackend
        from pfl.data.dataset import Dataset
        from pfl.data.federated_dataset import FederatedDataset
        from pfl.hyperparam import NNTrainHyperParams
        from pfl.model.pytorch import PyTorchModel

        logging.getLogger("pfl").setLevel(logging.ERROR)
        clients, everyone, rng = case.client_tensors(), cycle(range(case.clients)), np.random.default_rng(0)
        draw = (lambda: next(everyone)) if sampled is None else (lambda: int(rng.integers(case.clients)))
        federated = FederatedDataset(lambda user: Dataset(raw_data=clients[user], user_id=user), draw)
        self.module = module = with_loss(case.build())
        self.model = PyTorchModel(module, torch.optim.SGD, torch.optim.SGD(module.parameters(), lr=1.0))
        self.backend = SimulatedBackend(training_data=federated, val_data=None)
        local = {"local_num_epochs": 1, "local_learning_rate": lr, "local_max_grad_norm": None}
        self.train = NNTrainHyperParams(local_batch_size=case.batch, **local)
        self.cohort = sampled or case.clients

    def rounds(self, count: int) -> list[float]:
        """Seconds of each of `count` rounds; one more runs before them."""
        from pfl.algorithm.base import NNAlgorithmParams
        from pfl.algorithm.federated_averaging import FederatedAveraging
        from pfl.callback.base import TrainingProcessCallback
        from pfl.metrics import Metrics

        ends: list[float] = []

        class Clock(TrainingProcessCallback):
            def after_central_iteration(self, *_: Any, **__: Any) -> tuple[bool, Metrics]:
                ends.append(time.perf_counter())
                return False, Metrics()

        sizes = {"train_cohort_size": self.cohort, "val_cohort_size": 0}
        parameters = NNAlgorithmParams(central_num_iterations=count + 1, evaluation_frequency=10**9, **sizes)
        options = {"callbacks": [Clock()], "send_metrics_to_platform": False}
        FederatedAveraging().run(parameters, self.backend, self.model, self.train, **options)
        return list(np.diff(ends))

    def parameters(self) -> dict[str, Tensor]:
        return {k: v.detach().clone() for k, v in self.module.named_parameters()}


def with_loss(module: Any) -> Any:
    """The module with the loss and the metrics that pfl calls."""
    module.loss = lambda x, y, eval=False: F.cross_entropy(module(x), y)
    module.metrics = lambda x, y, eval=True: {}
    return module


def flower_rounds(
    case: Case, lr: float, count: int, sampled: int | None = None, cores: int = 2
) -> tuple[list[float], dict[str, Tensor]]:
    """Seconds of each of `count` rounds of Flower's FedAvg, after a first one; and the final model."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    logging.getLogger("flwr").setLevel(logging.ERROR)
    from flwr.app import ArrayRecord
    from flwr.clientapp import ClientApp
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    from flwr.simulation import run_simulation

    begins, ends, final = list[float](), list[float](), dict[str, Tensor]()

    class Timed(FedAvg):
        def configure_train(self, *arguments: Any, **named: Any) -> Any:
            begins.append(time.perf_counter())
            return super().configure_train(*arguments, **named)

        def aggregate_train(self, *arguments: Any, **named: Any) -> Any:
            done = super().aggregate_train(*arguments, **named)
            ends.append(time.perf_counter())
            return done

    server, client = ServerApp(), ClientApp()

    @server.main()
    def main(grid: Any, context: Any) -> None:
        least = {"min_train_nodes": sampled or case.clients, "min_available_nodes": case.clients}
        strategy = Timed(fraction_train=(sampled or case.clients) / case.clients, fraction_evaluate=0.0, **least)
        initial = ArrayRecord(case.build().state_dict())
        found = strategy.start(grid=grid, initial_arrays=initial, num_rounds=count + 1, timeout=3600)
        final.update(found.arrays.to_torch_state_dict())

    @client.train()
    def train(message: Any, context: Any) -> Any:
        return flower_client(message, context, case, lr)

    backend = {
        "init_args": {"num_cpus": cores, "logging_level": "error", "include_dashboard": False},
        "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
    }
    run_simulation(server, client, case.clients, backend_config=backend)
    return [end - begin for begin, end in zip(begins, ends, strict=True)][1:], final


def flower_client(message: Any, context: Any, case: Case, lr: float) -> Any:
    """One client's part of a round, in one of ray's processes."""
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

    torch.set_num_threads(1)
    if (key := repr(case)) not in _KEPT:
        _KEPT[key] = case.build(), case.client_tensors()
    model, clients = _KEPT[key]
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = clients[int(context.node_config["partition-id"])]
    optimiser = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(y), case.batch):
        optimiser.zero_grad()
        F.cross_entropy(model(x[start : start + case.batch]), y[start : start + case.batch]).backward()
        optimiser.step()
    content = {"arrays": ArrayRecord(model.state_dict()), "metrics": MetricRecord({"num-examples": len(y)})}
    return Message(content=RecordDict(content), reply_to=message)
