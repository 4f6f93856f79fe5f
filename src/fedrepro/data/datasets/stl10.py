"""STL-10, labelled part (Coates, Lee, Ng 2011, An analysis of single-layer networks in unsupervised feature
learning): 10 classes of photographs.

Shapes: train x [5000, 3, 96, 96] bytes, y [5000], 500 a class; test 8,000, 800 a class. Read by torchvision from the
binary version; the 100,000 unlabelled images (2.6 GB) are not needed. Stand-in: textured shapes.
"""

from __future__ import annotations

import numpy as np

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Entry, Source
from fedrepro.data.images import Images, ImageSet, image_size, reading


def stl10(source: Source, *, train: int = 5_000, test: int = 8_000, pooled: bool = False) -> Dataset:
    return _SET.load(source, train, test, pooled)


def _read(found: Found, part: str) -> Images:
    from torchvision.datasets import STL10

    class Labelled(STL10):
        """torchvision asks for the unlabelled images, whatever is read."""

        train_list = STL10.train_list[:2]

    folder = found["train_X.bin"].parent
    with reading(folder, "STL-10's binary version"):
        data = Labelled(folder.parent, split=part)
    return data.data, data.labels.astype(np.int64)


def _standin(rng: np.random.Generator, samples: int) -> Images:
    from fedrepro.data.standins.textures import textured_shapes

    return textured_shapes(rng, classes=10, samples=samples, channels=3, side=96)


_SET = ImageSet(
    "stl10",
    10,
    (3, 96, 96),
    5_000,
    8_000,
    _read,
    _standin,
    mean=(0.4467, 0.4398, 0.4066),  # assumed: the channels' mean over the training images; no paper states it
    std=(0.2603, 0.2566, 0.2713),  # assumed: their deviation, likewise
)


DATASET = Entry(stl10, seeded=False, size=image_size(stl10), files="stl10")
