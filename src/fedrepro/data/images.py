"""What the image data sets share: readers of idx and CIFAR files, subsets, pooling, the stand-in's place.

Images are bytes x [n, channels, height, width] with labels y [n]; a model is given (x/255 − mean)/std. `train` and
`test` are numbers of samples. Fewer than all are a random subset with the classes' shares kept, in the order of the
files; more than there are is an error, but for a layout that holds only a sample of the data set: that gives what
it has. `pooled` puts the test samples behind the training samples and leaves no test set.

torchvision reads what it has readers for. It is imported only when they are used.
"""

from __future__ import annotations

import contextlib
import gzip
import inspect
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from fedrepro.data.catalogue import Found
from fedrepro.data.dataset import Dataset, Source, Split, pixels
from fedrepro.errors import UserError

Images = tuple[np.ndarray, np.ndarray]  # x uint8 [n, channels, height, width], y int64 [n]


@dataclass(frozen=True)
class ImageSet:
    """A data set of images. shape: of one image. train, test: how many the complete data set has. read: its files,
    "train" or "test" → images. standin: random stream, number of samples → images. standin_at_most: the largest
    (train, test) of the stand-in, where the size of the real set would take too long to draw."""

    name: str
    classes: int
    shape: tuple[int, int, int]
    train: int
    test: int
    read: Callable[[Found, str], Images]
    standin: Callable[[np.random.Generator, int], Images]
    mean: float | tuple[float, ...] = 0.0
    std: float | tuple[float, ...] = 1.0
    standin_at_most: tuple[int, int] | None = None

    def load(self, source: Source, train: int, test: int, pooled: bool) -> Dataset:
        for part, asked, most in (("train", train, self.train), ("test", test, self.test)):
            if not 1 <= asked <= most:
                raise UserError(f"{self.name}: {part} = {asked}: must lie in 1 … {most}")
        found = source.find(self.name)
        if found is None:
            most = self.standin_at_most or (self.train, self.test)
            train, test = min(train, most[0]), min(test, most[1])
            first, second = cut(*self.standin(source.rng, train + test), train, test, source.rng)
        else:
            first = subset(*self._read(found, "train"), train, source.rng)
            second = subset(*self._read(found, "test"), test, source.rng)
        return image_dataset(
            first, second, classes=self.classes, pooled=pooled, found=found, mean=self.mean, std=self.std
        )

    def _read(self, found: Found, part: str) -> Images:
        x, y = self.read(found, part)
        where = f"{next(iter(found.paths.values())).parent}: {self.name}, {part}"
        if len(x) != len(y):
            raise UserError(f"{where}: {len(x)} images but {len(y)} labels")
        expected = self.train if part == "train" else self.test
        if len(y) == 0 or (found.complete and len(y) != expected):
            raise UserError(f"{where}: {len(y)} images, not {expected}")
        if x.shape[1:] != self.shape or x.dtype != np.uint8:
            raise UserError(f"{where}: images are {x.dtype} {list(x.shape[1:])}, not uint8 {list(self.shape)}")
        if y.min() < 0 or y.max() >= self.classes:
            raise UserError(f"{where}: labels from {y.min()} to {y.max()}, not from 0 to {self.classes - 1}")
        return x, y


def image_dataset(
    train: Images,
    test: Images,
    *,
    classes: int,
    pooled: bool,
    found: Found | None,
    mean: float | tuple[float, ...] = 0.0,
    std: float | tuple[float, ...] = 1.0,
) -> Dataset:
    """Train and test images as a data set: real where files were found."""
    if pooled:
        train = tuple(np.concatenate(columns) for columns in zip(train, test, strict=True))
    return Dataset(
        "standin" if found is None else "real",
        train=Split(*train),
        test=None if pooled else Split(*test),
        outputs=classes,
        found=found,
        **pixels(mean, std),
    )


def image_size(load: Callable[..., Dataset]) -> Callable[..., tuple[None, int]]:
    """The size for the plan of a data set made by `load`, whose signature holds the defaults."""
    default = {name: parameter.default for name, parameter in inspect.signature(load).parameters.items()}

    def size(**parameters) -> tuple[None, int]:
        given = default | parameters
        return None, given["train"] + given["test"] * given["pooled"]

    return size


