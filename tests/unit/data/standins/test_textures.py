"""Textured shapes: shapes, balance, and the accuracy of a linear and a convolutional model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fedrepro.data.standins import textures
from fedrepro.data.standins.textures import textured_shapes


def draw(classes: int = 10, samples: int = 50, channels: int = 1, side: int = 28, seed: int = 0):
    return textured_shapes(np.random.default_rng(seed), classes, samples, channels, side)


# --- form -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("classes", "channels", "side"), [(10, 1, 28), (10, 3, 32), (100, 3, 32), (10, 3, 96)])
def test_shapes_types_and_balance(classes, channels, side):
    x, y = draw(classes, 257, channels, side)
    assert (x.shape, x.dtype) == ((257, channels, side, side), np.uint8)
    assert (y.shape, y.dtype) == ((257,), np.int64)
    counts = np.bincount(y)
    assert len(counts) == classes
    assert counts.max() - counts.min() == 1
    assert not np.array_equal(y, np.arange(257) % classes)


def test_the_same_stream_gives_the_same_images_and_no_two_of_them_are_alike():
    (x, y), (again, y_again) = draw(), draw()
    assert np.array_equal(x, again)
    assert np.array_equal(y, y_again)
    assert not np.array_equal(x, draw(seed=1)[0])
    assert len(np.unique(x.reshape(len(x), -1), axis=0)) == len(x)


def test_images_use_the_range_without_being_cut_off():
    x, _ = draw(samples=500, channels=3, side=32)
    assert 100 < x.mean() < 140
    assert x.std() > 20
    assert ((x == 0) | (x == 255)).mean() < 0.02


@pytest.mark.parametrize("samples", [0, 1])
def test_none_and_one(samples):
    x, y = draw(samples=samples)
    assert len(x) == len(y) == samples


# --- what the class is ------------------------------------------------------------------------------------------------


def test_stripes_are_a_plane_wave():
    """Five waves per image along the columns: sin(2π·5·c/20) in every row."""
    (field,) = textures._stripes(*(np.array([v], dtype=np.float32) for v in (0.0, 5.0, 0.0)), side=20)
    np.testing.assert_allclose(field, np.tile([0, 1, 0, -1], (20, 5)), atol=1e-5)
    (turned,) = textures._stripes(*(np.array([v], dtype=np.float32) for v in (np.pi / 2, 5.0, 0.0)), side=20)
    np.testing.assert_allclose(turned, field.T, atol=1e-5)


def test_a_figure_has_the_area_and_the_place_of_its_outline():
    """A disc of radius 0.85·0.5 around (0.2, −0.1) in [−1, 1]²; the ring at the same place is hollow."""
    side, size = 81, np.array([0.5, 0.5], dtype=np.float32)
    place = np.array([[0.2, -0.1]] * 2, dtype=np.float32)
    disc, ring = textures._figure(np.array([4, 0]), size, np.zeros(2, dtype=np.float32), place, side)
    assert disc.sum() * (2 / (side - 1)) ** 2 == pytest.approx(np.pi * 0.425**2, rel=0.03)
    c = np.linspace(-1, 1, side)
    assert (disc * c).sum() / disc.sum() == pytest.approx(0.2, abs=0.02)
    assert (disc * c[:, None]).sum() / disc.sum() == pytest.approx(-0.1, abs=0.02)
    centre = np.abs(c + 0.1).argmin(), np.abs(c - 0.2).argmin()
    assert disc[centre] == 1
    assert ring[centre] == 0


@pytest.mark.parametrize(("classes", "outlines", "directions", "widths"), [(10, 5, 2, 1), (100, 10, 5, 2)])
def test_every_class_has_a_pair_of_outline_and_stripes_of_its_own(classes, outlines, directions, widths):
    outline, direction, step, waves = textures._factors(np.arange(classes), classes)
    assert len(set(zip(outline, direction.round(6), waves, strict=True))) == classes
    assert [len(np.unique(v)) for v in (outline, direction.round(6), waves)] == [outlines, directions, widths]
    assert np.ptp(direction) + step == pytest.approx(np.pi)  # evenly around the half circle
    assert len(textures._outlines()) >= outlines


def test_means_of_classes_show_outlines_and_no_stripes():
    """Classes k and k + 5 differ only in the direction of their stripes."""
    x, y = draw(samples=10_000)
    mean = np.stack([x[y == k, 0].mean(axis=0) for k in range(10)])
    stripes = np.abs(mean[:5] - mean[5:]).max(axis=(1, 2))
    outlines = np.abs(mean[:5] - np.roll(mean[:5], 1, axis=0)).max(axis=(1, 2))
    assert outlines.min() > 25
    assert stripes.max() < 6


def test_the_ground_is_grainy():
    """Uniform noise of half width 0.15 · 127.5 has a deviation of 11; neighbours differ by √2 of that."""
    x, _ = draw(samples=2000)
    corner = x[:, 0, :3, :3].astype(float)
    assert 15 < np.diff(corner, axis=2).std() < 18


# --- how hard it is ---------------------------------------------------------------------------------------------------


def accuracy(model: nn.Module, rate: float, epochs: int, x, y, x_test, y_test) -> float:
    order = torch.Generator().manual_seed(0)
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    for _ in range(epochs):
        for batch in torch.randperm(len(x), generator=order).split(32):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimiser.step()
    with torch.no_grad():
        return (model(x_test).argmax(1) == y_test).double().mean().item()


def gap(seed: int, train: int, test: int, epochs: int) -> tuple[float, float]:
    """Test accuracy of softmax regression and of a small convolutional network."""
    x, y = draw(samples=train + test, seed=seed)
    x, y = torch.from_numpy(x).float() / 127.5 - 1, torch.from_numpy(y)
    data = x[:train], y[:train], x[train:], y[train:]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        linear = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
        convolutional = nn.Sequential(
            *(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(16 * 49, 32), nn.ReLU(), nn.Linear(32, 10)),
        )
    return accuracy(linear, 0.001, epochs, *data), accuracy(convolutional, 0.02, epochs, *data)


def test_a_linear_model_stays_far_below_a_convolutional_one():
    linear, convolutional = gap(seed=0, train=4000, test=1000, epochs=5)
    assert 0.2 < linear < 0.5
    assert convolutional > 0.7
