"""FEMNIST: LEAF's json and the sample of its writers, read and refused, and the stand-in."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.data.datasets.femnist import MEAN, femnist, femnist_size
from fedrepro.errors import UserError
from tests.unit.data.real_files import unverified

PAPER, INK = 1.0, 0.0


def page(*writers: str, samples: int = 3) -> dict:
    """A LEAF file: sample i of a writer has label i and i + 1 black pixels at the start of its first row."""
    x = [[INK] * (i + 1) + [PAPER] * (783 - i) for i in range(samples)]
    data = {name: {"x": copy.deepcopy(x), "y": list(range(samples))} for name in writers}
    return {"users": list(writers), "num_samples": [samples] * len(writers), "user_data": data}


def write(folder: Path, *pages: dict | str) -> None:
    (folder / "femnist").mkdir(exist_ok=True)
    for k, content in enumerate(pages):
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "femnist" / f"all_data_{k}.json").write_text(text)


def read(folder: Path, seed: int = 0, mode: str = "real", **parameters) -> Dataset:
    return femnist(Source(np.random.default_rng(seed), mode, (folder,)), **{"minimum": 1} | parameters)


# --- LEAF's files -----------------------------------------------------------------------------------------------------


def test_writers_of_all_files_in_the_order_of_their_names(tmp_path):
    write(tmp_path, page("f3", "f1"), page("f2", samples=2))
    data = read(tmp_path, writers=3)
    assert (data.kind, data.outputs, data.test) == ("real", 62, None)
    assert data.facts["client_names"].tolist() == ["f1", "f2", "f3"]
    assert data.train.client.tolist() == [0, 0, 0, 1, 1, 2, 2, 2]
    assert data.train.y.tolist() == [0, 1, 2, 0, 1, 0, 1, 2]
    assert (data.train.x.shape, data.train.x.dtype, data.train.y.dtype) == ((8, 1, 28, 28), np.uint8, np.int64)


def test_images_become_white_on_black(tmp_path):
    content = page("f1")
    content["user_data"]["f1"]["x"][2][28] = 0.25  # first pixel of the second row
    write(tmp_path, content)
    first, _, third = read(tmp_path, writers=1).train.x[:, 0]
    assert first[0, 0] == 255
    assert first.sum() == 255
    assert third[0, :4].tolist() == [255, 255, 255, 0]
    assert third[1, 0] == 255 - 64  # 63.75 rounded


def test_every_file_is_in_the_manifest(tmp_path):
    write(tmp_path, page("f1"), page("f2"))
    about = read(tmp_path, writers=2).found.about()
    assert list(about["files"]) == ["femnist/all_data_0.json", "femnist/all_data_1.json"]
    assert all(checksum.startswith("sha256:") for checksum in about["files"].values())
    assert len(set(about["files"].values())) == 2


def test_the_order_of_eleven_files_is_that_of_their_numbers(tmp_path):
    write(tmp_path, *(page(f"f{k}", samples=1) for k in range(11)))
    assert list(read(tmp_path, writers=11).found.paths)[-2:] == ["femnist/all_data_9.json", "femnist/all_data_10.json"]


def test_writers_are_chosen_at_random_and_all_alike(tmp_path):
    """3 of 6 writers in two files, 400 times: each is chosen about 200 times, standard deviation 10."""
    write(tmp_path, page("a", "b", "c", "d", samples=1), page("e", "f", samples=1))
    chosen = [read(tmp_path, seed, writers=3).facts["client_names"].tolist() for seed in range(400)]
    assert chosen[0] == read(tmp_path, 0, writers=3).facts["client_names"].tolist()
    assert all(names == sorted(names) for names in chosen)
    times = [sum(name in names for names in chosen) for name in "abcdef"]
    assert sum(times) == 1200
    assert all(abs(t - 200) < 40 for t in times)


def test_small_writers_are_left_out(tmp_path):
    write(tmp_path, page("small", samples=2), page("large", "larger", samples=5))
    data = read(tmp_path, writers=2, minimum=3)
    assert data.facts["client_names"].tolist() == ["large", "larger"]
    with pytest.raises(UserError, match=r"writers = 3: .*femnist has 2 with at least 3 samples"):
        read(tmp_path, writers=3, minimum=3)


def test_a_writer_without_samples_is_no_client(tmp_path):
    write(tmp_path, page("none", samples=0), page("some"))
    assert read(tmp_path, writers=1).facts["client_names"].tolist() == ["some"]


# --- broken files -----------------------------------------------------------------------------------------------------


def broken(change) -> str:
    content = page("f1", "f2")
    change(content, content["user_data"])
    return json.dumps(content)


BROKEN = {
    "cut off": (json.dumps(page("f1"))[:-100], "cannot be read as LEAF's json"),
    "not json": ("\x00\x01", "cannot be read as LEAF's json"),
    "nested too deep": ("[" * 100_000, "cannot be read as LEAF's json"),
    "a list": ("[]", "must hold users, num_samples and user_data"),
    "no user_data": ('{"users": [], "num_samples": []}', "must hold users, num_samples and user_data"),
    "users an object": ('{"users": {}, "num_samples": [], "user_data": {}}', "users and num_samples must be lists"),
    "users numbers": ('{"users": [1], "num_samples": [1], "user_data": {}}', "users must be names"),
    "NaN": (broken(lambda c, d: d["f1"]["x"][0].__setitem__(5, float("nan"))), "NaN is not a number"),
    "Infinity": (broken(lambda c, d: d["f1"]["x"][0].__setitem__(5, float("inf"))), "Infinity is not a number"),
    "beyond floats": (broken(lambda c, d: d["f1"]["x"][0].__setitem__(5, 7)).replace(" 7,", " 1e999,"), "0 to 1"),
    "above 1": (broken(lambda c, d: d["f2"]["x"][0].__setitem__(5, 255)), "'f2': x holds what is not a number from 0"),
    "below 0": (broken(lambda c, d: d["f2"]["x"][0].__setitem__(5, -0.1)), "'f2': x holds what is not a number from 0"),
    "text": (broken(lambda c, d: d["f2"]["x"][0].__setitem__(5, "0.5")), "'f2': x holds what is not a number from 0"),
    "null": (broken(lambda c, d: d["f2"]["x"][0].__setitem__(5, None)), "'f2': x holds what is not a number from 0"),
    "a list within": (broken(lambda c, d: d["f2"]["x"][0].__setitem__(5, [0.5])), "'f2': x holds what is not a number"),
    "lists of lists": (
        broken(lambda c, d: d["f2"].update(x=[[[1.0]] * 784] * 3)),
        "'f2': x holds what is not a number",
    ),
    "pairs": (broken(lambda c, d: d["f2"].update(x=[[[1.0, 1.0]] * 784] * 3)), "'f2': x holds what is not a number"),
    "a short row": (broken(lambda c, d: d["f1"]["x"][1].pop()), "'f1': image 1 is not a list of 784 values"),
    "a row too many": (broken(lambda c, d: d["f1"]["x"].pop()), "'f1': x and y must be lists of one length"),
    "label 62": (broken(lambda c, d: d["f1"]["y"].__setitem__(1, 62)), "'f1': y holds .* from 0 to 61"),
    "label -1": (broken(lambda c, d: d["f1"]["y"].__setitem__(1, -1)), "'f1': y holds .* from 0 to 61"),
    "label 1.0": (broken(lambda c, d: d["f1"]["y"].__setitem__(1, 1.0)), "'f1': y holds .* from 0 to 61"),
    "label true": (broken(lambda c, d: d["f1"]["y"].__setitem__(1, True)), "'f1': y holds .* from 0 to 61"),
    "x no list": (broken(lambda c, d: d["f1"].update(x="abc")), "'f1': x and y must be lists"),
    "no y": (broken(lambda c, d: d["f1"].pop("y")), "'f1': must hold x and y"),
    "wrong count": (broken(lambda c, d: c["num_samples"].__setitem__(1, 4)), "'f2': 3 samples, but num_samples says 4"),
    "counts too few": (broken(lambda c, d: c["num_samples"].pop()), "2 users, but num_samples has 1"),
    "a user without data": (broken(lambda c, d: d.pop("f2")), "'f2' is in users but not in user_data"),
    "data without a user": (broken(lambda c, d: d.update(f0=d["f1"])), "'f0' is in user_data but not in users"),
    "a user twice": (
        broken(lambda c, d: (c["users"].append("f1"), c["num_samples"].append(3))),
        "'f1' is in users twice",
    ),
    "data twice": (json.dumps(page("f1", "f2")).replace('"f2": ', '"f1": '), "'f1' is there twice"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_one_clear_line(kind, tmp_path):
    text, said = BROKEN[kind]
    write(tmp_path, text)
    with pytest.raises(UserError, match=said) as raised:
        read(tmp_path, writers=1, mode="auto")
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "femnist" / "all_data_0.json") in str(raised.value)


def test_a_writer_in_two_files_is_refused(tmp_path):
    write(tmp_path, page("f1", "f2"), page("f3", "f2"))
    with pytest.raises(UserError, match=r"all_data_1\.json: writer 'f2' is also in all_data_0\.json"):
        read(tmp_path, writers=1)


def test_a_file_missing_in_between_is_named(tmp_path):
    write(tmp_path, page("f1"), page("f2"), page("f3"))
    (tmp_path / "femnist" / "all_data_1.json").unlink()
    with pytest.raises(UserError, match=r"all_data_1\.json is missing, but all_data_2\.json is there"):
        read(tmp_path, writers=1)


def test_without_files_real_data_is_refused_with_the_way_to_get_it(tmp_path):
    with pytest.raises(UserError, match=r"femnist/all_data_0\.json not in .* LEAF makes it"):
        read(tmp_path)
    assert read(tmp_path, mode="auto", writers=2).kind == "standin"


# --- the sample of 300 writers ----------------------------------------------------------------------------------------


def sample(folder: Path, **changes) -> None:
    """Writers b (images 0, 1, 0 again) and a (image 2, and image 0, which is b's too)."""
    x = np.full((3, 28, 28), 255, dtype=np.uint8)
    x[0, 0, 0], x[1, 0, 1], x[2, 0, 2] = 0, 55, 5
    content = {"images": x[[0, 1, 0, 2, 0]], "labels": np.array([7, 8, 7, 9, 7], dtype=np.uint8)}
    content |= {"writer": np.array([0, 0, 0, 1, 1], dtype=np.uint16), "writer_ids": np.array(["b", "a"])}
    (folder / "femnist").mkdir(exist_ok=True)
    np.savez(folder / "femnist" / "femnist_300writers.npz", **content | changes)


def test_the_sample_has_each_writers_images_once_and_white_on_black(tmp_path, monkeypatch):
    sample(tmp_path)
    data = femnist(unverified(monkeypatch, "femnist", tmp_path), writers=2, minimum=1)
    assert (data.kind, data.found.layout, data.found.complete) == ("real", "sample", False)
    assert data.facts["client_names"].tolist() == ["a", "b"]
    assert data.train.client.tolist() == [0, 0, 1, 1]
    assert data.train.y.tolist() == [9, 7, 7, 8]
    assert data.train.x[:, 0, 0, :3].tolist() == [[0, 0, 250], [255, 0, 0], [255, 0, 0], [0, 200, 0]]
    assert (data.train.x.dtype, data.train.y.dtype) == (np.uint8, np.int64)


def test_the_threshold_counts_a_doubled_image_once(tmp_path, monkeypatch):
    sample(tmp_path)
    with pytest.raises(UserError, match=r"writers = 1: .*femnist has 0 with at least 3 samples"):
        femnist(unverified(monkeypatch, "femnist", tmp_path), writers=1, minimum=3)


def test_leafs_json_is_preferred_to_the_sample(tmp_path, monkeypatch):
    sample(tmp_path)
    write(tmp_path, page("f1"))
    assert femnist(unverified(monkeypatch, "femnist", tmp_path), writers=1, minimum=1).found.layout == "leaf"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"images": np.zeros((5, 27, 28), dtype=np.uint8)}, r"uint8 \[5, 27, 28\], not uint8"),
        ({"images": np.zeros((5, 28, 28))}, "images are float64"),
        ({"labels": np.zeros(4, dtype=np.uint8)}, "with n labels"),
        ({"labels": np.array([0, 0, 0, 0, 62])}, "labels are not whole numbers from 0 to 61"),
        ({"labels": np.zeros(5)}, "labels are not whole numbers"),
        ({"writer": np.array([0, 0, 0, 1, 2])}, "writer are not whole numbers from 0 to 1"),
        ({"writer_ids": np.array(["a", "a"])}, "names a writer twice"),
    ],
)
def test_a_broken_sample_is_one_clear_line(changes, said, tmp_path, monkeypatch):
    sample(tmp_path, **changes)
    with pytest.raises(UserError, match=said) as raised:
        femnist(unverified(monkeypatch, "femnist", tmp_path), writers=1, minimum=1)
    assert str(raised.value).startswith(str(tmp_path / "femnist" / "femnist_300writers.npz"))


