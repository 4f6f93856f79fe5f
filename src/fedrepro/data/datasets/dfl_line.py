"""The DFL line (arXiv 2601.01793, §IV): noisy points on y = 5x + 2, drawn for the clients of several servers.

Shapes: train x [servers · clients · samples, 1], y [n]; client [n] = 0 … servers·clients − 1, group [n] = server.
`facts["w"]` is (slope, intercept). Synthetic by the paper's definition; it states neither the law of x nor the
noise. x is low + width·(a_i + (1 − h)·u), with u from U(0, 1) or, `law: normal`, from the normal law of the same mean
and variance, and a_i from 0 at the first server to the `heterogeneity` h at the last: at h = 0 all clients are alike,
towards 1 each server has its own narrow window.
"""

from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset, Split
from fedrepro.errors import UserError, nearest

LAWS = {
    "uniform": lambda rng, size: rng.random(size),
    "normal": lambda rng, size: rng.normal(0.5, 12**-0.5, size),
}


def dfl_line(
    source: Source,
    *,
    servers: int = 5,
    clients: int = 5,
    samples: int = 100,
    slope: float = 5.0,
    intercept: float = 2.0,
    noise: float = 0.5,
    heterogeneity: float = 0.0,
    law: str = "uniform",
    low: float = 0.0,
    width: float = 1.0,
) -> Dataset:
    if not 0 <= heterogeneity < 1:
        raise UserError(f"dfl_line: heterogeneity = {heterogeneity}: must lie in [0, 1)")
    if noise < 0:
        raise UserError(f"dfl_line: noise = {noise}: must not be negative")
    if law not in LAWS:
        raise UserError(f"dfl_line: law = '{law}' is unknown{nearest(law, LAWS)}")
    server = np.repeat(np.arange(servers), clients * samples)
    start = heterogeneity * server / max(1, servers - 1)
    x = low + width * (start + (1 - heterogeneity) * LAWS[law](source.rng, len(server)))
    y = slope * x + intercept + source.rng.normal(0.0, noise, len(server))
    client = np.repeat(np.arange(servers * clients), samples)
    split = Split(x[:, None], y, client=client, group=server)
    return Dataset("synthetic", train=split, facts={"w": np.array([slope, intercept])})


def dfl_line_size(servers: int = 5, clients: int = 5, samples: int = 100, **_: Any) -> tuple[int, int]:
    return servers * clients, servers * clients * samples


DATASET = Entry(dfl_line, seeded=True, size=dfl_line_size)
