"""CIFAR-10 (Krizhevsky 2009, Learning multiple layers of features from tiny images): 10 classes of photographs.

Shapes: train x [50000, 3, 32, 32] bytes, y [50000], 5,000 a class; test 10,000, 1,000 a class. Read from the python
version (pickles, by torchvision, after its checksums), from the binary version, or from the layout `sample`: the
binary version's first training batch, 10,000 images, and the whole test batch. Channels are normalised as in
FL-SC-NIID, whose partitions the study `sa` uses. Stand-in: textured shapes.
"""

from __future__ import annotations

import numpy as np

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Entry, Source
from fedrepro.data.images import Images, ImageSet, image_size, read_cifar
from fedrepro.errors import UserError

_RECORD = 1 + 3 * 32 * 32  # bytes: the label, then the planes red, green, blue


def cifar10(source: Source, *, train: int = 50_000, test: int = 10_000, pooled: bool = False) -> Dataset:
    return _SET.load(source, train, test, pooled)


def _read(found: Found, part: str) -> Images:
    if found.layout == "python":
        return read_cifar("CIFAR10", found, part)
    stem = "data_batch_" if part == "train" else "test_batch"
    return _read_binary([path for path in found.paths.values() if path.name.startswith(stem)])


def _read_binary(paths) -> Images:
    batches = []
    for path in sorted(paths):
        content = np.fromfile(path, dtype=np.uint8)
        if len(content) == 0 or len(content) % _RECORD:
            raise UserError(f"{path}: {len(content)} bytes are not a whole number of records of {_RECORD} (cut off?)")
        batches.append(content.reshape(-1, _RECORD))
    records = np.concatenate(batches)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


def _standin(rng: np.random.Generator, samples: int) -> Images:
    from fedrepro.data.standins.textures import textured_shapes

    return textured_shapes(rng, classes=10, samples=samples, channels=3, side=32)


_SET = ImageSet(
    "cifar10",
    10,
    (3, 32, 32),
    50_000,
    10_000,
    _read,
    _standin,
    mean=(0.4914, 0.4822, 0.4465),
    std=(0.2023, 0.1994, 0.2010),
)


DATASET = Entry(cifar10, seeded=False, size=image_size(cifar10), files="cifar10")
