"""Handwriting: shapes, the order of the characters, and differences between writers."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.standins import handwriting as module
from fedrepro.data.standins.handwriting import handwriting, written


def draw(samples: int, seed: int = 0, classes: int = 62, writers: int = 1):
    """x, y and writer, as `handwriting` draws them."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(samples) % classes)
    writer = rng.permutation(np.arange(samples) % writers)
    return written(rng, y, writer), y, writer


def nearest_mean(x, y, x_test, y_test) -> float:
    """Accuracy of the class whose mean training image is nearest."""
    classes = np.unique(y)
    means = np.stack([x[y == c].mean(axis=0) for c in classes])
    distance = (means**2).sum(axis=1) - 2 * x_test @ means.T
    return float((classes[distance.argmin(axis=1)] == y_test).mean())


def flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1).astype(np.float64)


# --- form -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "writers"), [(10, 1), (62, 7)])
def test_shapes_types_and_balance(classes, writers):
    x, y = handwriting(np.random.default_rng(0), 300, classes, writers)
    assert (x.shape, x.dtype) == ((300, 1, 28, 28), np.uint8)
    assert (y.shape, y.dtype) == ((300,), np.int64)
    assert len(np.bincount(y)) == classes
    assert np.ptp(np.bincount(y)) <= 1
    assert np.array_equal(x, draw(300, classes=classes, writers=writers)[0])


def test_there_are_no_more_writers_than_samples():
    many, few = (handwriting(np.random.default_rng(0), 9, 3, writers)[0] for writers in (500, 9))
    assert np.array_equal(many, few)


def test_the_same_stream_gives_the_same_pages_and_no_two_samples_are_alike():
    first, again, other = draw(300, writers=3), draw(300, writers=3), draw(300, seed=1, writers=3)
    for a, b in zip(first, again, strict=True):
        assert np.array_equal(a, b)
    assert not np.array_equal(first[0], other[0])
    assert len(np.unique(flat(first[0]), axis=0)) == 300


def test_labels_and_writers_can_be_given_in_any_number():
    y, writer = np.array([5, 5, 61, 0]), np.array([2, 2, 0, 2])
    x = written(np.random.default_rng(0), y, writer)
    assert x.shape == (4, 1, 28, 28)
    assert written(np.random.default_rng(0), y[:0], writer[:0]).shape == (0, 1, 28, 28)


def test_characters_are_white_on_black_inside_the_image():
    x, _, _ = draw(2000, writers=100)
    assert 0.08 < x.mean() / 255 < 0.3
    assert np.median(x) < 25
    assert (x.max(axis=(1, 2, 3)) > 120).all()
    border = np.concatenate([x[:, 0, 0], x[:, 0, -1], x[:, 0, :, 0], x[:, 0, :, -1]], axis=1)
    assert border.mean() < 15


# --- characters -------------------------------------------------------------------------------------------------------


