"""synthetic(α, β) of FedProx (Li et al. 2020, §5.1; the data of "SGLD for noise-intrinsic federated learning", §6).

Device k holds n_k = int(lognormal(4, 2)) + 50 samples of y = argmax softmax(W_kᵀ x + b_k), with

    u_k ~ N(0, α),  every entry of W_k and b_k ~ N(u_k, 1)         models differ between devices
    B_k ~ N(0, β),  v_kj ~ N(B_k, 1),  x ~ N(v_k, diag(j^-1.2))    inputs differ between devices

The first int(0.9 n_k) samples are for training, the rest for testing. With `iid` all devices share one W and b with
entries N(0, 1), v_k = 0, and α, β are not used. α and β are *standard deviations*, as in the public code of FedProx
(the paper writes N(0, α) as if they were variances; of the values used, 0, ½ and 1, only ½ differs). The SGLD paper
prints v_k ~ (0, β + 1), which loses the B_k that all coordinates of a device share; this is the original recipe.
It states neither α, β nor the number of devices.

Shapes: x [n, features], y [n] = 0 … classes − 1, client [n]. facts: weight [K, features, classes], bias [K, classes],
centre [K, features] (v_k). `largest` caps n_k, for small scales: a device keeps its first samples. A device's data
depend only on its number and the seed, not on the number of devices.
"""

import math
from statistics import NormalDist
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.simulation import check_least

FEWEST = 50
LOG_MEAN, LOG_SD = 4.0, 2.0


def fedprox_synthetic(
    source: Source,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    clients: int = 30,
    features: int = 60,
    classes: int = 10,
    iid: bool = False,
    largest: int | None = None,
) -> Dataset:
    name = "fedprox_synthetic"
    check_least(name, 0, alpha=alpha, beta=beta)
    check_least(name, 1, clients=clients, features=features)
    check_least(name, 2, classes=classes, largest=largest)  # a device needs a sample to train and one to test
    shared, *devices = source.rng.spawn(clients + 1)
    weight = np.tile(shared.standard_normal((features, classes)), (clients, 1, 1))
    bias, centre = np.tile(shared.standard_normal(classes), (clients, 1)), np.zeros((clients, features))
    spread = np.arange(1, features + 1) ** -0.6  # standard deviations: the square root of j^-1.2
    x, y = [], []
    for k, device in enumerate(devices):
        sizes, model, inputs = device.spawn(3)
        if not iid:
            u, b = model.normal(0.0, alpha), model.normal(0.0, beta)
            weight[k] = model.normal(u, 1.0, (features, classes))
            bias[k] = model.normal(u, 1.0, classes)
            centre[k] = model.normal(b, 1.0, features)
        n = _capped(int(sizes.lognormal(LOG_MEAN, LOG_SD)), largest)
        x.append(centre[k] + spread * inputs.standard_normal((n, features)))
        y.append(np.argmax(x[k] @ weight[k] + bias[k], axis=1))  # softmax keeps the order
    counts = list(map(len, y))
    client = np.repeat(np.arange(clients), counts)
    training = np.concatenate([np.arange(n) < _training(n) for n in counts])
    samples = Split(np.concatenate(x), np.concatenate(y), client=client)
    train, test = (samples.take(np.flatnonzero(mine)) for mine in (training, ~training))
    facts = {"weight": weight, "bias": bias, "centre": centre}
    return Dataset("synthetic", train, test, outputs=classes, facts=facts)


def _capped(drawn: int, largest: int | None) -> int:
    return drawn + FEWEST if largest is None else min(drawn + FEWEST, largest)


def _training(n: int) -> int:
    return 9 * n // 10  # int(0.9 n), without the rounding of 0.9


def fedprox_synthetic_size(clients: int = 30, largest: int | None = None, **_: Any) -> tuple[int, int]:
    """A typical total, from sizes at evenly spaced quantiles; the mean of so heavy a tail is seldom reached."""
    check_least("fedprox_synthetic", 1, clients=clients)
    quantiles = (NormalDist(LOG_MEAN, LOG_SD).inv_cdf((i + 0.5) / clients) for i in range(clients))
    return clients, sum(_training(_capped(int(math.exp(q)), largest)) for q in quantiles)


DATASET = Entry(fedprox_synthetic, seeded=True, size=fedprox_synthetic_size, example={"clients": 8, "largest": 200})
