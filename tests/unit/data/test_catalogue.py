"""config/datasets.yaml: finding the real files, verifying them, and the errors where they are missing or wrong."""

from __future__ import annotations

import hashlib
import json
import re

import pytest

from fedrepro.core import parts
from fedrepro.core.schemas import validate
from fedrepro.data.catalogue import CATALOGUE, catalogue, entry, find, missing, present, verify
from fedrepro.data.fetch import check_catalogue
from fedrepro.errors import UserError

BODIES = {"thing/a.gz": b"first file", "thing/b.gz": b"second file", "small/c.npz": b"sample"}


def declared(path: str, *known: str, **more) -> dict:
    """The declaration of a file with its size and the checksums in `known`."""
    body = BODIES[path]
    facts = {
        "bytes": len(body),
        "md5": hashlib.md5(body).hexdigest(),
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    return {"path": path, **{name: facts[name] for name in known}, **more}


def entries(**more) -> dict:
    """A data set of two layouts: two files, or a sample in one."""
    known = ("bytes", "md5")
    whole = {"files": [declared("thing/a.gz", *known), declared("thing/b.gz", *known)]}
    sample = {"complete": False, "files": [declared("small/c.npz", *known)]}
    facts = {"title": "Thing", "citation": "Me 2000", "licence": "MIT", "size": "1 MB"}
    return {"thing": {**facts, "layouts": {"whole": whole, "sample": sample}, **more}}


def put(folder, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(BODIES[name])


# --- present and find -------------------------------------------------------------------------------------------------


def test_the_first_layout_that_is_whole_counts(tmp_path):
    put(tmp_path, "thing/a.gz", "small/c.npz")
    assert present("thing", [tmp_path], entries()) == ("sample", {"small/c.npz": tmp_path / "small/c.npz"})
    put(tmp_path, "thing/b.gz")
    layout, paths = present("thing", [tmp_path], entries())
    assert layout == "whole"
    assert paths == {name: tmp_path / name for name in ("thing/a.gz", "thing/b.gz")}


def test_a_layout_lies_in_one_folder_and_the_first_folder_counts(tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    put(first, "thing/a.gz")
    put(second, "thing/b.gz")
    assert present("thing", [first, second], entries()) is None
    put(second, "thing/a.gz")
    assert present("thing", [first, second], entries())[1]["thing/a.gz"] == second / "thing/a.gz"
    put(first, "thing/b.gz")
    assert present("thing", [first, second], entries())[1]["thing/a.gz"] == first / "thing/a.gz"
    assert present("thing", [], entries()) is None


def test_a_better_layout_in_a_later_folder_wins_over_a_sample(tmp_path):
    put(tmp_path / "1", "small/c.npz")
    put(tmp_path / "2", "thing/a.gz", "thing/b.gz")
    assert present("thing", [tmp_path / "1", tmp_path / "2"], entries())[0] == "whole"


@pytest.mark.parametrize("mode", ["auto", "real"])
def test_what_is_found_is_verified_and_described(tmp_path, mode):
    put(tmp_path, "thing/a.gz", "thing/b.gz")
    found = find("thing", mode, [tmp_path], entries())
    assert found["b.gz"] == tmp_path / "thing/b.gz"
    assert found.about() == {
        "name": "thing",
        "layout": "whole",
        "complete": True,
        "files": {n: f"md5:{hashlib.md5(BODIES[n]).hexdigest()}" for n in ("thing/a.gz", "thing/b.gz")},
    }


def test_a_sample_says_that_it_is_one(tmp_path):
    put(tmp_path, "small/c.npz")
    found = find("thing", "real", [tmp_path], entries())
    assert (found.layout, found.complete) == ("sample", False)


def test_nothing_is_found_where_there_is_nothing_or_the_standin_is_asked_for(tmp_path):
    assert find("thing", "auto", [tmp_path], entries()) is None
    put(tmp_path, "thing/a.gz", "thing/b.gz")
    (tmp_path / "thing/a.gz").write_bytes(b"wrong: nobody looks")
    assert find("thing", "standin", [tmp_path], entries()) is None


def test_real_without_files_names_files_folders_and_the_way_to_them(tmp_path):
    put(tmp_path / "1", "thing/a.gz")
    with pytest.raises(UserError) as error:
        find("thing", "real", [tmp_path / "1", tmp_path / "2"], entries())
    assert str(error.value) == (
        f"data: real, but Thing is not here: thing/b.gz not in {tmp_path / '1'} or {tmp_path / '2'}. "
        "`make data ONLY=thing` fetches it where its address can be reached"
    )
    assert missing("thing", [], entries(manual="Ask the library.")) == (
        "data: real, but Thing is not here: thing/a.gz, thing/b.gz not in nowhere: DATA_DIR is not set. "
        "Ask the library."
    )


def test_a_long_list_of_missing_files_is_cut(tmp_path):
    thing = entries()
    thing["thing"]["layouts"]["whole"]["files"] = [{"path": f"f{i}"} for i in range(6)]
    assert "not here: f0, f1, f2, f3, … not in" in missing("thing", [tmp_path], thing)


def test_an_unknown_data_set_is_named_with_the_nearest(tmp_path):
    with pytest.raises(UserError, match=r"data set 'thin' is not in datasets\.yaml; did you mean 'thing'"):
        find("thin", "auto", [tmp_path], entries())


# --- verify -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "real"])
def test_a_wrong_file_names_both_checksums_and_is_never_replaced_by_the_standin(tmp_path, mode):
    put(tmp_path, "thing/a.gz", "thing/b.gz")
    (tmp_path / "thing/b.gz").write_bytes(b"Second file")
    wrong, right = (hashlib.md5(body).hexdigest() for body in (b"Second file", b"second file"))
    with pytest.raises(UserError) as error:
        find("thing", mode, [tmp_path], entries())
    assert str(error.value) == (
        f"{tmp_path / 'thing/b.gz'}: md5 is {wrong}, not {right}. Remove it and run `make data`, or set data=standin"
    )


def test_a_wrong_file_of_a_better_layout_is_no_reason_to_take_the_sample(tmp_path):
    put(tmp_path, "thing/a.gz", "thing/b.gz", "small/c.npz")
    (tmp_path / "thing/a.gz").write_bytes(b"")
    with pytest.raises(UserError, match=r"a\.gz: md5 is d41d8cd98f00b204e9800998ecf8427e, not "):
        find("thing", "auto", [tmp_path], entries())


@pytest.mark.parametrize("known", [("bytes", "md5"), ("bytes", "sha256"), ("bytes",)])
def test_a_cut_file_says_its_bytes(tmp_path, known):
    (tmp_path / "a").write_bytes(b"first f")
    with pytest.raises(UserError, match=r"7 bytes, not 10: cut off\?\. Remove it"):
        verify(tmp_path / "a", declared("thing/a.gz", *known))
    (tmp_path / "a").write_bytes(b"first file and more")
    with pytest.raises(UserError, match=r"19 bytes, not 10\. Remove it"):
        verify(tmp_path / "a", declared("thing/a.gz", *known))


def test_the_strongest_checksum_that_is_known_is_used(tmp_path):
    put(tmp_path, "thing/a.gz")
    path = tmp_path / "thing/a.gz"
    sha256 = f"sha256:{hashlib.sha256(BODIES['thing/a.gz']).hexdigest()}"
    assert verify(path, declared("thing/a.gz", "md5", "sha256")) == sha256
    assert verify(path, declared("thing/a.gz")) == sha256  # the checksum found, if none is known
    with pytest.raises(UserError, match="sha256 is "):
        verify(path, declared("thing/a.gz", "md5") | {"sha256": 64 * "0"})


# --- the schema -------------------------------------------------------------------------------------------------------


def file_with(**more) -> dict:
    thing = entries()
    thing["thing"]["layouts"]["whole"]["files"][0] |= more
    return thing


def archive_with(**more) -> dict:
    thing = file_with(archive="all.zip", member="a")
    thing["thing"]["layouts"]["whole"]["archives"] = {"all.zip": {"url": "https://example.org/all.zip", **more}}
    return thing


def test_what_is_right_passes():
    for right in (
        entries(),
        file_with(url="http://example.org/a"),
        file_with(url=["https://example.org/a", "https://example.com/a"]),
        archive_with(),
        archive_with(url=["https://example.org/all.zip"], bytes=3, md5=32 * "0"),
    ):
        validate(right, "datasets", "x")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (file_with(path="../a"), r"thing\.layouts\.whole\.files\.0\.path: '\.\./a'"),
        (file_with(path="thing/../../a"), r"files\.0\.path: "),
        (file_with(path="/etc/passwd"), r"files\.0\.path: '/etc/passwd'"),
        (file_with(path="a\\b"), r"files\.0\.path: "),
        (file_with(path=""), r"files\.0\.path: "),
        (file_with(member="../a", archive="all.zip"), r"files\.0\.member: '\.\./a'"),
        (file_with(member="a"), "'archive' is a dependency of 'member'"),
        (file_with(archive="all.zip"), "'member' is a dependency of 'archive'"),
        (file_with(url="ftp://example.org/a"), r"files\.0\.url: 'ftp://example\.org/a'"),
        (file_with(url="file:///etc/passwd"), r"files\.0\.url: 'file:"),
        (file_with(url=[]), r"files\.0\.url: \[\]"),
        (file_with(url=["https://example.org/a", "a"]), r"files\.0\.url\.1: 'a'"),
        (file_with(md5="abc"), r"files\.0\.md5: 'abc'"),
        (file_with(bytes=0), r"files\.0\.bytes: 0 is too small"),
        (file_with(sha265="x"), r"unknown key 'thing\.layouts\.whole\.files\.0\.sha265'; did you mean 'sha256'"),
        (archive_with(adress="x"), r"unknown key 'thing\.layouts\.whole\.archives\.all\.zip\.adress'"),
        (entries(license="MIT"), r"unknown key 'thing\.license'; did you mean 'licence'"),
        (entries(layouts={}), r"thing\.layouts: "),
        (entries(layouts={"whole": {"files": []}}), r"thing\.layouts\.whole\.files: "),
    ],
)
def test_what_is_wrong_is_named(tmp_path, wrong, said):
    (tmp_path / "datasets.yaml").write_text(json.dumps(wrong))
    with pytest.raises(UserError, match=said) as error:
        check_catalogue(tmp_path / "datasets.yaml")
    assert str(error.value).startswith(f"{tmp_path / 'datasets.yaml'}: ")
    assert "\n" not in str(error.value)


def test_a_file_is_served_or_in_an_archive_not_both(tmp_path):
    thing = archive_with()
    thing["thing"]["layouts"]["whole"]["files"][0]["url"] = "https://example.org/a"
    with pytest.raises(UserError, match=r"thing\.layouts\.whole\.files\.0: "):
        validate(thing, "datasets", "x")


def test_an_archive_that_is_not_declared_is_named(tmp_path):
    thing = archive_with()
    thing["thing"]["layouts"]["whole"]["files"][0]["archive"] = "al.zip"
    (tmp_path / "datasets.yaml").write_text(json.dumps(thing))
    with pytest.raises(UserError, match=r"thing\.layouts\.whole: thing/a\.gz: archive 'al\.zip' is not under archives"):
        check_catalogue(tmp_path / "datasets.yaml")


# --- config/datasets.yaml itself --------------------------------------------------------------------------------------


def test_every_data_set_with_files_has_its_entry_and_every_entry_its_data_set():
    assert {entry.files for name in parts.modules("datasets") if (entry := parts.dataset(name)).files} == set(
        catalogue()
    )


@pytest.mark.parametrize("name", catalogue())
def test_an_entry_can_be_had_and_is_known_by_its_checksums(name):
    """Each has an address or a note on how to get it by hand; a comment explains a missing checksum."""
    spec = entry(name)
    files = [file for layout in spec["layouts"].values() for file in layout["files"]]
    served = [
        layout for layout in spec["layouts"].values() if all("url" in f or "archive" in f for f in layout["files"])
    ]
    assert served or "manual" in spec
    unknown = [file["path"] for file in files if "md5" not in file and "sha256" not in file]
    text = CATALOGUE.read_text()
    own = re.search(rf"(?ms)^{name}:\n(.*?)(?=^\S|\Z)", text)[1]
    assert not unknown or re.search(r"#.*no checksum", own)
    for layout in spec["layouts"].values():
        used = {file["archive"] for file in layout["files"] if "archive" in file}
        assert used == set(layout.get("archives", {}))
        paths = [file["path"] for file in layout["files"]]
        assert len(set(paths)) == len(paths)


def test_a_path_stands_for_one_file_only():
    """Layouts and data sets may share a file, but not a name for different files."""
    known: dict[str, set[str]] = {}
    for spec in catalogue().values():
        for layout in spec["layouts"].values():
            for file in layout["files"]:
                known.setdefault(file["path"], set()).add(str(file.get("sha256") or file.get("md5")))
    assert {path: sums for path, sums in known.items() if len(sums) > 1} == {}
