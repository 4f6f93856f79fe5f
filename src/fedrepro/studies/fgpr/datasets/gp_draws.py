"""Draws from a Gaussian process prior, dealt to clients (thesis §4.5, Examples 1 and 2; Fig. 4.2–4.4, C.1).

x ~ U[0, 1]^d, y = f(x) + θ2 N(0, 1), f ~ GP(0, θ1² k), with r² = Σ_j ((x_j − x'_j) / l_j)² and

    rbf       k = exp(−r²/2)
    matern32  k = (1 + √3 r) exp(−√3 r)

As in every run of the thesis, θ1 ∈ [0.1, 10], θ2 ∈ [0.01, 1], l ∈ [0.01, 1]^d and d ∈ {1 … 10} are drawn first,
uniformly (assumed), unless given; the thesis' formulas have one l for all dimensions, its range one per dimension. "All
clients come from the same underlying stochastic process": each has its own function from it, as the objective Σ p_k L_k
supposes, by Cholesky in float64 of all its points together. With `processes` > 1 (§C.5, "several different processes")
the clients take turns among as many (θ1, θ2), the first as above; l and d are common, and there is no true θ1 and θ2.

Balanced: N/K samples per client: (K, N) = (20, 5000), (50, 2000), (100, 800). Not balanced: "from 10 to 10,000 points",
with the law shown as a histogram only. Here sizes are evenly spaced on a log scale from `smallest` to `largest`
(assumed), in random order, and N is not used. 10,000 points need about 2 GB; lower `largest` at small scales.

Shapes: x [n, w], y [n], client [n]; w is `dimension`, or 10 if that is drawn, so that all seeds have the same width;
columns beyond d are 0, which changes no distance. facts: signal (θ1), noise (θ2), lengthscale [w] (l, infinite in the
columns beyond d), dimension (d), jitter (added to the diagonal of k, relative to θ1²).
"""

import math
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.simulation import check_least, check_name
from fedrepro.errors import UserError

KERNELS = ("rbf", "matern32")
SIGNAL, NOISE, LENGTHSCALE, DIMENSION = (0.1, 10.0), (0.01, 1.0), (0.01, 1.0), (1, 10)
MOST = 12_000  # points drawn together: their covariance takes 1.2 GB, and twice that while computed


def gp_draws(
    source: Source,
    *,
    kernel: str = "rbf",
    clients: int = 20,
    total: int = 5000,
    balanced: bool = True,
    smallest: int = 10,
    largest: int = 10_000,
    dimension: int | None = None,
    processes: int = 1,
    signal: float | None = None,
    noise: float | None = None,
    lengthscale: float | None = None,
) -> Dataset:
    check_name("gp_draws", "kernel", kernel, KERNELS)
    check_least("gp_draws", 1, clients=clients, dimension=dimension, processes=processes)
    check_least("gp_draws", 0, signal=signal, noise=noise)
    if lengthscale is not None and not lengthscale > 0:
        raise UserError(f"gp_draws: lengthscale = {lengthscale}: must be above 0")
    width = dimension or DIMENSION[1]
    parameters, order, others, *streams = source.rng.spawn(3 + clients)
    # all four are always drawn, so fixing one does not change the others
    drawn = parameters.uniform(*SIGNAL), parameters.uniform(*NOISE), int(parameters.integers(*DIMENSION, endpoint=True))
    scales = parameters.uniform(*LENGTHSCALE, max(width, DIMENSION[1]))
    signal, noise = drawn[0] if signal is None else signal, drawn[1] if noise is None else noise
    thetas = [(signal, noise), *((others.uniform(*SIGNAL), others.uniform(*NOISE)) for _ in range(processes - 1))]
    d = dimension or drawn[2]
    own = np.full(width, math.inf)
    own[:d] = scales[:d] if lengthscale is None else lengthscale

    counts = order.permutation(_counts(clients, total, balanced, smallest, largest))
    if counts.max() > MOST:
        raise UserError(f"gp_draws: {counts.max()} points are drawn together; at most {MOST} fit into memory")
    devices = []
    for k, (stream, n) in enumerate(zip(streams, counts, strict=True)):
        theta_1, theta_2 = thetas[k % processes]
        inputs, function, errors = stream.spawn(3)
        x = np.zeros((n, width))
        x[:, :d] = inputs.random((n, d))
        f, jitter = sample(kernel, x, function.standard_normal(n), own)
        devices.append((x, theta_1 * f + theta_2 * errors.standard_normal(n), [jitter]))
    x, y, jitters = map(np.concatenate, zip(*devices, strict=True))
    samples = Split(x, y, client=np.repeat(np.arange(clients), counts))
    facts = {"lengthscale": own, "dimension": d, "jitter": max(jitters)}
    if processes == 1:
        facts |= {"signal": signal, "noise": noise}
    return Dataset("synthetic", train=samples, facts={name: np.asarray(value) for name, value in facts.items()})


def _counts(clients: int, total: int, balanced: bool, smallest: int, largest: int) -> np.ndarray:
    check_least("gp_draws", 1, clients=clients, smallest=smallest)
    if balanced:
        if total < clients:
            raise UserError(f"gp_draws: total = {total}: {clients} clients need a sample each")
        return total // clients + (np.arange(clients) < total % clients)
    if largest < smallest:
        raise UserError(f"gp_draws: largest = {largest}: must not be below smallest = {smallest}")
    return unbalanced_sizes(clients, smallest, largest)


def unbalanced_sizes(clients: int, smallest: int, largest: int) -> np.ndarray:
    """Evenly spaced on a log scale, [clients]."""
    return np.rint(np.geomspace(smallest, largest, clients)).astype(np.int64)


def correlation(kernel: str, x: np.ndarray, lengthscale: np.ndarray) -> np.ndarray:
    """k(x, x) [n, n] for x [n, w] and lengthscale [w]. In place, as n may be 10,000: two such arrays at most."""
    squares = np.zeros((len(x), len(x)))
    for column, scale in zip(x.T, lengthscale, strict=True):  # by column for exact zeros on the diagonal
        if math.isfinite(scale):
            difference = column[:, None] - column
            difference /= scale
            squares += np.square(difference, out=difference)
            del difference
    if kernel == "rbf":
        squares *= -0.5
        return np.exp(squares, out=squares)
    squares *= 3
    r = np.sqrt(squares, out=squares)
    decay = np.exp(-r)
    r += 1
    decay *= r
    return decay


def sample(kernel: str, x: np.ndarray, z: np.ndarray, lengthscale: np.ndarray) -> tuple[np.ndarray, float]:
    """f(x) with unit variance from standard normal z [n], and its jitter (1e-10, more only if needed)."""
    from scipy.linalg import LinAlgError, cholesky

    jitter = 1e-10
    while True:
        k = correlation(kernel, x, lengthscale)
        k[np.diag_indices_from(k)] += jitter
        try:
            return cholesky(k.T, lower=True, overwrite_a=True, check_finite=False) @ z, jitter
        except LinAlgError:
            jitter *= 10


def gp_draws_size(
    clients: int = 20, total: int = 5000, balanced: bool = True, smallest: int = 10, largest: int = 10_000, **_: Any
) -> tuple[int, int]:
    return clients, int(_counts(clients, total, balanced, smallest, largest).sum())


DATASET = Entry(gp_draws, seeded=True, size=gp_draws_size, example={"clients": 4, "total": 100})
