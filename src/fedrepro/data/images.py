"""Shared by the image data sets: readers of idx and CIFAR files, subsets, pooling, stand-ins.

A model gets (x/255 − mean)/std. A smaller number of samples, `train` or `test`, gives a random subset with the classes'
shares, in the order of the files. A larger one is an error, except for a layout that holds only a sample of the data
set: that gives all it has. Of a layout with the test part alone, train and test are disjoint parts. `pooled` appends
the test samples to the training samples and leaves no test set.
"""

import contextlib
import gzip
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source
from fedrepro.data.dataset import Channels, Dataset, Found, Split, pixels
from fedrepro.errors import UserError

Images = tuple[np.ndarray, np.ndarray]  # x uint8 [n, channels, height, width], y int64 [n]
Count = int | None  # of samples; None: all that the stand-in has
_BROKEN = (OSError, EOFError, KeyError, TypeError, ValueError, AssertionError, RuntimeError, zlib.error)


@dataclass(frozen=True)
class ImageSet:
    """A data set of images. train, test: sizes of the complete data set."""

    name: str
    classes: int
    shape: tuple[int, int, int]  # of one image
    train: int
    test: int
    read: Callable[[Found, str], Images]  # its files, "train" or "test" → images
    standin: Callable[..., Images]  # random stream, samples, classes, channels, side → images
    mean: Channels = 0.0
    std: Channels = 1.0
    standin_at_most: tuple[int, int] | None = None  # train, test: where the real size would take too long to draw
    test_part: str = ""  # a layout with the test part only: both train and test are cut from it, as many as are asked

    def load(self, source: Source, *, train: Count = None, test: Count = None, pooled: bool = False) -> Dataset:
        """The real images, or the stand-in's."""
        train, test = self._sizes(train, test)
        for part, asked, most in (("train", train, self.train), ("test", test, self.test)):
            if not 1 <= asked <= most:
                raise UserError(f"{self.name}: {part} = {asked}: must lie in 1 … {most}")
        found = source.find(self.name)
        if found is None:
            train, test = map(min, (train, test), self._sizes(None, None))
            form = {"classes": self.classes, "channels": self.shape[0], "side": self.shape[1]}
            first, second = cut(*self.standin(source.rng, samples=train + test, **form), train, test, source.rng)
        elif found.layout == self.test_part:
            x, y = self._read(found, "test")
            if train + test > len(y):
                raise UserError(
                    f"{self.name}: train + test = {train + test}: the files hold {len(y)}, the test part only"
                )
            first, second = cut(x, y, train, test, source.rng)
        else:
            first = subset(*self._read(found, "train"), train, source.rng)
            second = subset(*self._read(found, "test"), test, source.rng)
        return image_dataset(first, second, self.classes, pooled, found, mean=self.mean, std=self.std)

    def entry(self, load: Callable[..., Dataset] | None = None, **example: Any) -> Entry:
        """The declaration of the data set; load: a function that adds to `self.load`."""
        return Entry(load or self.load, seeded=False, size=self._size, files=self.name, example=example)

    def _size(self, train: Count = None, test: Count = None, pooled: bool = False, **_: Any) -> tuple[None, int]:
        train, test = self._sizes(train, test)
        return None, train + test * pooled

    def _sizes(self, train: Count, test: Count) -> tuple[int, int]:
        most = self.standin_at_most or (self.train, self.test)
        return most[0] if train is None else train, most[1] if test is None else test

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
    train: Images, test: Images, classes: int, pooled: bool, found: Found | None, **normalised: Channels
) -> Dataset:
    """Train and test images as a data set: real where files were found. normalised: mean and std of `pixels`."""
    if pooled:
        train = np.concatenate([train[0], test[0]]), np.concatenate([train[1], test[1]])
    kind, held_out = "standin" if found is None else "real", None if pooled else Split(*test)
    return Dataset(kind, Split(*train), held_out, outputs=classes, found=found, **pixels(**normalised))


def stratified(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Sorted rows of a random subset: each class its share of `size`, the rest by largest remainder, ties by lot."""
    classes, counts = np.unique(y, return_counts=True)
    quota, remainder = np.divmod(counts * size, len(y))
    order = np.lexsort((rng.random(len(classes)), -remainder))
    quota[order[: size - quota.sum()]] += 1
    chosen = [rng.choice(np.flatnonzero(y == c), q, replace=False) for c, q in zip(classes, quota, strict=True)]
    return np.sort(np.concatenate(chosen))


def subset(x: np.ndarray, y: np.ndarray, size: int, rng: np.random.Generator) -> Images:
    """`size` stratified samples, or all if there are no more."""
    if size >= len(y):
        return x, y
    rows = stratified(y, size, rng)
    return x[rows], y[rows]


def cut(x: np.ndarray, y: np.ndarray, train: int, test: int, rng: np.random.Generator) -> tuple[Images, Images]:
    """Two disjoint stratified sets."""
    held_out = np.zeros(len(y), dtype=bool)
    held_out[stratified(y, test, rng)] = True
    return subset(x[~held_out], y[~held_out], train, rng), (x[held_out], y[held_out])


@contextlib.contextmanager
def reading(where: Path | str, what: str) -> Iterator[None]:
    """A reader's error on a broken file becomes a one-line UserError that names the file."""
    try:
        yield
    except (*_BROKEN, zipfile.BadZipFile) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{where}: cannot be read as {what}: {said}") from None


def read_idx(found: Found, prefix: str, archive: str | None = None) -> Images:
    """x [n, 1, height, width] and y of a pair of idx files, or of members of the folder gzip/ in the zip `archive`."""
    from torchvision.datasets.mnist import read_image_file, read_label_file

    def read(reader: Callable[[str], Any], name: str) -> np.ndarray:
        path, member = (found[archive], f"gzip/{name}") if archive else (found[name], None)
        with reading(f"{path}//{member}" if member else path, "idx gz"), _plain(path, member) as plain:
            return reader(plain).numpy()

    x = read(read_image_file, f"{prefix}-images-idx3-ubyte.gz")
    return x[:, None], read(read_label_file, f"{prefix}-labels-idx1-ubyte.gz")


def read_mnist(found: Found, part: str) -> Images:
    """The files of MNIST and Fashion-MNIST."""
    return read_idx(found, {"train": "train", "test": "t10k"}[part])


@contextlib.contextmanager
def _plain(path: Path, member: str | None) -> Iterator[str]:
    """The name of a temporary file with the unpacked content: torchvision's reader takes only a path."""
    with contextlib.ExitStack() as stack:
        packed = stack.enter_context(zipfile.ZipFile(path)).open(member) if member else path
        plain = stack.enter_context(tempfile.NamedTemporaryFile())
        shutil.copyfileobj(stack.enter_context(gzip.open(packed)), plain)
        plain.flush()
        yield plain.name


def read_cifar(reader: str, found: Found, part: str) -> Images:
    """x [n, 3, 32, 32] and y of the pickles; torchvision compares all with its own md5s before it opens the first."""
    from torchvision import datasets

    folder = next(iter(found.paths.values())).parent
    try:
        data = getattr(datasets, reader)(folder.parent, train=part == "train")
    except RuntimeError:
        raise UserError(f"{folder}: not the files that torchvision knows by md5; such pickles are not opened") from None
    return data.data.transpose(0, 3, 1, 2), np.array(data.targets, dtype=np.int64)
