"""Checksums of results: a flipped bit anywhere is found, in the file or in its seal."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from fedrepro.core.checksums import LISTING, check, list_all, seal, unseal, wrong
from fedrepro.errors import Damaged

TRIES = 60  # per file

FILES = ("runs/a/b/c/0-1.parquet", "runs/a/b/c/0-1.json", "tables/a/b.parquet", "ledgers/a.csv", "artefacts/a/fig1.csv")


@pytest.fixture
def results(tmp_path) -> Path:
    """A results folder in which every file is sealed, and logs, which are not."""
    table = pd.DataFrame({"metric": ["loss"] * 50, "round": range(50), "value": [1 / (n + 1) for n in range(50)]})
    contents = {"parquet": table.to_parquet(None), "csv": table.to_csv(index=False).encode()}
    contents["json"] = json.dumps({"seeds": [0, 1], "diverged": []}).encode()
    folder = tmp_path / "results" / "demo"
    for name in (*FILES, "logs/a.csv", "failures.json", "plan.json", "runs/a/b/c/.half.parquet"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(contents[name.rpartition(".")[2]])
    seal(folder / name for name in FILES)
    return folder


def flip(path: Path, chance: random.Random) -> bytes:
    """Flip one bit of a file; returns the whole content before."""
    whole = path.read_bytes()
    body = bytearray(whole)
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    path.write_bytes(body)
    return whole


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_bit_is_found(results, name):
    chance, path = random.Random(name), results / name
    assert check(path) == path
    for _ in range(TRIES):
        whole = flip(path, chance)
        with pytest.raises(Damaged, match="damaged: its checksum is not the recorded one; the next run makes it again"):
            check(path)
        assert list(wrong(results)) == [(path, "damaged")]
        path.write_bytes(whole)
    assert list(wrong(results)) == []


def test_a_flipped_bit_of_a_seal_is_found(results):
    chance, record = random.Random(5), results / "runs/a/b/c/0-1.sha256"
    for _ in range(TRIES):
        whole = flip(record, chance)
        found = list(wrong(results))
        assert found
        assert all(path.parent == record.parent for path, _ in found)
        with pytest.raises(Damaged):  # one of the two files at least is not as the seal says
            list(map(check, [results / FILES[0], results / FILES[1]]))
        record.write_bytes(whole)


def test_missing_files_and_files_without_a_checksum_are_named(results):
    (results / FILES[0]).unlink()
    (results / "tables/a/new.parquet").write_bytes(b"")
    unseal([results / "ledgers/a.csv"])
    assert check(results / "ledgers/a.csv")  # of an older version
    assert sorted((path.name, why) for path, why in wrong(results)) == [
        ("0-1.parquet", "missing"),
        ("a.csv", "no checksum"),
        ("new.parquet", "no checksum"),
    ]


def test_a_folder_with_a_listing_is_checked_by_it(results):
    for path in results.rglob("*.sha256"):
        path.unlink()
    list_all(results)
    assert list(wrong(results)) == []
    whole = flip(results / FILES[2], random.Random(1))
    (results / "artefacts/a/fig2.csv").write_text("a\n")
    assert sorted(why for _, why in wrong(results)) == ["damaged", "no checksum"]
    (results / FILES[2]).write_bytes(whole)
    flip(results / LISTING, random.Random(2))
    assert list(wrong(results))


def test_sha256sum_reads_seals_and_listings(results):
    list_all(results)
    for record in (results / LISTING, results / "runs/a/b/c/0-1.sha256"):
        done = subprocess.run(["sha256sum", "--check", "--strict", record.name], cwd=record.parent, capture_output=True)
        assert done.returncode == 0, done.stderr
