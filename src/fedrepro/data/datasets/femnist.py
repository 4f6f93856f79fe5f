"""FEMNIST by writer (Caldas et al. 2018, LEAF: a benchmark for federated settings, arXiv 1812.01097).

Shapes: train x [n, 1, 28, 28] bytes, y [n] = 0 … 61 for 0-9A-Za-z; client [n] = writer, numbered in the order of their
names, facts["client_names"] [writers]. No test split: `inside` cuts each writer's samples. A model gets pixels/255.

Real files are those that LEAF's preprocessing writes, `all_data_0.json`, `all_data_1.json`, …, 100 writers in each:
{users: [name], num_samples: [n], user_data: {name: {x: [[784 values in 0 … 1]], y: [label]}}}. Their number depends on
how LEAF was run: the catalogue names the first file, the reader takes all in its folder. They have no published
checksum; their content is checked. The layout `sample` holds 300 of LEAF's writers in numpy's format: `images`
[n, 28, 28] bytes (255 is paper), `labels` [n], `writer` [n], an index into `writer_ids`. An image that a writer has
twice is dropped there; some of these writers were cut short, so ask for a `minimum`.
`writers` of those with at least `minimum` samples are chosen at random.

Deviation: LEAF's images are black on white (paper is 1); here they are white on black, as in EMNIST.
Stand-in: rendered handwriting. Sizes follow a gamma law with the mean and deviation of LEAF's Table 1 over its 3,550
writers, classes the shares of digits, capitals and small letters in NIST's by-class set (Cohen et al. 2017, Table I).
"""

import heapq
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from fedrepro.data.catalogue import Entry, Source, verify
from fedrepro.data.dataset import Dataset, Found, Split, pixels
from fedrepro.data.images import Images, reading
from fedrepro.data.standins.handwriting import written
from fedrepro.errors import UserError

WRITERS, MEAN, DEVIATION = 3_550, 226.83, 88.94
KINDS = ((10, 402_953), (26, 220_304), (26, 190_998))  # digits, capitals, small letters: classes, samples of by-class
CLASSES, PIXELS = 62, 784


def femnist(source: Source, *, writers: int = 500, minimum: int = 20) -> Dataset:
    """writers: their number. minimum: least samples per writer, so that no part of a 70/10/20 cut is empty."""
    if not 1 <= writers <= WRITERS:
        raise UserError(f"femnist: writers = {writers}: must lie in 1 … {WRITERS}")
    if not 1 <= minimum <= MEAN:
        raise UserError(f"femnist: minimum = {minimum}: must lie in 1 … {MEAN:.0f}, the mean of a writer")
    found = source.find("femnist")
    if found is None:
        split, names = _standin(source.rng, writers, minimum)
    else:
        found = _all_files(found) if found.layout == "leaf" else found
        split, names = _chosen(found, source.rng, writers, minimum)
    kind, facts = "standin" if found is None else "real", {"client_names": np.array(names)}
    return Dataset(kind, split, outputs=CLASSES, facts=facts, found=found, **pixels())


def femnist_size(writers: int = 500, **_: Any) -> tuple[int, int]:
    return writers, round(writers * MEAN)


def _standin(rng: np.random.Generator, writers: int, minimum: int) -> tuple[Split, list[str]]:
    sizes = rng.gamma((MEAN / DEVIATION) ** 2, DEVIATION**2 / MEAN, writers)
    writer = np.repeat(np.arange(writers), np.maximum(minimum, np.rint(sizes).astype(int)))
    shares = np.concatenate([np.full(classes, samples / classes) for classes, samples in KINDS])
    y = rng.choice(CLASSES, len(writer), p=shares / shares.sum())
    return Split(written(rng, y, writer), y, client=writer), [f"standin_{k:04d}" for k in range(writers)]


def _all_files(found: Found) -> Found:
    """All files in the folder of the first, in the order of their numbers, without a gap."""
    name, first = next(iter(found.paths.items()))
    last = max(int(m[1]) for p in first.parent.iterdir() if (m := re.fullmatch(r"all_data_(\d+)\.json", p.name)))
    names = [f"all_data_{k}.json" for k in range(last + 1)]
    paths = {str(PurePosixPath(name).with_name(each)): first.with_name(each) for each in names}
    if lacking := [path for path in paths.values() if not path.is_file()]:
        raise UserError(f"{lacking[0]} is missing, but {names[-1]} is there")
    return replace(found, paths=paths, checksums={n: found.checksums.get(n) or verify(p, {}) for n, p in paths.items()})


def _chosen(found: Found, rng: np.random.Generator, writers: int, minimum: int) -> tuple[Split, list[str]]:
    """Random writers: those with the smallest of numbers drawn for all. No more than these are kept in memory."""
    kept: list[tuple[float, str, Images]] = []
    seen: dict[str, Path] = {}
    for path in found.paths.values():
        for name, (x, y) in (_read_sample if path.suffix == ".npz" else _read)(path).items():
            if name in seen:
                raise UserError(f"{path}: writer '{name}' is also in {seen[name].name}")
            seen[name] = path
            if len(y) >= minimum:
                put = heapq.heappush if len(kept) < writers else heapq.heappushpop
                put(kept, (-rng.random(), name, (x, y)))
    if len(kept) < writers:
        raise UserError(f"femnist: writers = {writers}: {path.parent} has {len(kept)} with at least {minimum} samples")
    _, names, images = zip(*sorted(kept, key=lambda item: item[1]), strict=True)
    x, y = map(np.concatenate, zip(*images, strict=True))
    return Split(x, y, client=np.repeat(np.arange(writers), [len(mine) for _, mine in images])), list(names)


