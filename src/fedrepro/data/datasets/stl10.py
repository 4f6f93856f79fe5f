"""STL-10, labelled part (Coates, Lee, Ng 2011, An analysis of single-layer networks in unsupervised feature
learning): 10 classes of photographs.

Shapes: train x [5000, 3, 96, 96] bytes, y [5000], 500 per class; test 8,000, 800 per class. Read by torchvision from
the binary version; the 100,000 unlabelled images (2.6 GB) are not needed. Stand-in: textured shapes.
"""

import numpy as np

from fedrepro.data.dataset import Found
from fedrepro.data.images import Images, ImageSet, reading
from fedrepro.data.standins.textures import textured_shapes


def _read(found: Found, part: str) -> Images:
    from torchvision.datasets import STL10

    class Labelled(STL10):
        """torchvision requires the unlabelled images for every split."""

        train_list = STL10.train_list[:2]

    folder = found["train_X.bin"].parent
    with reading(folder, "STL-10's binary version"):
        data = Labelled(folder.parent, split=part)
    return data.data, data.labels.astype(np.int64)


# assumed: mean and deviation of the channels over the training images; no paper states them
_MEAN, _STD = (0.4467, 0.4398, 0.4066), (0.2603, 0.2566, 0.2713)
_SET = ImageSet("stl10", 10, (3, 96, 96), 5_000, 8_000, _read, textured_shapes, _MEAN, _STD)
DATASET = _SET.entry(train=200, test=50)
