"""CIFAR-100 (Krizhevsky 2009, Learning multiple layers of features from tiny images): 100 classes of photographs.

Shapes: train x [50000, 3, 32, 32] bytes, y [50000] the fine label, 500 per class; test 10,000, 100 per class. Read from
the python version (pickles, by torchvision, after its checksums), or from the layout `sample`: the first 1,117
training and 916 test images in numpy's format. Stand-in: textured shapes.
"""

import numpy as np

from fedrepro.data.dataset import Found
from fedrepro.data.images import Images, ImageSet, read_cifar, reading
from fedrepro.data.standins.textures import textured_shapes


def _read(found: Found, part: str) -> Images:
    if found.layout == "python":
        return read_cifar("CIFAR100", found, part)
    path = found[f"cifar100_{part}_partial.npz"]
    with reading(path, "npz of data and fine_labels"), np.load(path, allow_pickle=False) as archive:
        return archive["data"].reshape(-1, 3, 32, 32), archive["fine_labels"].astype(np.int64)


# assumed: mean and deviation of the channels over the training images; no paper states them
_MEAN, _STD = (0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762)
_SET = ImageSet("cifar100", 100, (3, 32, 32), 50_000, 10_000, _read, textured_shapes, _MEAN, _STD)
DATASET = _SET.entry(train=800, test=100)
