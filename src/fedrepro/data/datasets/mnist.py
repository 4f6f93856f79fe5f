"""MNIST (LeCun, Bottou, Bengio, Haffner 1998, Gradient-based learning applied to document recognition): digits.

Shapes: train x [60000, 1, 28, 28] bytes, y [60000] = the digit; test 10,000. A model is given pixels/255, as in
Omni-Fedge. Without its files, and where no more than 5,000 samples are asked for, `data: auto` takes them from the real
digits of `mnist5k`. Stand-in: rendered handwriting of 500 writers, about as many as wrote MNIST.
"""

from __future__ import annotations

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Entry, Source
from fedrepro.data.datasets.mnist5k import PACKAGED, mnist5k
from fedrepro.data.images import Images, ImageSet, image_size, read_idx
from fedrepro.data.standins.handwriting import rendered_digits


def mnist(source: Source, *, train: int = 60_000, test: int = 10_000, pooled: bool = False) -> Dataset:
    if source.mode == "auto" and train + test <= PACKAGED and source.find("mnist") is None:
        return mnist5k(source, train=train, test=test, pooled=pooled)
    return _SET.load(source, train, test, pooled)


def _read(found: Found, part: str) -> Images:
    return read_idx(found, {"train": "train", "test": "t10k"}[part])


_SET = ImageSet("mnist", 10, (1, 28, 28), 60_000, 10_000, _read, rendered_digits)


DATASET = Entry(mnist, seeded=False, size=image_size(mnist), files="mnist")
