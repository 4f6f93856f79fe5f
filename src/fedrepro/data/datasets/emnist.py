"""EMNIST by class (Cohen, Afshar, Tapson, van Schaik 2017, arXiv 1702.05373): 62 characters, 0-9A-Za-z.

Shapes: train x [697932, 1, 28, 28] bytes, y [697932]; test 116,323; the classes are far from equal in number. The
files hold every image transposed; here it stands upright. A model is given pixels/255, as LEAF does with the same
images. Stand-in: rendered handwriting of 3,600 writers, as many as NIST Special Database 19 has; at most 62,000
and 12,400 samples, whatever is asked.

The defaults are the stand-in's sizes, so that a plan holds with and without the real files.
"""

from __future__ import annotations

import string
from dataclasses import replace

import numpy as np

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Entry, Source
from fedrepro.data.images import Images, ImageSet, image_size, read_idx
from fedrepro.errors import UserError

CHARACTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_STANDIN = (62_000, 12_400)  # assumed: 1,000 and 200 a class, drawn in seconds


def emnist(
    source: Source, *, train: int = _STANDIN[0], test: int = _STANDIN[1], pooled: bool = False, keep: str = ""
) -> Dataset:
    """keep: only these characters, numbered in this order; train and test count those before the choice."""
    data = _SET.load(source, train, test, pooled)
    return _kept(data, keep) if keep else data


def _kept(data: Dataset, keep: str) -> Dataset:
    """The samples of some characters (thesis §2.5.1: a to j)."""
    unknown = sorted(set(keep) - set(CHARACTERS))
    if unknown or len(set(keep)) < len(keep):
        raise UserError(f"emnist: keep = '{keep}': each once, of 0-9A-Za-z")
    number = np.full(len(CHARACTERS), -1)
    number[[CHARACTERS.index(character) for character in keep]] = np.arange(len(keep))
    splits = {}
    for name, split in data.splits().items():
        mine = split.take(np.flatnonzero(number[split.y] >= 0))
        splits[name] = replace(mine, y=number[mine.y])
    return replace(data, outputs=len(keep), **splits)


def _read(found: Found, part: str) -> Images:
    x, y = read_idx(found, f"emnist-byclass-{part}", archive="gzip.zip" if found.layout == "zip" else None)
    return x.swapaxes(2, 3), y


def _standin(rng: np.random.Generator, samples: int) -> Images:
    from fedrepro.data.standins.handwriting import handwriting

    x, y, _ = handwriting(rng, samples, classes=62, writers=min(3_600, samples))
    return x, y


_SET = ImageSet("emnist", 62, (1, 28, 28), 697_932, 116_323, _read, _standin, standin_at_most=_STANDIN)


DATASET = Entry(emnist, seeded=False, size=image_size(emnist), files="emnist")
