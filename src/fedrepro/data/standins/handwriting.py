"""Handwriting: the stand-in of MNIST, EMNIST and FEMNIST.

The characters 0-9, A-Z, a-z (labels 0 … 61, the order of EMNIST by-class and of LEAF) are drawn from matplotlib's
fonts, white on black, in a box of 20 of the 28 pixels as in MNIST. Small and capital letters have one size, so c and C
are as hard to tell apart as in the original. Every sample differs a little from the habits of its writer.

A glyph is stored as the signed distance to its outline (positive inside), on a grid of three cells per pixel. Any pen
width is then one threshold, and a batch of samples is one look-up at affinely mapped, wavy coordinates.
"""

import string
from functools import cache
from pathlib import Path

import numpy as np

CHARACTERS = string.digits + string.ascii_uppercase + string.ascii_lowercase
FONTS = (
    *("DejaVuSans", "DejaVuSansMono", "DejaVuSerif", "DejaVuSerif-Italic", "STIXGeneral", "STIXGeneralItalic"),
    *("cmr10", "cmss10", "cmti10", "cmtt10"),
)
SIDE, BOX = 28, 20  # pixels: the image, and the longer side of a character in it
FINE = 3  # cells of a stored glyph per pixel
GRID = SIDE * FINE
STEP = 1 / 16  # pixels: unit of a stored distance
CHUNK = 256  # samples at a time: their coordinates fit into the processor's cache


def handwriting(
    rng: np.random.Generator, samples: int, classes: int, writers: int, **_: int
) -> tuple[np.ndarray, np.ndarray]:
    """x uint8 [n, 1, 28, 28] (any other form is ignored), y int64 [n] in random order, as even as n allows."""
    y = rng.permutation(np.arange(samples) % classes)
    writer = rng.permutation(np.arange(samples) % min(writers, samples))
    return written(rng, y, writer), y


def written(rng: np.random.Generator, y: np.ndarray, writer: np.ndarray) -> np.ndarray:
    """x uint8 [n, 1, 28, 28]: character y[i] written by writer[i] (0, 1, …)."""
    hands = _hands(rng, int(writer.max(initial=0)) + 1)
    x = np.empty((len(y), 1, SIDE, SIDE), dtype=np.uint8)
    for rows in (slice(start, start + CHUNK) for start in range(0, len(y), CHUNK)):
        x[rows, 0] = _draw(rng, y[rows], {name: value[writer[rows]] for name, value in hands.items()})
    return x


def _hands(rng: np.random.Generator, writers: int) -> dict[str, np.ndarray]:
    """The writers' habits, [writers] or [writers, 2]; lengths in pixels."""

    def normal(mean: float, sd: float, *shape: int) -> np.ndarray:
        return rng.normal(mean, sd, (writers, *shape)).astype(np.float32)

    return {
        "fonts": rng.integers(len(FONTS), size=(writers, 2)),  # the usual one, and an occasional one
        "slant": normal(0.12, 0.22),
        "turn": normal(0.0, 0.07),
        "size": np.exp(normal(0.0, 0.09, 2)),  # width and height
        "place": normal(0.0, 0.7, 2),
        "pen": np.maximum(normal(0.3, 0.4), -0.1),  # added to both sides of a stroke
        "blur": 1.0 + rng.random(writers, dtype=np.float32),
        "waves": np.abs(normal(0.8, 0.4)),
        "ink": 1.0 - 0.25 * rng.random(writers, dtype=np.float32),
        "noise": 0.15 * rng.random(writers, dtype=np.float32) ** 2,
    }