def test_a_sample_that_is_no_archive_is_refused(tmp_path, monkeypatch):
    sample(tmp_path)
    (tmp_path / "femnist" / "femnist_300writers.npz").write_bytes(b"none")
    with pytest.raises(UserError, match="cannot be read as npz of images, labels, writer, writer_ids"):
        femnist(unverified(monkeypatch, "femnist", tmp_path), writers=1, minimum=1)


# --- stand-in ---------------------------------------------------------------------------------------------------------


def test_the_standin_has_ragged_writers_and_the_shares_of_by_class(tmp_path):
    data = read(tmp_path, mode="standin", writers=60, minimum=20)
    assert (data.kind, data.outputs, data.found) == ("standin", 62, None)
    assert data.train.x.shape == (len(data.train), 1, 28, 28)
    sizes = np.bincount(data.train.client)
    assert len(sizes) == len(data.facts["client_names"]) == 60
    assert sizes.min() >= 20
    assert sizes.mean() == pytest.approx(MEAN, abs=4 * 89 / np.sqrt(60))
    assert 60 < sizes.std() < 120
    shares = np.bincount(data.train.y, minlength=62) / len(data.train)
    assert shares[:10].sum() == pytest.approx(402_953 / 814_255, abs=0.02)
    assert shares[10:36].sum() == pytest.approx(220_304 / 814_255, abs=0.02)
    assert shares.min() > 0
    assert femnist_size(writers=60, minimum=20) == (60, 13_610)


def test_the_smallest_writer_of_the_standin_has_the_minimum(tmp_path):
    assert np.bincount(read(tmp_path, mode="standin", writers=40, minimum=200).train.client).min() == 200


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"writers": 0}, "femnist: writers = 0: must lie in 1 … 3550"),
        ({"writers": 3551}, "femnist: writers = 3551"),
        ({"minimum": 0}, "femnist: minimum = 0"),
        ({"minimum": 228}, "femnist: minimum = 228: must lie in 1 … 227"),
    ],
)
def test_a_wrong_value_is_named(wrong, said, tmp_path):
    with pytest.raises(UserError, match=said):
        read(tmp_path, mode="standin", **wrong)
