"""Finished runs travel as an archive; one that is tampered with, foreign or stale is refused by name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256

import pytest

from tests.workflow.conftest import Checkout, copy_tree

pytestmark = pytest.mark.workflow

RUN = "toy/line/toy/0-1"
FILE = f"runs/{RUN}.parquet"


def evidence(checkout: Checkout, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "fedrepro.commands.cli", "evidence", *arguments, "--in", "results/smoke"]
    return subprocess.run(
        command, cwd=checkout.folder, env=checkout.environment(), capture_output=True, text=True, timeout=600
    )


@pytest.fixture
def archive(checkout, tmp_path):
    """The runs of `toy/line`, exported from one checkout."""
    done = evidence(checkout, "export", str(tmp_path / "runs.zip"), "toy/line")
    assert done.returncode == 0, done.stderr
    assert "1 runs of scale smoke" in done.stdout
    return tmp_path / "runs.zip"


@pytest.fixture
def other(checkout, tmp_path) -> Checkout:
    """Another checkout of the same code, in which nothing has run."""
    found = Checkout(tmp_path / "other")
    copy_tree(checkout.folder, found.folder)
    shutil.rmtree(found.folder / "results")
    shutil.rmtree(found.folder / ".snakemake")
    return found


def rewritten(archive, change) -> str:
    """The archive with its files changed; returns the path of the copy."""
    with zipfile.ZipFile(archive) as file:
        content = {name: file.read(name) for name in file.namelist()}
    content = change(content) or content
    copy = archive.with_name("changed.zip")
    with zipfile.ZipFile(copy, "w") as file:
        for name, body in content.items():
            file.writestr(name, body)
    return str(copy)


def signed(content, **files: bytes):
    """The content with other files, listed as if exported so."""
    content |= {name.replace("__", "/"): body for name, body in files.items()}
    listing = json.loads(content["evidence.json"])
    listing["files"] = {name: sha256(body).hexdigest() for name, body in content.items() if name != "evidence.json"}
    return content | {"evidence.json": json.dumps(listing).encode()}


def test_an_imported_run_is_used_as_if_run_here(checkout, other, archive):
    done = evidence(other, "import", str(archive))
    assert done.returncode == 0, done.stderr
    assert f"training {RUN} again" in done.stdout
    assert (other.results / FILE).read_bytes() == (checkout.results / FILE).read_bytes()
    manifest = json.loads((other.results / f"runs/{RUN}.json").read_text())
    assert manifest["imported"] == {"archive_sha256": sha256(archive.read_bytes()).hexdigest()}
    assert "train toy on toy/line, seeds 0-1" not in other.jobs("toy/fig3b")
    assert "collect toy/line" in other.jobs("toy/fig3b")


def test_the_same_runs_give_the_same_archive(checkout, archive, tmp_path):
    evidence(checkout, "export", str(tmp_path / "again.zip"), "toy/line")
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def flipped(content):
    body = bytearray(content[FILE])
    body[len(body) // 2] ^= 1
    return content | {FILE: bytes(body)}


def other_manifest(**changes):
    def change(content):
        manifest = json.loads(content[f"runs/{RUN}.json"]) | changes
        return signed(content | {f"runs/{RUN}.json": json.dumps(manifest).encode()})

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (flipped, f"{FILE}: is not as it was exported"),
        (lambda c: {k: v for k, v in c.items() if k != FILE}, f"{FILE}: is not as it was exported"),
        (lambda c: signed({k: v for k, v in c.items() if k != FILE}), f"{RUN}: is not complete"),
        (lambda c: c | {"runs/../../../evil.json": b"{}"}, "evil.json': is no file of an archive of evidence"),
        (lambda c: c | {"/tmp/evil.json": b"{}"}, "evil.json': is no file of an archive of evidence"),
        (lambda c: {"evidence.json": b"[]"}, "is no archive of evidence"),
        (lambda c: {"runs/toy/line/toy/0-1.json": b"{}"}, "is no archive of evidence"),
        (other_manifest(code_sha256="0" * 64), f"{RUN}: was run with other code than this checkout's"),
        (other_manifest(config_sha256="0" * 64), f"{RUN}: was run with other settings than this checkout's"),
        (other_manifest(experiment="toy/faults"), f"{RUN}: its manifest is of toy/faults/toy/0-1"),
        (
            lambda c: signed({k.replace("line", "lines"): v for k, v in c.items()}),
            "toy/lines/toy/0-1: its manifest is of toy/line/toy/0-1",
        ),
    ],
)
def test_a_wrong_archive_is_refused_by_name_and_nothing_is_imported(other, archive, change, words):
    done = evidence(other, "import", rewritten(archive, change), "--sample", "0")
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(other.folder.glob("results/**/*.parquet"))
    assert not list(other.folder.parent.rglob("evil.json"))


def test_another_version_of_the_code_is_refused(other, archive):
    other.append("src/fedrepro/core/rounds.py", "\nEDITED = True\n")
    done = evidence(other, "import", str(archive))
    assert done.returncode == 1
    assert f"{RUN}: was run with other code than this checkout's" in done.stderr


def test_numbers_that_are_made_up_are_found_by_training_again(other, archive):
    """Listing and manifest are as they should be; only a number is not."""
    import io

    import pandas as pd

    def change(content):
        table = pd.read_parquet(io.BytesIO(content[FILE]))
        table["value"] = table["value"] * 1.5
        return signed(content | {FILE: table.to_parquet(None, index=False)})

    done = evidence(other, "import", rewritten(archive, change))
    assert done.returncode == 1
    assert f"{RUN}: gives other numbers when it is trained again here" in done.stderr
    assert not (other.results / FILE).exists()


def test_other_data_is_refused(other, archive):
    change = other_manifest(data={"name": "toy_line", "kind": "real", "sha256": "0" * 64})
    done = evidence(other, "import", rewritten(archive, change))
    assert done.returncode == 1
    assert f"{RUN}: was run on other data than here" in done.stderr