def _read_sample(path: Path) -> dict[str, Images]:
    """The writers of the layout `sample`, checked and without doubled images."""
    names = ("images", "labels", "writer", "writer_ids")
    with reading(path, f"npz of {', '.join(names)}"), np.load(path, allow_pickle=False) as archive:
        images, labels, writer, ids = (archive[name] for name in names)
    lengths = {len(images), len(labels), len(writer)}
    if images.dtype != np.uint8 or images.shape[1:] != (28, 28) or len(lengths) > 1:
        raise UserError(f"{path}: images are {images.dtype} {list(images.shape)}, not uint8 [n, 28, 28] with n labels")
    for what, column, limit in (("labels", labels, CLASSES), ("writer", writer, len(ids))):
        if column.dtype.kind not in "iu" or column.min() < 0 or column.max() >= limit:
            raise UserError(f"{path}: {what} are not whole numbers from 0 to {limit - 1}")
    if len(set(ids.tolist())) < len(ids):
        raise UserError(f"{path}: writer_ids names a writer twice")
    found = {}
    for number, name in enumerate(ids.tolist()):
        once: dict[bytes, int] = {}
        for row in np.flatnonzero(writer == number).tolist():
            once.setdefault(images[row].tobytes(), row)
        mine = np.array(list(once.values()), dtype=int)
        found[name] = 255 - images[mine][:, None], labels[mine].astype(np.int64)
    return found


def _refuse(literal: str) -> None:
    raise ValueError(f"{literal} is not a number")


def _read(path: Path) -> dict[str, Images]:
    """The writers of one file, checked. Each writer's numbers become bytes as soon as they are parsed."""
    with reading(path, "LEAF's json"), open(path, encoding="utf-8") as file:
        content = json.load(file, object_pairs_hook=_parsed, parse_constant=_refuse)
    if not isinstance(content, dict) or not {"users", "num_samples", "user_data"} <= set(content):
        raise UserError(f"{path}: not LEAF's json: must hold users, num_samples and user_data")
    users, counts, data = content["users"], content["num_samples"], content["user_data"]
    if not (isinstance(users, list) and isinstance(counts, list) and isinstance(data, dict)):
        raise UserError(f"{path}: users and num_samples must be lists, user_data an object")
    if not all(isinstance(name, str) for name in users):
        raise UserError(f"{path}: users must be names, as text")
    if len(users) != len(counts):
        raise UserError(f"{path}: {len(users)} users, but num_samples has {len(counts)}")
    if twice := [name for name, times in Counter(users).items() if times > 1]:
        raise UserError(f"{path}: writer '{twice[0]}' is in users twice")
    if unmatched := set(users) ^ set(data):
        where = "user_data but not in users" if min(unmatched) in data else "users but not in user_data"
        raise UserError(f"{path}: writer '{min(unmatched)}' is in {where}")
    for name, count in zip(users, counts, strict=True):
        if isinstance(data[name], ValueError):
            raise UserError(f"{path}: writer '{name}': {data[name]}")
        if not isinstance(data[name], tuple):
            raise UserError(f"{path}: writer '{name}': must hold x and y")
        if len(data[name][1]) != count:
            raise UserError(f"{path}: writer '{name}': {len(data[name][1])} samples, but num_samples says {count}")
    return data


def _parsed(pairs: list[tuple[str, Any]]) -> dict[str, Any] | Images | ValueError:
    """A json object; a writer's becomes images, or the error in them, which the caller reports with the name."""
    members = dict(pairs)
    if len(members) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"'{twice}' is there twice")
    if set(members) != {"x", "y"}:
        return members
    try:
        return _images(**members)
    except ValueError as error:
        return error


def _images(x: Any, y: Any) -> Images:
    """x [n, 784] in 0 … 1 (paper is 1) as uint8 [n, 1, 28, 28] (paper is 0); y [n] as int64."""
    if not (isinstance(x, list) and isinstance(y, list) and len(x) == len(y)):
        raise ValueError("x and y must be lists of one length")
    for i, row in enumerate(x):
        if not isinstance(row, list) or len(row) != PIXELS:
            raise ValueError(f"image {i} is not a list of {PIXELS} values")
    try:
        values = np.array(x) if x else np.empty((0, PIXELS))
    except ValueError:  # lists among the numbers
        values = np.array("")
    if values.dtype.kind not in "fiu" or values.ndim != 2 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError("x holds what is not a number from 0 to 1")
    if not all(type(label) is int and 0 <= label < CLASSES for label in y):
        raise ValueError(f"y holds what is not a whole number from 0 to {CLASSES - 1}")
    return (255 - np.rint(255 * values)).astype(np.uint8).reshape(-1, 1, 28, 28), np.array(y, dtype=np.int64)


DATASET = Entry(femnist, seeded=False, size=femnist_size, files="femnist", example={"writers": 8})
