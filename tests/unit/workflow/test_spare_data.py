"""Data files that are emptied and generated again."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

from fedrepro.commands import cli
from fedrepro.core.checksums import seal
from fedrepro.core.streams import seeds_of
from fedrepro.data.preparation import prepare_data
from fedrepro.errors import UserError
from fedrepro.files import read_json, write_json
from fedrepro.workflow import spare_data

SPEC = {"name": "hm1", "case": "I", "test": 2}
ID = "hm1-01234567"


@pytest.fixture
def layout(tmp_path, monkeypatch):
    """A results folder with one generated data set of two seeds, written long ago."""
    monkeypatch.setattr(spare_data, "LEAST", 1)
    file = tmp_path / "data" / ID / "0-1.npz"
    file.parent.mkdir(parents=True)
    prepare_data(ID, SPEC, [0, 1], "auto", [], file)
    os.utime(file, ns=(10**18, 10**18))
    seeds = lambda wildcards: seeds_of(wildcards.shard)  # noqa: E731
    return SimpleNamespace(
        results=str(tmp_path), datasets={ID: SPEC}, data="auto", data_folders=[], data_seeds=seeds, file=file
    )


def test_an_emptied_file_keeps_its_time_and_gets_its_bytes_back(layout, tmp_path):
    before, about = layout.file.read_bytes(), layout.file.stat()
    assert not spare_data.is_emptied(layout.file)
    assert spare_data.empty(tmp_path) == len(before)
    assert spare_data.is_emptied(layout.file)
    assert layout.file.stat().st_mtime_ns == about.st_mtime_ns
    assert spare_data.empty(tmp_path) == 0
    spare_data.fill(layout, ["elsewhere.npz"])
    assert spare_data.is_emptied(layout.file)
    spare_data.fill(layout, [str(layout.file)])
    assert layout.file.read_bytes() == before
    assert (layout.file.stat().st_mtime_ns, layout.file.stat().st_mode) == (about.st_mtime_ns, about.st_mode)
    assert sorted(path.name for path in layout.file.parent.iterdir()) == ["0-1.json", "0-1.npz"]


def test_small_files_and_real_data_are_kept(layout, tmp_path, monkeypatch):
    about = layout.file.with_suffix(".json")
    write_json(about, {**read_json(about), "found": {"name": "mnist"}})
    assert spare_data.empty(tmp_path) == 0
    monkeypatch.setattr(spare_data, "LEAST", 2**20)
    write_json(about, {k: v for k, v in read_json(about).items() if k != "found"})
    assert spare_data.empty(tmp_path) == 0
    assert layout.file.stat().st_size > 0


def test_other_bytes_than_before_are_an_error_that_has_them_made_again(layout, tmp_path):
    spare_data.empty(tmp_path)
    about = layout.file.with_suffix(".json")
    write_json(about, {**read_json(about), "sha256": "0" * 64})
    with pytest.raises(UserError, match="is generated differently now"):
        spare_data.fill(layout, [str(layout.file)])
    assert [path.read_text() for path in (tmp_path / "damaged").iterdir()] == [f"data/{ID}/0-1.npz"]
    assert spare_data.is_emptied(layout.file)


def test_verify_takes_an_emptied_file_for_no_damage(layout, tmp_path, capsys):
    seal([layout.file, about := layout.file.with_suffix(".json")])
    spare_data.empty(tmp_path)
    assert cli.main(["verify", str(tmp_path)]) == 0
    assert "all files are as they were written" in capsys.readouterr().out
    about.write_text("{}")
    assert cli.main(["verify", str(tmp_path)]) == 1
    assert f"{about.name}: damaged" in capsys.readouterr().out