def _draw(rng: np.random.Generator, y: np.ndarray, hand: dict[str, np.ndarray]) -> np.ndarray:
    """uint8 [n, 28, 28]: samples, each with its writer's habits and a small deviation from them."""
    n = len(y)

    def around(name: str, sd: float) -> np.ndarray:
        return hand[name] + np.float32(sd) * rng.standard_normal(hand[name].shape, dtype=np.float32)

    slant, turn, place = around("slant", 0.07), around("turn", 0.06), around("place", 0.4)
    width, height = (hand["size"] * np.exp(0.05 * rng.standard_normal((n, 2), dtype=np.float32))).T
    # The place of a pixel (column c, row r, from the centre) on the glyph: turned, sheared and scaled back.
    centred = np.arange(SIDE, dtype=np.float32) - np.float32((SIDE - 1) / 2)
    dc, dr = centred - place[:, :1], centred - place[:, 1:]
    cos, sin = np.cos(turn), np.sin(turn)
    a, b, c, d = ((cos + slant * sin) / width, (slant * cos - sin) / width, sin / height, cos / height)
    across = _cell(a[:, None] * dc, b[:, None] * dr + _waves(rng, hand))
    down = _cell(c[:, None] * dc + _waves(rng, hand), d[:, None] * dr)
    font = np.where(rng.random(n) < 0.8, hand["fonts"][:, 0], hand["fonts"][:, 1])
    cell = down * GRID + across + ((font * len(CHARACTERS) + y) * GRID * GRID).astype(np.int32)[:, None, None]
    # Ink inside the outline, widened by the pen and softened by the blur.
    gain = hand["ink"] / hand["blur"]
    image = _glyphs().ravel()[cell] * (STEP * gain)[:, None, None]
    image += (0.5 * hand["ink"] + around("pen", 0.1) * gain)[:, None, None]
    np.clip(image, 0, hand["ink"][:, None, None], out=image)
    grain = rng.integers(256, size=image.shape, dtype=np.uint8).astype(np.float32) - 127.5
    return np.clip(image * 255 + grain * hand["noise"][:, None, None], 0, 255).astype(np.uint8)


def _cell(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """int32 [n, row, column]: the cell along one axis of the glyph, from parts [n, 28] in pixels."""
    cell = ((columns + SIDE / 2) * FINE)[:, None, :] + (rows * FINE)[:, :, None]
    return np.clip(cell, 0, GRID - 1, out=cell).astype(np.int32)


def _waves(rng: np.random.Generator, hand: dict[str, np.ndarray]) -> np.ndarray:
    """float32 [n, 28]: shift of each row (or column), half to one and a half waves per image."""
    n = len(hand["waves"])
    phase = rng.random((n, 1), dtype=np.float32) * np.float32(2 * np.pi)
    pace = np.float32(2 * np.pi / SIDE) * (0.5 + rng.random((n, 1), dtype=np.float32))
    return hand["waves"][:, None] * np.sin(phase + pace * np.arange(SIDE, dtype=np.float32))


@cache
def _glyphs() -> np.ndarray:
    """int8 [fonts, characters, GRID, GRID]: distances to the outline in units of STEP, positive inside."""
    import matplotlib
    from PIL import Image, ImageFont
    from scipy.ndimage import distance_transform_edt

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    bank = np.empty((len(FONTS), len(CHARACTERS), GRID, GRID), dtype=np.int8)
    for i, name in enumerate(FONTS):
        font = ImageFont.truetype(str(folder / f"{name}.ttf"), 2 * GRID)
        for j, character in enumerate(CHARACTERS):
            mask = font.getmask(character)
            glyph = Image.frombytes("L", mask.size, bytes(mask))
            glyph = glyph.crop(glyph.getbbox())
            longer = BOX * FINE / max(glyph.size)
            glyph = glyph.resize([max(1, round(longer * side)) for side in glyph.size], Image.Resampling.BOX)
            page = Image.new("L", (GRID, GRID))
            page.paste(glyph, ((GRID - glyph.width) // 2, (GRID - glyph.height) // 2))
            inside = np.asarray(page) >= 128
            distance = distance_transform_edt(inside) - distance_transform_edt(~inside)
            distance -= np.where(inside, 0.5, -0.5)  # from the edge of a cell, not from the centre of the next
            bank[i, j] = np.clip(np.rint(distance / (FINE * STEP)), -127, 127)
    return bank
