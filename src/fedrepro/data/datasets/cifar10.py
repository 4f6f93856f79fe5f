"""CIFAR-10 (Krizhevsky 2009, Learning multiple layers of features from tiny images): 10 classes of photographs.

Shapes: train x [50000, 3, 32, 32] bytes, y [50000], 5,000 per class; test 10,000, 1,000 per class. Read from the python
version (pickles, by torchvision, after its checksums), from the binary version, or from the layout `sample`: the
binary version's first training batch, 10,000 images, and the whole test batch. Channels are normalised as in
FL-SC-NIID, whose partitions are among ours, too. Stand-in: textured shapes.
"""

import numpy as np

from fedrepro.data.dataset import Found
from fedrepro.data.images import Images, ImageSet, read_cifar
from fedrepro.data.standins.textures import textured_shapes
from fedrepro.errors import UserError

_RECORD = 1 + 3 * 32 * 32  # bytes: the label, then the planes red, green, blue


def _read(found: Found, part: str) -> Images:
    if found.layout == "python":
        return read_cifar("CIFAR10", found, part)
    batches = []
    for path in sorted(found.paths.values()):
        if path.name.startswith("data_batch_" if part == "train" else "test_batch"):
            content = np.fromfile(path, dtype=np.uint8)
            if (size := len(content)) == 0 or size % _RECORD:
                raise UserError(f"{path}: {size} bytes are not a whole number of records of {_RECORD} (cut off?)")
            batches.append(content.reshape(-1, _RECORD))
    records = np.concatenate(batches)
    return records[:, 1:].reshape(-1, 3, 32, 32), records[:, 0].astype(np.int64)


_MEAN, _STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_SET = ImageSet("cifar10", 10, (3, 32, 32), 50_000, 10_000, _read, textured_shapes, _MEAN, _STD)
DATASET = _SET.entry(train=400, test=50)
