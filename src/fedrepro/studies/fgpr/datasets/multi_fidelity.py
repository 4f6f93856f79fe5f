"""Clients with data of different fidelity (thesis §4.6, Table 4.2, Fig. 4.6–4.8; the pairs of Fig. 4.1, 4.5, C.4).

One client per level (two in the released code) of a function of `functions.FUNCTIONS`, the last with the highest
fidelity. Sizes are the thesis', unless `sizes` (low → high) are given. Open in the thesis or changed by its code:
- design: `uniform` on the domain (stated for test points only); `grid`, equally spaced with both ends (the released 1-D
  examples, and "uniformly spread" in §4.3.3). `vertices` adds the 2^d corners of the domain to every client's and the
  test inputs (the released CURRIN example, where 40 points become 44).
- scaled: inputs are fractions of the domain, in [0, 1].
- standardised: every client's y has mean 0 and sd 1 (divisor n − 1), "all output values" of §4.6; test y is shifted and
  scaled by the tested client's training values. A client with one sample or constant y is only shifted.
- spare: further samples of the highest fidelity that no client holds, a continuation of the last client's `uniform`
  design; for limits and for curves over the size of the data.
- noise: none in §4.6; 0.2 in Example 3 of §4.5, read as `noise_is`: `sd` or `variance`. It is added before
  standardising, to training targets; to test targets only with `test_noise`.

Test points, `test` per tested client, are uniform on the domain. Tested are the clients of the highest fidelity, or all
if the levels are peers (two sines, two lines). A client's data depend only on its level, and a larger `uniform` design
contains the smaller.

Shapes: x [n, d], y [n], client [n], group [n] = level. facts: clients (names), level [K], domain [d, 2] of the highest
fidelity, shift [K] and scale [K] (y = (f − shift) / scale; 0 and 1 unless standardised), test_mean [n] (test targets
without noise); with `spare`, spare_x [spare, d] and spare_y [spare] in the last client's units.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.data.simulation import check_least, check_name, noise_sd
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.functions import FUNCTIONS, Fidelities

DESIGNS = ("uniform", "grid")


def multi_fidelity(
    source: Source,
    *,
    function: str = "currin",
    sizes: Sequence[int] | None = None,
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
    fidelities, counts = _settings(function, sizes)
    sigma = noise_sd("multi_fidelity", noise, noise_is)
    domain = np.array(fidelities.domain, dtype=np.float64)
    d, levels = len(domain), len(counts)
    corners = np.array(list(np.ndindex(*[2] * d)), dtype=np.float64) if vertices else np.empty((0, d))
    columns = ("x", "y", "client", "test_x", "test_y", "test_client", "mean")
    parts: dict[str, list[np.ndarray]] = {name: [] for name in columns}
    shift, scale = np.zeros((2, levels))
    spares: dict[str, np.ndarray] = {}
    for k, (f, level) in enumerate(zip(fidelities.levels, source.rng.spawn(levels), strict=True)):
        (stream,) = level.spawn(1)
        inputs, errors, test_inputs, test_errors = stream.spawn(4)
        u = np.concatenate([corners, _design(design, counts[k], d, inputs)])
        y = f(_stretch(u, domain)) + sigma * errors.standard_normal(len(u))
        shift[k], scale[k] = _moments(y) if standardised else (0.0, 1.0)
        parts["x"].append(u if scaled else _stretch(u, domain))
        parts["y"].append((y - shift[k]) / scale[k])
        parts["client"].append(np.full(len(u), k))
        if spare and k == levels - 1:
            u = inputs.random((spare, d))
            spares["spare_y"] = (f(_stretch(u, domain)) - shift[k]) / scale[k]
            spares["spare_x"] = u if scaled else _stretch(u, domain)
        if fidelities.peers or k == levels - 1:
            u = np.concatenate([corners, test_inputs.random((test, d))])
            mean = f(_stretch(u, domain))
            y = mean + test_noise * sigma * test_errors.standard_normal(len(u))
            parts["test_x"].append(u if scaled else _stretch(u, domain))
            parts["test_y"].append((y - shift[k]) / scale[k])
            parts["mean"].append((mean - shift[k]) / scale[k])
            parts["test_client"].append(np.full(len(u), k))
    x, y, client, test_x, test_y, test_client, mean = (np.concatenate(part) for part in parts.values())
    facts = {
        "clients": np.array(fidelities.names),
        "level": np.arange(levels),
        "domain": domain,
        "shift": shift,
        "scale": scale,
        "test_mean": mean,
        **spares,
    }
    test_split = Split(test_x, test_y, client=test_client, group=test_client)
    return Dataset("synthetic", train=Split(x, y, client=client, group=client), test=test_split, facts=facts)


def _settings(function: str, sizes: Sequence[int] | None) -> tuple[Fidelities, Sequence[int]]:
    """The function, and the number of samples per level."""
    check_name("multi_fidelity", "function", function, FUNCTIONS)
    fidelities = FUNCTIONS[function]
    counts, levels = fidelities.sizes if sizes is None else sizes, len(fidelities.levels)
    if len(counts) != levels:
        raise UserError(f"multi_fidelity: sizes = {list(counts)}: {function} has {levels} levels, from low to high")
    check_least("multi_fidelity", 1, sizes=min(counts))
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


def _stretch(u: np.ndarray, domain: np.ndarray) -> np.ndarray:
    return domain[:, 0] + (domain[:, 1] - domain[:, 0]) * u


def _moments(y: np.ndarray) -> tuple[float, float]:
    sd = y.std(ddof=1) if len(y) > 1 else 0.0
    return float(y.mean()), float(sd) if sd > 0 else 1.0


def multi_fidelity_size(
    function: str = "currin", sizes: Sequence[int] | None = None, vertices: bool = False, **_: Any
) -> tuple[int, int]:
    fidelities, counts = _settings(function, sizes)
    return len(counts), sum(counts) + len(counts) * vertices * 2 ** len(fidelities.domain)


DATASET = Entry(multi_fidelity, seeded=True, size=multi_fidelity_size, example={"test": 20})
