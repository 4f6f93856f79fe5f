"""Textured shapes: the stand-in of Fashion-MNIST, CIFAR-10, CIFAR-100 and STL-10.

An image holds one figure on a cluttered ground, quiet with one channel, varied with more. The class is the outline of
the figure and the stripes in it: 5 outlines × 2 directions for up to 10 classes, 10 outlines × 5 directions × 2 widths
for up to 100. All else is drawn for every image, and some images are negatives. The mean image of a class has no
stripes, so a linear model stays far below a convolutional one; directions vary so much that no model is always right.
Measured on 8,000 training images of 10 classes: softmax regression 41 % and a network of two convolutions 90 % at
28×28×1, 29 % and 77 % at 32×32×3.

Every field of the image (figure, stripes, clutter) is an outer sum or product of rows and columns, or one look-up; the
channels are linear combinations of the fields.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

GRID, REACH = 128, 1.5  # an outline is stored on GRID × GRID cells over [−REACH, REACH]²
NEGATIVES = 0.12  # share of the images
CHUNK = 2**16  # pixels at a time: the memory of larger arrays is returned and requested anew each time


@dataclass(frozen=True)
class Scene:
    """Variation of the images of one class; lengths in half sides of the image."""

    size: tuple[float, float]  # of the figure, between
    turn: float  # standard deviation, radians
    place: float  # standard deviation of its centre
    slack: float  # standard deviation of the stripes' direction, in steps between the directions of two classes
    faintest: float  # contrast is between this and 1
    clutter: float  # standard deviation of its contrast
    grain: float  # half width of the noise, where black to white is 2


CATALOGUE = Scene((0.55, 0.8), turn=0.12, place=0.06, slack=0.3, faintest=0.6, clutter=0.12, grain=0.15)
PHOTOGRAPH = Scene((0.5, 0.85), turn=0.25, place=0.12, slack=0.36, faintest=0.45, clutter=0.3, grain=0.3)


def textured_shapes(
    rng: np.random.Generator, classes: int, samples: int, channels: int, side: int
) -> tuple[np.ndarray, np.ndarray]:
    """x uint8 [n, channels, side, side], y int64 [n] in random order; at most 100 classes, as even as n allows."""
    y = rng.permutation(np.arange(samples) % classes)
    x = np.empty((samples, channels, side, side), dtype=np.uint8)
    step = max(1, CHUNK // side**2)
    for start in range(0, samples, step):
        x[start : start + step] = _draw(rng, y[start : start + step], classes, channels, side)
    return x, y


def _draw(rng: np.random.Generator, y: np.ndarray, classes: int, channels: int, side: int) -> np.ndarray:
    """uint8 [n, channels, side, side]: images of the classes y."""
    n = len(y)
    scene = CATALOGUE if channels == 1 else PHOTOGRAPH
    outline, direction, step, waves = _factors(y, classes)

    def normal(mean: float, sd: float, *shape: int) -> np.ndarray:
        return np.float32(mean) + np.float32(sd) * rng.standard_normal((n, *shape), dtype=np.float32)

    def uniform(low: float, high: float, *shape: int) -> np.ndarray:
        return np.float32(low) + np.float32(high - low) * rng.random((n, *shape), dtype=np.float32)

    figure = _figure(outline, uniform(*scene.size), normal(0, scene.turn), normal(0, scene.place, 2), side)
    direction = direction + step * normal(0, scene.slack)
    stripes = _stripes(direction, waves * np.exp(normal(0, 0.06)), uniform(0, 2 * np.pi), side)
    clutter = _stripes(uniform(0, np.pi), uniform(0.5, 3), uniform(0, 2 * np.pi), side)
    clutter *= _stripes(uniform(0, np.pi), uniform(0.5, 3), uniform(0, 2 * np.pi), side)
    fields = np.stack([np.ones_like(figure), figure, figure * stripes, clutter], axis=1).reshape(n, 4, -1)

    # The share of each field in each channel; black is −1, white is 1.
    sign = np.where(rng.random(n) < NEGATIVES, -1, 1).astype(np.float32)[:, None]
    tint = normal(1, 0.35 if channels > 1 else 0, channels)
    ground, stripe = normal(0, 0.12, channels) - 0.25 * sign, 0.3 * sign * tint * uniform(0.7, 1.3, 1)
    mixture = np.stack([ground, 0.5 * sign * tint, stripe, normal(0, scene.clutter, channels)], axis=2)
    image = (mixture * uniform(scene.faintest, 1, 1, 1)) @ fields * 127.5 + 127.5
    image += (rng.integers(256, size=image.shape, dtype=np.uint8).astype(np.float32) - 127.5) * scene.grain
    return np.clip(image, 0, 255).astype(np.uint8).reshape(n, channels, side, side)


def _factors(y: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray, float, np.ndarray]:
    """Of class y [n]: outline, direction of the stripes, step between directions, stripes per image."""
    outlines, directions, waves = (5, 2, (6.0,)) if classes <= 10 else (10, 5, (4.5, 8.0))
    step = np.pi / directions
    direction = step * (y // outlines % directions + 0.25)  # none along the pixels
    return y % outlines, direction, step, np.array(waves)[y // (outlines * directions)]


def _figure(outline: np.ndarray, size: np.ndarray, turn: np.ndarray, place: np.ndarray, side: int) -> np.ndarray:
    """float32 [n, side, side]: 1 inside the outline, 0 outside, with a one-pixel edge; the image is [−1, 1]²."""
    c = np.linspace(-1, 1, side, dtype=np.float32)
    dc, dr = (c - place[:, :1]) / size[:, None], (c - place[:, 1:]) / size[:, None]
    cos, sin = np.cos(turn)[:, None], np.sin(turn)[:, None]
    start = (outline * GRID * GRID).astype(np.int32)[:, None, None]
    cell = start + _cell(-sin * dc, cos * dr) * GRID + _cell(cos * dc, sin * dr)
    return np.clip(_outlines().ravel()[cell] * (size * np.float32(side / 2))[:, None, None] + 0.5, 0, 1)


def _cell(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """int32 [n, side, side]: the cell along one axis of the grid, from a column's and a row's part."""
    scale = np.float32(GRID / (2 * REACH))
    cell = (columns * scale + GRID / 2)[:, None, :] + (rows * scale)[:, :, None]
    return np.clip(cell, 0, GRID - 1, out=cell).astype(np.int32)


def _stripes(angle: np.ndarray, waves: np.ndarray, phase: np.ndarray, side: int) -> np.ndarray:
    """float32 [n, side, side]: sine of a plane wave, `waves` per image, as sin(a + b) of rows and columns."""
    c = np.arange(side, dtype=np.float32) / side
    pace = (2 * np.pi * waves).astype(np.float32)
    a = (pace * np.cos(angle))[:, None] * c + phase[:, None]
    b = (pace * np.sin(angle))[:, None] * c
    columns, rows = np.stack([np.sin(a), np.cos(a)], axis=1), np.stack([np.cos(b), np.sin(b)], axis=2)
    return rows.astype(np.float32) @ columns.astype(np.float32)


@cache
def _outlines() -> np.ndarray:
    """float32 [10, GRID, GRID]: signed distance to each outline, positive inside, in units of the figure's size."""
    from scipy.ndimage import distance_transform_edt

    c = (np.arange(GRID) + 0.5) * 2 * REACH / GRID - REACH
    u, v = c[None, :], c[:, None]
    r, theta = np.hypot(u, v), np.arctan2(v, u)
    figures = [
        (r < 1) & (r > 0.5),  # ring
        (np.minimum(abs(u), abs(v)) < 0.3) & (np.maximum(abs(u), abs(v)) < 1),  # cross
        (v < 0.75) & (v > 1.9 * abs(u) - 1),  # triangle
        (abs(v) < 0.15 + 0.85 * abs(u)) & (abs(u) < 0.9),  # bow tie
        r < 0.85,  # disc
        np.maximum(abs(u), abs(v)) < 0.8,  # square
        r < 0.72 + 0.28 * np.cos(5 * theta),  # star
        (r < 1) & (np.hypot(u - 0.5, v) > 0.75),  # crescent
        (abs(abs(v) - 0.6) < 0.28) & (abs(u) < 0.9),  # two bars
        (np.maximum(abs(u), abs(v)) < 0.9) & ((u < -0.2) | (v > 0.2)),  # angle
    ]
    edges = [distance_transform_edt(inside) - distance_transform_edt(~inside) for inside in figures]
    return (2 * REACH / GRID * np.stack(edges)).astype(np.float32)
