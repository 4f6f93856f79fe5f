"""Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv 1708.07747): articles of clothing, 10 classes.

Shapes: train x [60000, 1, 28, 28] bytes, y [60000], 6,000 a class; test 10,000, 1,000 a class. A model is given
pixels/255, as in Omni-Fedge. Stand-in: textured shapes.
"""

from __future__ import annotations

import numpy as np

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Entry, Source
from fedrepro.data.images import Images, ImageSet, image_size, read_idx


def fashion_mnist(source: Source, *, train: int = 60_000, test: int = 10_000, pooled: bool = False) -> Dataset:
    return _SET.load(source, train, test, pooled)


def _read(found: Found, part: str) -> Images:
    return read_idx(found, {"train": "train", "test": "t10k"}[part])


def _standin(rng: np.random.Generator, samples: int) -> Images:
    from fedrepro.data.standins.textures import textured_shapes

    return textured_shapes(rng, classes=10, samples=samples, channels=1, side=28)


_SET = ImageSet("fashion_mnist", 10, (1, 28, 28), 60_000, 10_000, _read, _standin)


DATASET = Entry(fashion_mnist, seeded=False, size=image_size(fashion_mnist), files="fashion_mnist")
