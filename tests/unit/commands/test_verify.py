"""`fedrepro verify`: a flipped bit is named in results, in results/reference and in an archive of evidence."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from fedrepro.commands import cli, verify
from fedrepro.commands.evidence import FORMAT
from fedrepro.core.checksums import list_all, seal

RUN, LEDGER = "runs/toy/line/fedavg/0-1.parquet", "ledgers/toy.csv"
BODY = b"some bytes of a result"


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 16
    path.write_bytes(body)


@pytest.fixture
def checkout(tmp_path, monkeypatch) -> Path:
    """A demo run, which is sealed, and the reference, which has a listing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    for name in ("demo", "reference"):
        for file in (RUN, LEDGER):
            path = tmp_path / "results" / name / file
            path.parent.mkdir(parents=True)
            path.write_bytes(BODY)
    seal(tmp_path / "results" / "demo" / file for file in (RUN, LEDGER))
    list_all(tmp_path / "results" / "reference")
    return tmp_path


def told(capsys, *arguments: str) -> tuple[int, list[str]]:
    code = cli.main(["verify", *arguments])
    return code, [line.split("results/")[-1] for line in capsys.readouterr().out.splitlines()]


def test_whole_results_are_told_per_folder(checkout, capsys):
    right = [f"{name}: all files are as they were written" for name in ("demo", "reference")]
    assert told(capsys) == (0, right)


@pytest.mark.parametrize("name", ["demo", "reference"])
@pytest.mark.parametrize("file", [RUN, LEDGER])
def test_a_flipped_bit_is_named(checkout, capsys, name, file):
    flip(checkout / "results" / name / file)
    named = [f"{name}/{file}: damaged", f"{name}: 1 files are wrong"]
    assert told(capsys, f"results/{name}") == (1, named)
    code, lines = told(capsys)
    assert code == 1
    assert set(named) < set(lines)
    noted = list((checkout / "results" / "demo").glob("damaged/*"))
    assert [path.read_text() for path in noted] == ([file] if name == "demo" else [])  # for the next run


def test_an_archive_of_evidence(checkout, capsys):
    archive = checkout / "runs.zip"
    listing = {"format": FORMAT, "scale": "demo", "files": {RUN: hashlib.sha256(BODY).hexdigest()}}

    def write(body: bytes) -> None:
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("evidence.json", json.dumps(listing))
            file.writestr(RUN, body)

    write(BODY)
    assert told(capsys, "runs.zip") == (0, ["runs.zip: all files are as they were written"])
    write(BODY[:-1] + b"T")
    wrong = [f"runs.zip: {RUN}: is not as it was exported", "runs.zip: 1 files are wrong"]
    assert told(capsys, "runs.zip") == (1, wrong)


def test_a_folder_that_is_not_there_is_named(checkout, capsys):
    assert cli.main(["verify", "results/paper"]) == 1
    assert capsys.readouterr().err == "error: results/paper: there is no such folder\n"