def test_characters_come_in_the_order_of_emnist_by_class():
    assert module.CHARACTERS == "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    inside = module._glyphs()[0] > 0  # of DejaVu Sans
    height, width = (np.array([np.ptp(np.flatnonzero(line)) + 1 for line in inside.any(axis=a)]) for a in (2, 1))
    assert (np.maximum(height, width) == module.BOX * module.FINE).all()
    label = module.CHARACTERS.index
    assert width[label("1")] < width[label("0")]
    assert width[label("I")] < 0.3 * height[label("I")]
    assert width[label("m")] > height[label("m")]
    middle = slice(module.GRID // 2 - 2, module.GRID // 2 + 2)
    assert not inside[label("O"), middle, middle].any()  # hollow
    assert inside[label("X"), middle, middle].all()  # crossing


def test_no_font_draws_two_characters_alike():
    glyphs = module._glyphs()
    assert glyphs.shape[:2] == (len(module.FONTS), 62)
    for font in glyphs:
        assert len(np.unique(font.reshape(62, -1), axis=0)) == 62


def test_digits_can_be_told_apart_by_their_means_and_62_characters_less_well():
    accuracy = {}
    for classes in (10, 62):
        x, y, _ = draw(6000, classes=classes, writers=100)
        x = flat(x)
        accuracy[classes] = nearest_mean(x[:5000], y[:5000], x[5000:], y[5000:])
    assert 0.7 < accuracy[10] < 0.98
    assert 0.3 < accuracy[62] < accuracy[10] - 0.15


# --- writers ----------------------------------------------------------------------------------------------------------


def upright(n: int, **habits) -> dict[str, np.ndarray]:
    """The hands of n samples: straight, clean and centred, except for the given habits."""
    plain = {"slant": 0, "turn": 0, "size": (1, 1), "place": (0, 0), "pen": 0.3, "blur": 1, "waves": 0, "ink": 1}
    hands = {k: np.tile(np.float32(v), (n, 1) if np.ndim(v) else n) for k, v in (plain | {"noise": 0} | habits).items()}
    return hands | {"fonts": np.zeros((n, 2), dtype=int)}


def measures(**habits) -> dict[str, float]:
    """Ink, centre, lean to the right, length and thickness of 400 capital I of DejaVu Sans, a plain stroke."""
    n = 400
    letters = np.full(n, module.CHARACTERS.index("I"))
    image = module._draw(np.random.default_rng(0), letters, upright(n, **habits)).astype(np.float64) / 255
    c = np.arange(28) - 13.5
    ink = image.sum(axis=(1, 2))
    column, row = image.sum(axis=1) @ c / ink, image.sum(axis=2) @ c / ink
    across, down = c - column[:, None], c - row[:, None]
    moment = np.einsum("nrc,nr,nc->n", image, down, across) / np.einsum("nrc,nr->n", image, down**2)
    return {
        "column": column.mean(),
        "row": row.mean(),
        "lean": -moment.mean(),
        "length": image.max(axis=2).sum(axis=1).mean(),
        "thickness": image[:, 13:15].sum(axis=2).mean(),
        "darkest": image.max(axis=(1, 2)).mean(),
        "corner": image[:, :4, :4].mean(),
    }


@pytest.mark.parametrize(
    ("habit", "changed"),
    [
        ({}, {}),
        ({"slant": 0.4}, {"lean": 0.4}),
        ({"turn": -0.3}, {"lean": np.tan(0.3), "thickness": 3.6 / np.cos(0.3), "length": None}),
        ({"place": (3, -2)}, {"column": 3 - 1 / 6, "row": -2}),
        ({"size": (1, 0.7)}, {"length": 0.7 * 20.6}),
        ({"size": (1.5, 1)}, {"thickness": 1.5 * 3.6, "column": -1.5 / 6}),
        ({"pen": 0.8}, {"thickness": 3 + 1.6, "length": 20 + 1.6}),
        ({"ink": 0.5}, {"darkest": 0.5, "thickness": 0.5 * 3.6, "length": 0.5 * 20.6}),
        ({"noise": 0.2}, {"corner": 0.2 / 8, "thickness": None, "length": None}),
    ],
)
def test_a_habit_shows_as_it_should(habit, changed):
    """The stroke is 3 × 20 pixels, 0.3 wider on every side by the pen, half a cell (1/6) to the left of the middle."""
    plain = {"column": -1 / 6, "row": 0, "lean": 0, "length": 20.6, "thickness": 3.6, "darkest": 1, "corner": 0}
    within = {"column": 0.06, "row": 0.06, "lean": 0.015, "length": 0.2, "thickness": 0.05}
    found = measures(**habit)
    for name, expected in (plain | changed).items():
        if expected is not None:
            assert found[name] == pytest.approx(expected, abs=within.get(name, 0.003)), name


def test_a_writer_can_be_told_from_the_images():
    from sklearn.linear_model import RidgeClassifier

    x, _, writer = draw(2000, classes=10, writers=10)
    x = flat(x) / 255
    model = RidgeClassifier(alpha=100).fit(x[:1500], writer[:1500])
    assert model.score(x[1500:], writer[1500:]) > 0.4  # chance is 0.1


def test_a_writers_own_means_fit_better_than_anothers():
    """Digits of one writer by the means of their own digits, and by those of each other writer."""
    x, y, writer = draw(3000, classes=10, writers=6)
    x = flat(x)
    own, foreign = [], []
    for a in range(6):
        rows = np.flatnonzero(writer == a)
        train, test = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        own.append(nearest_mean(x[train], y[train], x[test], y[test]))
        others = [writer == b for b in range(6) if b != a]
        foreign += [nearest_mean(x[other], y[other], x[test], y[test]) for other in others]
    assert np.mean(own) > np.mean(foreign) + 0.08
