"""Clients with data of different fidelity (thesis §4.6, Table 4.2, Fig. 4.6–4.8; the pairs of Fig. 4.1, 4.5, C.4).

One client per level of a function of `FUNCTIONS`, the last with the highest fidelity. Sizes are the thesis', unless
`sizes` (low → high) are given. Open in the thesis or changed by its code:
- devices_per_level: clients per level, each with its own inputs (2 in the released code, 1 in the thesis).
- design: `uniform` on the domain (stated for test points only); `grid`, equally spaced with both ends (the released 1-D
  examples, and "uniformly spread" in §4.3.3). `vertices` adds the 2^d corners of the domain to every client's and the
  test inputs (the released CURRIN example, where 40 points become 44; PARK as printed has no value at x1 = 0).
- scaled: inputs are fractions of the domain, in [0, 1].
- standardised: every client's y has mean 0 and sd 1 (divisor n − 1), "all output values" of §4.6; test y is shifted and
  scaled by the tested client's training values. A client with one sample or constant y is only shifted.
- spare: further samples of the highest fidelity that no client holds, a continuation of the last `uniform` design.
- noise: none in §4.6; 0.2 in Example 3 of §4.5, read as `noise_is`: `sd` or `variance`. It is added before
  standardising, to training targets; to test targets only with `test_noise`.

Test points, `test` per tested client, are uniform on the domain. Tested is the last client, of the highest fidelity, or
all if the levels are peers (two sines, two lines). A client's data depend only on its level and its number in it, and a
larger `uniform` design contains the smaller.

Shapes: x [n, d], y [n], client [n], group [n] = level. facts: clients (names), level [K], domain [d, 2] of the highest
fidelity, shift [K] and scale [K] (y = (f − shift) / scale; 0 and 1 unless standardised), test_mean [n] (test targets
without noise); with `spare`, spare_x [spare, d] and spare_y [spare] in the last client's units.

`FUNCTIONS` holds the thesis' formulas (§4.3.3, §4.5, §4.6, App. C.2 and C.4), x [n, d] → y [n], but for Hartmann: y_t
as printed has α, not α_t as its text means, so that all fidelities would be the same. CURRIN, PARK, high-fidelity
BRANIN and the A and P of Hartmann are the literature's. There Hartmann is negative, to be minimised (Cutajar et al.
2019; also in the authors' code), and Borehole's low fidelity has 5 instead of 5π and x5 up to 116 instead of 115 (Xiong
et al. 2013). The authors' BRANIN has no square root in the medium fidelity, and the inputs of its low one *are* 1.2(x +
2). Where a formula divides by 0 on the edge of its domain, its value is the limit (CURRIN at x2 = 0, PARK at x1 = 0).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.simulation import check_least, check_name, noise_sd
from fedrepro.errors import UserError

Function = Callable[[np.ndarray], np.ndarray]

A = np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]])
P = np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]) / 1e4
ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
DELTA = np.array([0.01, -0.01, -0.1, 0.1])
UNIT = (0.0, 1.0)
BRANIN = ((-5.0, 10.0), (0.0, 15.0))
_LOW, _HIGH = (0.05, 100, 63_070, 990, 63.1, 700, 1120, 9855), (0.15, 50_000, 115_600, 1110, 115, 820, 1680, 12_045)
BOREHOLE = tuple(zip(_LOW, _HIGH, strict=True))


@dataclass(frozen=True)
class Fidelities:
    """levels: from low to high fidelity; sizes: the thesis' numbers of samples per level.

    domain: least and greatest value of each input; peers: all levels are tested, not only the last.
    """

    domain: tuple[tuple[float, float], ...]
    levels: tuple[Function, ...]
    sizes: tuple[int, ...]
    peers: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        if self.peers:
            return tuple(f"device {k + 1}" for k in range(len(self.levels)))
        return ("low", "high") if len(self.levels) == 2 else ("low", "medium", "high")


def sine(x: np.ndarray) -> np.ndarray:
    return np.sin(x[:, 0])


def linear_high(x: np.ndarray) -> np.ndarray:
    return (6 * x[:, 0] - 2) ** 2 * np.sin(12 * x[:, 0] - 4)


def linear_low(x: np.ndarray) -> np.ndarray:
    return linear_high(x) / 2 + 10 * (x[:, 0] - 0.5) + 5


def nonlinear_low(x: np.ndarray) -> np.ndarray:
    return np.cos(15 * x[:, 0])


def nonlinear_high(x: np.ndarray) -> np.ndarray:
    return x[:, 0] * np.exp(nonlinear_low(2 * x - 0.2)) - 1


def currin_high(x: np.ndarray) -> np.ndarray:
    x1, x2 = x.T
    decay = np.zeros(len(x))
    np.divide(-0.5, x2, out=decay, where=x2 > 0)
    decay = np.where(x2 > 0, np.exp(decay), 0.0)
    return (1 - decay) * (2300 * x1**3 + 1900 * x1**2 + 2092 * x1 + 60) / (100 * x1**3 + 500 * x1**2 + 4 * x1 + 20)


def currin_low(x: np.ndarray) -> np.ndarray:
    x1, x2 = x.T
    below = np.maximum(0, x2 - 0.05)
    corners = [(x1 + 0.05, x2 + 0.05), (x1 + 0.05, below), (x1 - 0.05, x2 + 0.05), (x1 - 0.05, below)]
    return sum((currin_high(np.stack(corner, axis=1)) for corner in corners), np.zeros(len(x))) / 4


def park_high(x: np.ndarray) -> np.ndarray:
    x1, x2, x3, x4 = x.T
    # x1/2 (√(1 + c/x1²) − 1), multiplied out so that it holds at x1 = 0
    root = np.sqrt(x1**2 + (x2 + x3**2) * x4) - x1
    return root / 2 + (x1 + 3 * x4) * np.exp(1 + np.sin(x3))


def park_low(x: np.ndarray) -> np.ndarray:
    x1, x2, x3, _ = x.T
    return (1 + np.sin(x1) / 10) * park_high(x) - 2 * x1 + x2**2 + x3**2 + 0.5


def branin_high(x: np.ndarray) -> np.ndarray:
    x1, x2 = x.T
    parabola = -1.275 * x1**2 / np.pi**2 + 5 * x1 / np.pi + x2 - 6
    return parabola**2 + (10 - 5 / (4 * np.pi)) * np.cos(x1) + 10


def branin_medium(x: np.ndarray) -> np.ndarray:
    x1, x2 = x.T
    return 10 * np.sqrt(branin_high(x - 2)) + 2 * (x1 - 0.5) - 3 * (3 * x2 - 1) - 1


def branin_low(x: np.ndarray) -> np.ndarray:
    return branin_medium(1.2 * (x + 2)) - 3 * x[:, 1] + 1


def hartmann(x: np.ndarray, below: int) -> np.ndarray:
    """`below`: levels below the highest, 3 − t."""
    distance = np.einsum("ij,nij->ni", A, (x[:, None, :] - P) ** 2)
    return np.exp(-distance) @ (ALPHA + below * DELTA)


def borehole(x: np.ndarray, factor: float, offset: float) -> np.ndarray:
    """High fidelity: factor 2π, offset 1."""
    x1, x2, x3, x4, x5, x6, x7, x8 = x.T
    log = np.log(x2 / x1)
    return factor * x3 * (x4 - x6) / (log * (offset + 2 * x7 * x3 / (log * x1**2 * x8) + x3 / x5))


FUNCTIONS: dict[str, Fidelities] = {
    # §4.3.3, Fig. 4.1; §4.5, Example 3, Fig. 4.5; App. C.4
    "opposite_sines": Fidelities(((0.0, 10.0),), (sine, lambda x: -sine(x)), (100, 100), peers=True),
    "equal_sines": Fidelities((UNIT,), (sine, sine), (100, 100), peers=True),
    "two_lines": Fidelities((UNIT,), (lambda x: 3 * x[:, 0], lambda x: x[:, 0]), (100, 100), peers=True),
    # §4.6, Examples 1 and 2
    "linear": Fidelities((UNIT,), (linear_low, linear_high), (100, 20)),
    "nonlinear": Fidelities(((0.0, 2.0),), (nonlinear_low, nonlinear_high), (100, 20)),
    # App. C.2, Examples 3 to 7
    "currin": Fidelities((UNIT,) * 2, (currin_low, currin_high), (200, 40)),
    "park": Fidelities((UNIT,) * 4, (park_low, park_high), (300, 50)),
    "branin": Fidelities(BRANIN, (branin_low, branin_medium, branin_high), (200, 40, 20)),
    "hartmann": Fidelities((UNIT,) * 3, tuple(partial(hartmann, below=t) for t in (2, 1, 0)), (200, 100, 50)),
    "borehole": Fidelities(
        BOREHOLE,
        (partial(borehole, factor=5 * np.pi, offset=1.5), partial(borehole, factor=2 * np.pi, offset=1.0)),
        (200, 50),
    ),
}
DESIGNS = ("uniform", "grid")


def multi_fidelity(
    source: Source,
    *,
    function: str = "currin",
    sizes: Sequence[int] | None = None,
    devices_per_level: int = 1,
    design: str = "uniform",
    vertices: bool = False,
    noise: float = 0.0,
    noise_is: str = "sd",
    scaled: bool = True,
    standardised: bool = True,
    test: int = 1000,
    test_noise: bool = False,
    spare: int = 0,
) -> Dataset:
    check_name("multi_fidelity", "design", design, DESIGNS)
    check_least("multi_fidelity", 1, test=test)
    if spare and (design != "uniform" or noise):
        raise UserError("multi_fidelity: spare: only a uniform design without noise can go on")
    fidelities, counts = _settings(function, sizes, devices_per_level)
    sigma = noise_sd("multi_fidelity", noise, noise_is)
    domain = np.array(fidelities.domain, dtype=np.float64)
    d, level = len(domain), np.repeat(np.arange(len(counts)), devices_per_level)
    last = len(level) - 1
    corners = np.array(list(np.ndindex(*[2] * d)), dtype=np.float64) if vertices else np.empty((0, d))
    shift, scale = np.zeros((2, len(level)))
    train, tested = [], []
    numbers = [f" {i + 1}" for i in range(devices_per_level)] if devices_per_level > 1 else [""]
    names = np.array([name + number for name in fidelities.names for number in numbers])
    facts = {"clients": names, "level": level, "domain": domain}
    spares: dict[str, np.ndarray] = {}

    def stretched(u: np.ndarray) -> np.ndarray:
        return domain[:, 0] + (domain[:, 1] - domain[:, 0]) * u

    streams = (own for each in source.rng.spawn(len(counts)) for own in each.spawn(devices_per_level))
    for k, (i, stream) in enumerate(zip(level.tolist(), streams, strict=True)):
        f = fidelities.levels[i]
        inputs, errors, test_inputs, test_errors = stream.spawn(4)
        u = np.concatenate([corners, _design(design, counts[i], d, inputs)])
        y = f(stretched(u)) + sigma * errors.standard_normal(len(u))
        if standardised:
            sd = y.std(ddof=1) if len(y) > 1 else 0.0
            shift[k], scale[k] = y.mean(), sd if sd > 0 else 1.0
        else:
            scale[k] = 1.0
        train.append((u if scaled else stretched(u), (y - shift[k]) / scale[k], np.full(len(u), k)))
        if spare and k == last:
            u = inputs.random((spare, d))
            spares["spare_y"] = (f(stretched(u)) - shift[k]) / scale[k]
            spares["spare_x"] = u if scaled else stretched(u)
        if fidelities.peers or k == last:
            u = np.concatenate([corners, test_inputs.random((test, d))])
            mean = f(stretched(u))
            noisy = mean + test_noise * sigma * test_errors.standard_normal(len(u))
            both = ((values - shift[k]) / scale[k] for values in (noisy, mean))
            tested.append((u if scaled else stretched(u), *both, np.full(len(u), k)))
    x, y, client = map(np.concatenate, zip(*train, strict=True))
    test_x, test_y, mean, test_client = map(np.concatenate, zip(*tested, strict=True))
    facts |= {"shift": shift, "scale": scale, "test_mean": mean, **spares}
    test_split = Split(test_x, test_y, client=test_client, group=level[test_client])
    return Dataset("synthetic", train=Split(x, y, client=client, group=level[client]), test=test_split, facts=facts)


def _settings(function: str, sizes: Sequence[int] | None, devices: int) -> tuple[Fidelities, Sequence[int]]:
    check_name("multi_fidelity", "function", function, FUNCTIONS)
    fidelities = FUNCTIONS[function]
    counts, levels = fidelities.sizes if sizes is None else sizes, len(fidelities.levels)
    if len(counts) != levels:
        raise UserError(f"multi_fidelity: sizes = {list(counts)}: {function} has {levels} levels, from low to high")
    check_least("multi_fidelity", 1, devices_per_level=devices, sizes=min(counts))
    return fidelities, counts


def _design(design: str, n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """n points of the unit cube [n, d]."""
    if design == "uniform":
        return rng.random((n, d))
    side = round(n ** (1 / d))
    if side**d != n:
        raise UserError(f"multi_fidelity: {n} points make no grid in {d} dimensions; {side**d} do")
    axis = np.linspace(0.0, 1.0, side)
    return np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(n, d)


def multi_fidelity_size(
    function: str = "currin",
    sizes: Sequence[int] | None = None,
    devices_per_level: int = 1,
    vertices: bool = False,
    **_: Any,
) -> tuple[int, int]:
    fidelities, counts = _settings(function, sizes, devices_per_level)
    corners = len(counts) * vertices * 2 ** len(fidelities.domain)
    return len(counts) * devices_per_level, (sum(counts) + corners) * devices_per_level


DATASET = Entry(multi_fidelity, seeded=True, size=multi_fidelity_size, example={"test": 20})