# --- subsets ----------------------------------------------------------------------------------------------------------


def stratified(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Rows, in order, of a random subset. A class gets its share of `size`, rounded down; what is left goes to the
    largest remainders, ties by lot."""
    classes, counts = np.unique(y, return_counts=True)
    quota, remainder = np.divmod(counts * size, len(y))
    order = np.lexsort((rng.random(len(classes)), -remainder))
    quota[order[: size - quota.sum()]] += 1
    chosen = [rng.choice(np.flatnonzero(y == c), q, replace=False) for c, q in zip(classes, quota, strict=True)]
    return np.sort(np.concatenate(chosen))


def subset(x: np.ndarray, y: np.ndarray, size: int, rng: np.random.Generator) -> Images:
    """`size` stratified samples, or all where there are no more."""
    if size >= len(y):
        return x, y
    rows = stratified(y, size, rng)
    return x[rows], y[rows]


def cut(x: np.ndarray, y: np.ndarray, train: int, test: int, rng: np.random.Generator) -> tuple[Images, Images]:
    """Two stratified sets without a common sample."""
    held_out = np.zeros(len(y), dtype=bool)
    held_out[stratified(y, test, rng)] = True
    return subset(x[~held_out], y[~held_out], train, rng), (x[held_out], y[held_out])


# --- readers ----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def reading(where: Path | str, what: str) -> Iterator[None]:
    """Whatever a reader says of a broken file, as one line that names the file."""
    try:
        yield
    except (
        OSError,
        EOFError,
        zlib.error,
        zipfile.BadZipFile,
        AssertionError,
        KeyError,
        TypeError,
        ValueError,
        RuntimeError,
    ) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{where}: cannot be read as {what}: {said}") from None


def read_idx(found: Found, prefix: str, archive: str | None = None) -> Images:
    """x [n, 1, height, width] and y of `<prefix>-images-idx3-ubyte.gz` and `<prefix>-labels-idx1-ubyte.gz`, files
    or, with `archive` given, members of the folder gzip/ in that zip file."""
    from torchvision.datasets.mnist import read_image_file, read_label_file

    def read(reader, name: str) -> np.ndarray:
        path, member = (found[archive], f"gzip/{name}") if archive else (found[name], None)
        with reading(f"{path}//{member}" if member else path, "idx gz"), _plain(path, member) as plain:
            return reader(plain).numpy()

    x = read(read_image_file, f"{prefix}-images-idx3-ubyte.gz")
    return x[:, None], read(read_label_file, f"{prefix}-labels-idx1-ubyte.gz")


@contextlib.contextmanager
def _plain(path: Path, member: str | None) -> Iterator[str]:
    """The name of a temporary file with the unpacked content: torchvision's reader takes a path only."""
    with _opened(path, member) as packed, gzip.open(packed) as content, tempfile.NamedTemporaryFile() as plain:
        shutil.copyfileobj(content, plain)
        plain.flush()
        yield plain.name


@contextlib.contextmanager
def _opened(path: Path, member: str | None) -> Iterator[BinaryIO]:
    with open(path, "rb") as file:
        if member is None:
            yield file
        else:
            with zipfile.ZipFile(file) as archive, archive.open(member) as inside:
                yield inside


def read_cifar(reader: str, found: Found, part: str) -> Images:
    """x [n, 3, 32, 32] and y of the python version, by torchvision's class `reader`. Files are pickles: torchvision
    holds all of them against the md5 that it knows before it opens the first one."""
    from torchvision import datasets

    folder = next(iter(found.paths.values())).parent
    try:
        data = getattr(datasets, reader)(folder.parent, train=part == "train")
    except RuntimeError:
        raise UserError(f"{folder}: not the files that torchvision knows by md5; such pickles are not opened") from None
    return data.data.transpose(0, 3, 1, 2), np.array(data.targets, dtype=np.int64)
