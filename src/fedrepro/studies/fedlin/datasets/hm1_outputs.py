"""The simulation of HM1 (hm1.py) in several readings at once, as outputs of the same inputs.

`readings`: the noise as `variance`, as `sd`, from the same parameters and standard normal numbers.
`ranks`: instead, Ω of these ranks (hm1's low_rank, noise as the first reading), with the same inputs and noise.

Shapes: as hm1, with S outputs: y [n, S]; facts theta [K, d, S], omega [S, K, K], sigma [S], test_mean [n, S], scored
[K], and outputs [S], their names ("variance", "rank 5"). An output equals hm1 with the same stream.
"""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Dataset
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.datasets.hm1 import hm1, hm1_size


def hm1_outputs(
    source: Source,
    *,
    case: str = "I",
    readings: Sequence[str] = ("variance", "sd"),
    ranks: Sequence[int] = (),
    clients: int | None = None,
    test: int = 1000,
) -> Dataset:
    low: dict[str, Any] = {"omega": "low_rank", "noise_is": readings[0] if readings else "variance"}
    parameters: dict[str, dict[str, Any]] = {f"rank {r}": low | {"rank": r} for r in ranks}
    parameters = parameters or {reading: {"noise_is": reading} for reading in readings}
    if not parameters:
        raise UserError("hm1_outputs: neither readings nor ranks are given")
    streams = (replace(source, rng=copy.deepcopy(source.rng)) for _ in parameters)  # all outputs have the same inputs
    each = zip(streams, parameters.values(), strict=True)
    parts = [hm1(stream, case=case, clients=clients, test=test, **own) for stream, own in each]
    splits = {
        name: replace(split, y=np.stack([part.splits()[name].y for part in parts], axis=-1))
        for name, split in parts[0].splits().items()
    }
    along = {"theta": -1, "omega": 0, "sigma": 0, "test_mean": -1}
    facts = {name: np.stack([part.facts[name] for part in parts], axis=axis) for name, axis in along.items()}
    facts |= {"scored": parts[0].facts["scored"], "outputs": np.array(list(parameters))}
    if len(parts) == 1:
        splits = {name: replace(split, y=split.y[:, 0]) for name, split in splits.items()}
    return Dataset("synthetic", splits["train"], splits["test"], outputs=len(parts), facts=facts)


DATASET = Entry(hm1_outputs, seeded=True, size=hm1_size, example={"test": 10})
