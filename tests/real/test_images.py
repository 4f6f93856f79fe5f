"""The image data sets on their real files: known counts, first labels and means, and classes that mean images tell
apart."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.catalogue import entry
from fedrepro.data.dataset import Split
from fedrepro.errors import UserError

MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
CIFAR10_BATCH_1 = [1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981]


def nearest_class_mean(train: Split, test: Split) -> float:
    """Test accuracy of the class with the nearest mean training image."""
    x, z = (split.x.reshape(len(split), -1).astype(np.float32) / 255 for split in (train, test))
    means = np.stack([x[train.y == c].mean(axis=0) for c in range(train.y.max() + 1)])
    nearest = (z @ means.T - (means**2).sum(axis=1) / 2).argmax(axis=1)
    return float((nearest == test.y).mean())


def channels(split: Split) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of pixel/255, by channel."""
    x = split.x.astype(np.float32) / 255
    return x.mean(axis=(0, 2, 3), dtype=np.float64), x.std(axis=(0, 2, 3), dtype=np.float64)


@pytest.mark.parametrize("name", ["mnist", "fashion_mnist", "emnist", "cifar10", "cifar100", "stl10"])
def test_every_file_has_its_published_checksum(name, real):
    data = real(name)
    files = entry(name)["layouts"][data.found.layout]["files"]
    assert data.kind == "real"
    assert dict(data.found.checksums) == {file["path"]: f"md5:{file['md5']}" for file in files}


@pytest.mark.parametrize(
    ("name", "train", "test", "first", "first_test", "mean", "deviation", "accuracy"),
    [
        ("mnist", MNIST_TRAIN, MNIST_TEST, [5, 0, 4, 1, 9], [7, 2, 1, 0, 4], 0.1307, 0.3081, 0.80),
        ("fashion_mnist", [6000] * 10, [1000] * 10, [9, 0, 0, 3, 0], [9, 2, 1, 1, 6], 0.2860, 0.3530, 0.65),
    ],
)
def test_mnist_and_fashion_mnist(name, train, test, first, first_test, mean, deviation, accuracy, real):
    data = real(name)
    assert data.train.x.shape == (60_000, 1, 28, 28)
    assert data.test.x.shape == (10_000, 1, 28, 28)
    assert np.bincount(data.train.y).tolist() == train
    assert np.bincount(data.test.y).tolist() == test
    assert data.train.y[:5].tolist() == first
    assert data.test.y[:5].tolist() == first_test
    assert (data.train.x.min(), data.train.x.max()) == (0, 255)
    found = channels(data.train)
    assert found[0] == pytest.approx([mean], abs=5e-5)
    assert found[1] == pytest.approx([deviation], abs=5e-5)
    assert nearest_class_mean(data.train, data.test) > accuracy


def test_cifar10(real):
    data = real("cifar10")
    assert data.train.x.shape[1:] == data.test.x.shape[1:] == (3, 32, 32)
    assert np.bincount(data.train.y).tolist() == ([5000] * 10 if data.found.complete else CIFAR10_BATCH_1)
    assert np.bincount(data.test.y).tolist() == [1000] * 10
    assert data.train.y[:5].tolist() == [6, 9, 9, 4, 1]
    assert data.test.y[:5].tolist() == [3, 8, 8, 0, 6]
    assert (data.train.x.min(), data.train.x.max()) == (0, 255)
    mean, deviation = channels(data.train)
    # The channels' published mean; red, green and blue are in this order.
    assert data.offset[:, 0, 0] / 255 == pytest.approx(mean, abs=0.005)
    # The published deviation is the mean of each image's own deviation, less than that of all pixels (0.247, …).
    own = (data.train.x.astype(np.float32) / 255).std(axis=(2, 3)).mean(axis=0)
    assert 1 / data.factor[:, 0, 0] / 255 == pytest.approx(own, abs=0.005)
    assert (deviation > own).all()
    assert nearest_class_mean(data.train, data.test) > 0.25


def test_a_picture_of_cifar10_is_smooth_across_and_down(real):
    """Neighbours in rows and columns are alike, so planes, rows and columns are in the right order."""
    x = real("cifar10", train=500).train.x.astype(np.float32)
    across, down = np.abs(np.diff(x, axis=3)).mean(), np.abs(np.diff(x, axis=2)).mean()
    strangers = np.abs(x - np.roll(x, 1, axis=0)).mean()
    assert max(across, down) < strangers / 3


def test_cifar100(real):
    data = real("cifar100")
    sizes = (50_000, 10_000) if data.found.complete else (1117, 916)
    assert (len(data.train), len(data.test)) == sizes
    assert set(data.train.y) == set(data.test.y) == set(range(100))
    assert (data.train.x.min(), data.train.x.max()) == (0, 255)
    mean, deviation = channels(data.train)
    assert data.offset[:, 0, 0] / 255 == pytest.approx(mean, abs=0.02)
    assert 1 / data.factor[:, 0, 0] / 255 == pytest.approx(deviation, abs=0.02)
    assert nearest_class_mean(data.train, data.test) > 0.03  # chance: 0.01


