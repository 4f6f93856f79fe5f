"""CIFAR-100 (Krizhevsky 2009, Learning multiple layers of features from tiny images): 100 classes of photographs.

Shapes: train x [50000, 3, 32, 32] bytes, y [50000] the fine label, 500 a class; test 10,000, 100 a class. Read from
the python version (pickles, by torchvision, after its checksums), or from the layout `sample`: the first 1,117
training and 916 test images in numpy's format. Stand-in: textured shapes.
"""

from __future__ import annotations

import numpy as np

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Entry, Source
from fedrepro.data.images import Images, ImageSet, image_size, read_cifar, reading


def cifar100(source: Source, *, train: int = 50_000, test: int = 10_000, pooled: bool = False) -> Dataset:
    return _SET.load(source, train, test, pooled)


def _read(found: Found, part: str) -> Images:
    if found.layout == "python":
        return read_cifar("CIFAR100", found, part)
    path = found[f"cifar100_{part}_partial.npz"]
    with reading(path, "npz of data and fine_labels"), np.load(path, allow_pickle=False) as archive:
        return archive["data"].reshape(-1, 3, 32, 32), archive["fine_labels"].astype(np.int64)


def _standin(rng: np.random.Generator, samples: int) -> Images:
    from fedrepro.data.standins.textures import textured_shapes

    return textured_shapes(rng, classes=100, samples=samples, channels=3, side=32)


_SET = ImageSet(
    "cifar100",
    100,
    (3, 32, 32),
    50_000,
    10_000,
    _read,
    _standin,
    mean=(0.5071, 0.4865, 0.4409),  # assumed: the channels' mean over the training images; no paper states it
    std=(0.2673, 0.2564, 0.2762),  # assumed: their deviation, likewise
)


DATASET = Entry(cifar100, seeded=False, size=image_size(cifar100), files="cifar100")
