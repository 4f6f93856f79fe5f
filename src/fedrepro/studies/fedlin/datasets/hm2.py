"""Linear models for HM2 (thesis §3.5.2): Cases I–III of variable selection, and the hierarchy of Fig. 3.4 (right).

| case | K | d | θ_k | N_k | test samples per device |
|---|---|---|---|---|---|
| I | 10 | 8 | (3, 1.5, 0, 0, 2, 0, 0, 0) | 100 | 1000 |
| II | 10 | 8 | the same | 20 on the first 2, 200 on 8 | 1000 |
| III | 20 | 30 | 3 ten times, 0 ten times, 3 ten times | 40 | 400 |
| hierarchy | 100 | 4 | N((1, 3, 0.5, 2), diag(1.17, 2.35, 2.52, 0.67)) | 100 | 1000 (assumed) |

In Cases I–III all devices have the same θ, for the lasso (Laplace) and the ridge (normal) prior alike. The noise is
"0.05": `noise_is` reads it as `sd` (default: the printed A-RMSEs of .055 to .088 are below the sd √.05 = .22) or as
`variance`. The hierarchy's noise is not stated; the same 0.05 is assumed.

Shapes: x [n, d] ~ N(0, I), y [n], client [n]. test y is noisy. facts: theta [K, d], mean [d] and variance [d] of the
law of θ_k (variance 0 in I–III), active [d] (which entries are not 0), sigma (the sd), test_mean [n] (the test targets
without noise).
"""

from dataclasses import dataclass

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.simulation import check_least, check_name, linear_devices, noise_sd


@dataclass(frozen=True)
class Case:
    clients: int
    mean: tuple[float, ...]
    samples: int
    test: int
    variance: float | tuple[float, ...] = 0.0
    scarce: int = 0  # devices, from the first, with only `few` samples
    few: int = 0

    def counts(self, clients: int) -> list[int]:
        return [self.few if k < self.scarce else self.samples for k in range(clients)]


SPARSE = (3.0, 1.5, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0)
CASES = {
    "I": Case(10, SPARSE, samples=100, test=1000),
    "II": Case(10, SPARSE, samples=200, test=1000, scarce=2, few=20),
    "III": Case(20, (3.0,) * 10 + (0.0,) * 10 + (3.0,) * 10, samples=40, test=400),
    # assumed: test=1000, as in Cases I and II; Fig. 3.4 shows no prediction
    "hierarchy": Case(100, (1.0, 3.0, 0.5, 2.0), samples=100, test=1000, variance=(1.17, 2.35, 2.52, 0.67)),
}


def hm2(
    source: Source,
    *,
    case: str = "I",
    noise: float = 0.05,
    noise_is: str = "sd",
    clients: int | None = None,
    test: int | None = None,
) -> Dataset:
    check_name("hm2", "case", case, CASES)
    check_least("hm2", 1, clients=clients, test=test)
    spec, sigma = CASES[case], noise_sd("hm2", noise, noise_is)
    K, mean = clients or spec.clients, np.array(spec.mean)
    variance = np.zeros_like(mean) + spec.variance
    parameters, *devices = source.rng.spawn(1 + K)
    theta = mean + np.sqrt(variance) * parameters.standard_normal((K, len(mean)))
    train, held_out, clean = linear_devices(devices, theta, spec.counts(K), test or spec.test, sigma)
    facts = {"theta": theta, "mean": mean, "variance": variance, "active": (mean != 0) | (variance > 0)}
    facts |= {"sigma": np.array(sigma), "test_mean": clean}
    return Dataset("synthetic", train=train, test=held_out, facts=facts)


def hm2_size(case: str = "I", clients: int | None = None, **_: object) -> tuple[int, int]:
    check_name("hm2", "case", case, CASES)
    check_least("hm2", 1, clients=clients)
    K = clients or CASES[case].clients
    return K, sum(CASES[case].counts(K))


DATASET = Entry(hm2, seeded=True, size=hm2_size, example={"clients": 6, "test": 10})
