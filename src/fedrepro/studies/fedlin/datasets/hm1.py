"""Devices with correlated linear models: the simulation of HM1 (thesis §3.5.1, Cases I–IV).

Θ = (θ_1 … θ_K) is a d × K draw from the matrix normal law of (3.2): covariance Ω between devices, none between
components. Device k holds N_k samples of y = xᵀθ_k + noise.

| case | K | d | noise | Ω | N_k | scored |
|---|---|---|---|---|---|---|
| I | 2 | 5 | 0.05 | 1, 0.7; 0.7, 1 | 20, 200 | device 1 |
| II | 100 | 8 | 0.1 | clusterGeneration | 40 on the first 30, 275 on 70 | the first 30 |
| III | 100 | 8 | 0.1 | clusterGeneration | 20 | all |
| IV | 100 | 8 | 0.1 | clusterGeneration | 200 | all |
| script | 100 | 5 | 0.05 | AᵀA, A_ij ~ U(−1, 1) | 190 … 200, drawn | device 1 |

`script` is the released code, which is none of the four. Case I prints the law as I ⊗ Ω, which on Vec(Θ) would tie the
components within a device; on Vec(Θᵀ) it is that of (3.2). What the thesis leaves open is a parameter:
- noise_is: `variance` (II–IV say σ² = 0.1, the script has variance 0.05) or `sd`. Case I says "noise 0.05".
- omega: `stated`, as in the table, or by name: `pair` (Case I); `eigenvalues` (clusterGeneration's default: eigenvalues
  U[1, 10] and, here, a uniform random orthogonal matrix of eigenvectors); `gram` (AᵀA); `low_rank` (FFᵀ, F [K, rank]
  normal, scaled to mean variance 5.5, the mean of U[1, 10]): not in the thesis, devices have much to share.

Shapes: x [n, d] ~ N(0, I) (unstated; as in the script), y [n], client [n]; group [n] is 0 for devices in the thesis'
A-RMSE, 1 for others. test y is noisy. facts: theta [K, d], omega [K, K], sigma (the sd), scored [K], test_mean [n] (the
test targets without noise, in the order of the test set).
"""

from dataclasses import dataclass, replace

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.simulation import check_least, check_name, linear_devices, noise_sd
from fedrepro.errors import UserError


@dataclass(frozen=True)
class Case:
    clients: int
    features: int
    noise: float
    omega: str
    few: int  # samples on the first `share` of the devices
    many: int  # on the rest
    share: float
    drawn: bool = False  # N_k ~ U{few … many} instead

    def first(self, clients: int) -> int:
        """The number of scored devices: those with few samples."""
        return max(1, round(self.share * clients))

    def counts(self, clients: int, rng: np.random.Generator) -> list[int]:
        if self.drawn:
            return rng.integers(self.few, self.many, clients, endpoint=True).tolist()
        return [self.few if k < self.first(clients) else self.many for k in range(clients)]


CASES = {
    "I": Case(2, 5, 0.05, "pair", 20, 200, share=0.5),
    "II": Case(100, 8, 0.1, "eigenvalues", 40, 275, share=0.3),
    "III": Case(100, 8, 0.1, "eigenvalues", 20, 20, share=1.0),
    "IV": Case(100, 8, 0.1, "eigenvalues", 200, 200, share=1.0),
    "script": Case(100, 5, 0.05, "gram", 190, 200, share=0.0, drawn=True),
}
MEAN_VARIANCE = 5.5  # assumed: the mean of clusterGeneration's eigenvalues, so that arms differ in rank only


def hm1(
    source: Source,
    *,
    case: str = "I",
    omega: str = "stated",
    rank: int = 5,
    noise: float | None = None,
    noise_is: str = "variance",
    clients: int | None = None,
    test: int = 1000,
) -> Dataset:
    check_name("hm1", "case", case, CASES)
    check_name("hm1", "omega", omega, ("stated", "pair", "eigenvalues", "gram", "low_rank"))
    check_least("hm1", 1, rank=rank, clients=clients, test=test)
    spec = CASES[case]
    K, d = clients or spec.clients, spec.features
    sigma = noise_sd("hm1", spec.noise if noise is None else noise, noise_is)
    parameters, sizes, *devices = source.rng.spawn(2 + K)
    root = covariance_root(spec.omega if omega == "stated" else omega, K, rank, parameters)
    theta = (parameters.standard_normal((d, root.shape[1])) @ root.T).T  # d columns N(0, Ω), one per component
    train, held_out, mean = linear_devices(devices, theta, spec.counts(K, sizes), test, sigma)
    scored = np.arange(K) < spec.first(K)
    train, held_out = (replace(split, group=np.where(scored, 0, 1)[split.client]) for split in (train, held_out))
    facts = {"theta": np.ascontiguousarray(theta), "omega": root @ root.T, "sigma": np.array(sigma)}
    facts |= {"scored": scored, "test_mean": mean}
    return Dataset("synthetic", train=train, test=held_out, facts=facts)


def covariance_root(kind: str, clients: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    """R [K, r] with R Rᵀ = Ω."""
    if kind == "pair":
        if clients != 2:
            raise UserError(f"hm1: omega 'pair' is for 2 devices, not {clients}")
        return np.linalg.cholesky(np.array([[1.0, 0.7], [0.7, 1.0]]))
    if kind == "gram":
        return rng.uniform(-1.0, 1.0, (clients, clients)).T
    if kind == "eigenvalues":
        eigenvalues = rng.uniform(1.0, 10.0, clients)
        q, r = np.linalg.qr(rng.standard_normal((clients, clients)))
        return q * np.sign(np.diag(r)) * np.sqrt(eigenvalues)  # with the signs, uniform on orthogonal matrices
    if rank > clients:
        raise UserError(f"hm1: rank = {rank}: Ω of {clients} devices has rank {clients} at most")
    factor = rng.standard_normal((clients, rank))
    return factor * np.sqrt(MEAN_VARIANCE * clients / np.sum(factor**2))


def hm1_size(case: str = "I", clients: int | None = None, **_: object) -> tuple[int, int]:
    check_name("hm1", "case", case, CASES)
    check_least("hm1", 1, clients=clients)
    spec = CASES[case]
    K = clients or spec.clients
    first = K / 2 if spec.drawn else spec.first(K)
    return K, int(first * spec.few + (K - first) * spec.many)


DATASET = Entry(hm1, seeded=True, size=hm1_size, example={"test": 10})
