"""EMNIST by class (Cohen, Afshar, Tapson, van Schaik 2017, arXiv 1702.05373): 62 characters, 0-9A-Za-z.

Shapes: train x [697932, 1, 28, 28] bytes, y [697932]; test 116,323; class sizes differ widely. The idx files hold every
image transposed; here it is upright. The layout `test_part` is the complete test part in numpy's format, upright:
`images` [116323, 28, 28], `labels`, `mapping` (the characters). Train and test are then disjoint parts of it, together
at most its 116,323. A model gets pixels/255, as in LEAF. Stand-in: rendered handwriting of 3,600
writers, as in NIST Special Database 19; at most 62,000 and 12,400 samples. These are the default sizes, so that a plan
holds with and without the real files.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset, Found
from fedrepro.data.images import Images, ImageSet, read_idx, reading
from fedrepro.data.standins.handwriting import CHARACTERS, handwriting
from fedrepro.errors import UserError

_AT_MOST = (62_000, 12_400)  # assumed: 1,000 and 200 per class, drawn in seconds


def emnist(
    source: Source, *, train: int = _AT_MOST[0], test: int = _AT_MOST[1], pooled: bool = False, keep: str = ""
) -> Dataset:
    """keep: only these characters (thesis §2.5.1: a to j), numbered in this order; train and test count all samples."""
    data = _SET.load(source, train=train, test=test, pooled=pooled)
    if not keep:
        return data
    if not set(keep) <= set(CHARACTERS) or len(set(keep)) < len(keep):
        raise UserError(f"emnist: keep = '{keep}': each once, of 0-9A-Za-z")
    number = np.full(len(CHARACTERS), -1)
    number[[CHARACTERS.index(character) for character in keep]] = np.arange(len(keep))
    splits: dict[str, Any] = {}
    for name, split in data.splits().items():
        mine = split.take(np.flatnonzero(number[split.y] >= 0))
        splits[name] = replace(mine, y=number[mine.y])
    return replace(data, outputs=len(keep), **splits)


def _read(found: Found, part: str) -> Images:
    if found.layout == "test_part":
        return _read_test_part(found["emnist_byclass_test.npz"])
    x, y = read_idx(found, f"emnist-byclass-{part}", archive="gzip.zip" if found.layout == "zip" else None)
    return x.swapaxes(2, 3), y


def _read_test_part(path: Path) -> Images:
    with reading(path, "npz of images, labels and mapping"), np.load(path, allow_pickle=False) as archive:
        images, labels, mapping = (archive[name] for name in ("images", "labels", "mapping"))
        if "".join(mapping.tolist()) != CHARACTERS:
            raise ValueError("mapping is not 0-9A-Za-z")
        if images.ndim != 3 or labels.ndim != 1:
            raise ValueError(f"images are {list(images.shape)} and labels {list(labels.shape)}")
        return images[:, None], labels.astype(np.int64)


_STANDIN = partial(handwriting, writers=3_600)
_SET = ImageSet(
    "emnist", 62, (1, 28, 28), 697_932, 116_323, _read, _STANDIN, standin_at_most=_AT_MOST, test_part="test_part"
)
DATASET = _SET.entry(emnist, train=1240, test=124, pooled=True)
