"""The bill of materials: every line of the lock, and the licences that packages declare."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fedrepro.commands import bill

HASHES = ["a" * 64, "b" * 64]
LOCK = f"""numpy==2.9.9 \\
    --hash=sha256:{HASHES[0]} \\
    --hash=sha256:{HASHES[1]}
torch==2.12.1
pywin32==311 ; sys_platform == 'win32'

# a note
"""


def test_every_line_of_the_lock_is_a_component_with_its_address(tmp_path):
    (tmp_path / "lock").write_text(LOCK)
    components = bill.bill(tmp_path / "lock")["components"]
    assert [c["purl"] for c in components] == [
        "pkg:pypi/numpy@2.9.9",
        "pkg:pypi/torch@2.12.1",
        "pkg:pypi/pywin32@311",
    ]
    assert components[2]["properties"] == [{"name": "python:marker", "value": "sys_platform == 'win32'"}]
    assert [h["content"] for h in components[0]["hashes"]] == HASHES
    assert "licenses" not in components[0]  # another version is installed: the licence is unknown


def test_the_lock_of_this_checkout_is_whole_and_its_licences_are_known():
    made = bill.bill()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    pins = re.findall(r"(?m)^\S+==", bill.LOCK.read_text(encoding="utf-8"))
    assert len(made["components"]) == len(pins) > 100
    assert all(c["hashes"] for c in made["components"])
    unknown = [c["name"] for c in made["components"] if "licenses" not in c and "properties" not in c]
    assert unknown in ([], ["mlcroissant"])  # its wheel declares none


def test_the_bill_says_how_many_packages_could_be_looked_up(tmp_path):
    (tmp_path / "lock").write_text(LOCK)
    (told,) = bill.bill(tmp_path / "lock")["metadata"]["properties"]
    assert told == {"name": "fedrepro:looked-up", "value": "1 of 3 packages"}


def test_a_line_that_is_not_pinned_is_an_error(tmp_path):
    (tmp_path / "lock").write_text("numpy>=2\n")
    with pytest.raises(ValueError, match="'numpy>=2' is no pinned version"):
        bill.bill(tmp_path / "lock")


def test_no_package_of_the_lock_has_a_licence_that_asks_more_than_ours_gives():
    """Strong copyleft would bind anyone who redistributes the package; weak copyleft (LGPL, MPL) does not."""
    strong = [
        (c["name"], text)
        for c in bill.bill()["components"]
        for text in [licence["license"]["name"] for licence in c.get("licenses", [])]
        if ("GPL" in text or "General Public" in text) and "LGPL" not in text and "Lesser" not in text
    ]
    assert [name for name, _ in strong] in ([], ["docutils"])  # only its Emacs tools are GPL, not the library


def test_the_command_writes_json():
    done = subprocess.run(
        [sys.executable, "-m", "fedrepro.commands.cli", "bill"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith('{\n "bomFormat": "CycloneDX"')
