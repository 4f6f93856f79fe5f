"""Croissant metadata of the data sets, read back by mlcroissant without the network."""

from __future__ import annotations

import json

import mlcroissant as mlc
import pytest

from fedrepro.data.catalogue import catalogue
from fedrepro.report.publication import croissant

ENTRIES = catalogue()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("croissant")
    assert [path.stem for path in croissant.write_all(folder, ENTRIES)] == list(ENTRIES)
    return folder


@pytest.mark.parametrize("name", ENTRIES)
def test_mlcroissant_accepts_every_data_set(written, name):
    metadata = mlc.Dataset(jsonld=str(written / f"{name}.json")).metadata  # raises at an error
    entry = ENTRIES[name]
    assert metadata.ctx.issues.errors == set()
    assert (metadata.name, metadata.cite_as) == (entry["title"], entry["citation"])
    assert metadata.license == [croissant.LICENCES.get(entry["licence"], entry["licence"])]
    described = {file.id: file for file in metadata.distribution}
    unchecked = False
    for layout in entry["layouts"].values():
        for archive, spec in layout.get("archives", {}).items():
            assert described[archive].content_url == spec["url"]
            assert described[archive].md5 == spec.get("md5")
            unchecked |= "md5" not in spec
        for spec in layout["files"]:
            file = described[spec["path"]]
            assert file.md5 == spec.get("md5")
            assert file.content_size == (f"{spec['bytes']} B" if "bytes" in spec else None)
            if "archive" in spec:
                assert file.contained_in
                assert spec["member"].endswith(file.content_url)
            unchecked |= "md5" not in spec and "archive" not in spec
    assert bool(metadata.ctx.is_live_dataset) is unchecked


def test_mirrors_nested_archives_and_places_without_address():
    entry = {
        "layouts": {
            "csv": {
                "archives": {"a.zip": {"url": "https://a.org/a.zip"}},
                "files": [{"path": "x/y.csv", "archive": "a.zip", "member": "b.zip//y.csv", "md5": "m" * 32}],
            },
            "sample": {
                "complete": False,
                "files": [{"path": "x/s.mat", "url": ["https://a.org/s", "https://b.org/s"]}, {"path": "x/n.npz"}],
            },
        }
    }
    files = croissant.file_objects(entry)
    assert list(files) == ["a.zip", "b.zip", "x/y.csv", "x/s.mat", "x/n.npz"]
    assert (files["b.zip"]["contained_in"], files["x/y.csv"]["contained_in"]) == (["a.zip"], ["b.zip"])
    assert (files["x/y.csv"]["content_url"], files["x/y.csv"]["md5"]) == ("y.csv", "m" * 32)
    assert (files["x/s.mat"]["content_url"], files["x/s.mat"]["same_as"]) == ("https://a.org/s", ["https://b.org/s"])
    assert files["x/n.npz"]["content_url"] == "x/n.npz"
    assert "sample; no address serves it" in files["x/n.npz"]["description"]


def test_the_lines_of_a_text_file_can_be_read(tmp_path):
    """Through the record set, from a file beside the metadata."""
    files = [{"path": "notes.txt", "bytes": 8}]
    entry = {"title": "Notes", "citation": "c", "licence": "MIT", "size": "8 B", "layouts": {"text": {"files": files}}}
    (path,) = croissant.write_all(tmp_path, {"notes": entry})
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    assert json.loads(path.read_text())["license"] == "https://spdx.org/licenses/MIT"
    read = list(mlc.Dataset(jsonld=str(path)).records(record_set="notes_lines"))
    assert read == [
        {"notes_lines/number": 0, "notes_lines/line": b"one"},
        {"notes_lines/number": 1, "notes_lines/line": b"two"},
    ]


def test_wrong_metadata_is_an_error():
    with pytest.raises(mlc.ValidationError):
        croissant.described("x", {**ENTRIES[next(iter(ENTRIES))], "licence": 3})