EMNIST_TEST_LETTERS = [1644, 853, 432, 1683, 4092, 400, 589, 1479, 427, 317]  # a to j of the by-class test part


def test_emnist(real):
    data = real("emnist", train=50_000, test=10_000)
    assert (len(data.train), len(data.test)) == (50_000, 10_000)
    assert set(data.train.y) == set(data.test.y) == set(range(62))
    # Digits are oriented as in MNIST: its mean images tell them apart, and turned or mirrored ones half as well.
    digits, mnist = data.test.take(np.flatnonzero(data.test.y < 10)), real("mnist").train
    upright = nearest_class_mean(mnist, digits)
    assert upright > 0.5
    for turned in (digits.x.swapaxes(2, 3), digits.x[:, :, ::-1], digits.x[:, :, :, ::-1]):
        assert nearest_class_mean(mnist, Split(turned, digits.y)) < 0.6 * upright


def test_emnist_complete_or_its_test_part(real):
    found = real("emnist", train=1240, test=124).found
    if found.complete:
        data = real("emnist", train=697_932, test=116_323)
        assert (len(data.train), len(data.test)) == (697_932, 116_323)
        letters = data.test.y
    else:
        assert found.layout == "test_part"
        letters = real("emnist", train=100_000, test=16_323, pooled=True).train.y
        assert len(letters) == 116_323
        assert (letters < 10).sum() == 57_918
        with pytest.raises(UserError, match="the files hold 116323, the test part only"):
            real("emnist", train=697_932, test=116_323)
    assert np.bincount(letters)[36:46].tolist() == EMNIST_TEST_LETTERS


def test_the_test_part_of_emnist_gives_train_and_test_no_image_in_common(real):
    data, whole = real("emnist", train=20_000, test=5_000), real("emnist", train=20_000, test=5_000, pooled=True)
    assert len(data.train) + len(data.test) == len(whole.train) == 25_000
    train, test = ({image.tobytes() for image in split.x} for split in (data.train, data.test))
    assert len(train & test) <= 2  # NIST has a few images twice


def test_femnist(real):
    data = real("femnist", writers=250, minimum=100)
    sizes = np.bincount(data.train.client)
    assert len(sizes) == len(set(data.facts["client_names"])) == 250
    assert sizes.min() >= 100
    assert data.train.x.shape[1:] == (1, 28, 28)
    assert set(data.train.y) == set(range(62))
    assert np.median(data.train.x) == 0  # white on black
    keys = {(client, image.tobytes()) for client, image in zip(data.train.client, data.train.x, strict=True)}
    assert len(keys) == len(data.train)
    halves = [data.train.take(np.flatnonzero((data.train.client < 125) == first)) for first in (True, False)]
    assert nearest_class_mean(*halves) > 0.35  # by the mean images of other writers; chance: 0.016
    if not data.found.complete:
        with pytest.raises(UserError, match="has 272 with at least 100 samples"):
            real("femnist", writers=273, minimum=100)


def test_stl10(real):
    data = real("stl10")
    assert np.bincount(data.train.y).tolist() == [500] * 10
    assert np.bincount(data.test.y).tolist() == [800] * 10
    assert data.offset[:, 0, 0] / 255 == pytest.approx(channels(data.train)[0], abs=0.005)
    assert nearest_class_mean(data.train, data.test) > 0.2


def test_mnist5k_is_a_part_of_mnist(real):
    small, whole = real("mnist5k"), real("mnist", pooled=True)
    known = {image.tobytes(): int(label) for image, label in zip(whole.train.x, whole.train.y, strict=True)}
    for split in (small.train, small.test):
        assert [known.get(image.tobytes()) for image in split.x] == split.y.tolist()
    assert nearest_class_mean(small.train, small.test) > 0.75


def test_a_subset_keeps_the_shares_of_the_classes_and_the_order(real):
    one, again = (real("mnist", train=6_000, test=1_000) for _ in range(2))
    shares = np.array(MNIST_TRAIN) / 10
    assert (np.abs(np.bincount(one.train.y) - shares) < 1).all()
    assert (np.abs(np.bincount(one.test.y) - np.array(MNIST_TEST) / 10) < 1).all()
    assert np.array_equal(one.train.x, again.train.x)
    whole = real("mnist").train
    place = {image.tobytes(): i for i, image in enumerate(whole.x)}
    places = [place[image.tobytes()] for image in one.train.x]
    assert places == sorted(places)
    assert whole.y[places].tolist() == one.train.y.tolist()


def test_pooled_is_all_seventy_thousand(real):
    data = real("fashion_mnist", pooled=True)
    assert data.test is None
    assert np.bincount(data.train.y).tolist() == [7000] * 10
