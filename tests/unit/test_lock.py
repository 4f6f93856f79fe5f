"""The lock: every package with hashes; a file with another hash is refused."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile

import pytest

from fedrepro.files import ROOT

NAME = "tiny-1.0-py3-none-any.whl"
ABOUT = {
    "METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


@pytest.fixture
def install(tmp_path):
    """Runs envs/install.sh on a lock with the given hashes and an index of one wheel; returns the exit code, whether
    the package is there, and what pip said."""
    index = tmp_path / "index"
    index.mkdir()
    with zipfile.ZipFile(index / NAME, "w") as wheel:
        wheel.writestr("tiny.py", "")
        for name, content in ABOUT.items():
            wheel.writestr(f"tiny-1.0.dist-info/{name}", content)
    own = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_TARGET": str(tmp_path / "there"), "TORCH": "cuda"}
    environment = {**os.environ, **own, "PIP_CONFIG_FILE": os.devnull}

    def run(*hashes: str) -> tuple[int, bool, str]:
        lock = tmp_path / "lock"
        lock.write_text(" ".join(["tiny==1.0", *(f"--hash=sha256:{value}" for value in hashes)]))
        command = ["sh", str(ROOT / "envs" / "install.sh"), sys.executable, str(lock)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, (tmp_path / "there" / "tiny.py").exists(), done.stderr

    run.own = hashlib.sha256((index / NAME).read_bytes()).hexdigest()
    return run


def test_a_file_with_the_hash_of_the_lock_is_installed(install):
    assert install("0" * 64, install.own)[:2] == (0, True)


def test_a_file_with_another_hash_is_refused(install):
    code, there, told = install("0" * 64)
    assert (code != 0, there) == (True, False)
    assert "DO NOT MATCH THE HASHES" in told


def test_a_package_without_a_hash_is_refused(install):
    code, there, told = install()
    assert (code != 0, there) == (True, False)
    assert "Hashes are required" in told


@pytest.mark.parametrize("script", ["setup.sh", "fedrepro.post-deploy.sh"])
def test_both_ways_to_an_environment_install_the_lock_this_way(script):
    text = (ROOT / "envs" / script).read_text(encoding="utf-8")
    assert "sh envs/install.sh" in text
    assert "requirements.lock" not in "".join(line for line in text.splitlines() if "pip install" in line)
