"""`make setup`: which build of torch it installs, and when it runs again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fedrepro.files import ROOT
from tests.workflow.test_makefile import HOSTILE

#: in the place of envs/install.sh: records what it is given and prints the build that BUILT names, or the one asked for
INSTALL = """#!/bin/sh
printf '%s|%s|%s\\n' "$TORCH" "$TORCH_INDEX" "$*" >>called
echo "${BUILT:-$TORCH}"
"""
#: in the place of a Python that is new enough; there is nothing to install
PYTHON = "#!/bin/sh\nexit 0\n"
NVIDIA = Path("/proc/driver/nvidia").is_dir() and sys.platform != "darwin"
not_on_macos = pytest.mark.skipif(sys.platform == "darwin", reason="there is one build of torch for macOS")


class Checkout:
    """A folder with the Makefile, where set-up only records the build that it is asked for."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("Makefile", "pyproject.toml"):
            shutil.copy(ROOT / name, folder / name)
        shutil.copytree(ROOT / "envs", folder / "envs")
        (folder / "envs" / "install.sh").write_text(INSTALL)
        self.program(folder / ".venv" / "bin" / "python", PYTHON)
        self.driver(False)

    def program(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def driver(self, there: bool) -> None:
        self.program(self.folder / "bin" / "nvidia-smi", "#!/bin/sh\n" + ("echo GPU 0" if there else "exit 1") + "\n")

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        own = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "TORCH")}
        environment = {**own, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", **more}
        command = ["make", "--no-print-directory", "setup", *arguments]
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=60)

    def setup(self, *arguments: str, **more: str) -> list[str]:
        """The builds that set-up was asked for by one command: none or one."""
        (self.folder / "called").unlink(missing_ok=True)
        done = self.run(*arguments, **more)
        assert done.returncode == 0, done.stderr
        called = self.folder / "called"
        return [line.partition("|")[0] for line in called.read_text().splitlines()] if called.exists() else []

    @property
    def stamps(self) -> list[str]:
        return [path.name.rpartition("-")[2] for path in sorted((self.folder / ".venv").glob(".ready-*"))]


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


@not_on_macos
def test_without_a_choice_the_driver_decides_once(checkout):
    expected = "cuda" if NVIDIA else "cpu"
    assert checkout.setup() == [expected]
    assert checkout.stamps == [expected]
    checkout.driver(True)  # as on a node of the same cluster
    assert checkout.setup() == []
    assert checkout.setup("TORCH=auto") == ([] if NVIDIA else ["cuda"])
    assert checkout.stamps == ["cuda"]


@not_on_macos
def test_with_a_driver_or_if_the_device_is_cuda_it_is_cuda(checkout, tmp_path):
    checkout.driver(True)
    assert checkout.setup() == ["cuda"]
    checkout.driver(False)
    shutil.rmtree(tmp_path / ".venv")
    checkout.program(tmp_path / ".venv" / "bin" / "python", PYTHON)
    assert checkout.setup("DEVICE=cuda") == ["cuda"]


@not_on_macos
def test_another_choice_runs_set_up_again_and_is_kept(checkout):
    assert checkout.setup("TORCH=cuda") == ["cuda"]
    assert checkout.setup("TORCH=cuda") == []
    assert checkout.setup("TORCH=cpu") == ["cpu"]
    assert checkout.stamps == ["cpu"]
    assert checkout.setup() == []
    assert checkout.setup(TORCH="cuda") == ["cuda"]  # from the environment
    (checkout.folder / "envs" / "requirements.lock").write_text("# another\n")
    assert checkout.setup() == ["cuda"]
    assert checkout.stamps == ["cuda"]


@not_on_macos
def test_where_the_cpu_build_could_not_be_had_only_asking_for_it_tries_again(checkout):
    assert checkout.setup("TORCH=cpu", BUILT="cuda") == ["cpu"]
    assert checkout.stamps == ["cuda"]
    assert checkout.setup() == []
    assert checkout.setup("TORCH=cpu") == ["cpu"]
    assert checkout.stamps == ["cpu"]


def test_an_environment_from_before_there_was_a_choice_keeps_its_build(checkout):
    (checkout.folder / ".venv" / ".ready-1-2").touch()
    build = "cpu" if sys.platform == "darwin" else "cuda"
    assert f"TORCH={build} " in checkout.run("-n").stdout


def test_an_interrupted_set_up_keeps_its_choice(checkout):
    (checkout.folder / "envs" / "install.sh").write_text("exit 1\n")
    assert checkout.run("TORCH=cpu").returncode != 0
    assert checkout.stamps == []
    assert "TORCH=cpu " in checkout.run("-n").stdout


@pytest.mark.parametrize("value", [*HOSTILE, "gpu", "cpu cuda", "CPU", "%"])
def test_another_value_is_one_line(checkout, value):
    done = checkout.run(f"TORCH={value}")
    assert done.returncode == 2
    assert done.stderr.endswith(f"*** TORCH={value}: must be auto, cpu or cuda.  Stop.\n")
    assert done.stderr.count("\n") == 1
    assert not (checkout.folder / "broken").exists()
    assert not (checkout.folder / "called").exists()


@pytest.mark.parametrize("value", [*HOSTILE, "https://index/with space"])
def test_the_address_of_the_index_is_text(checkout, value):
    checkout.setup("TORCH=cpu", f"TORCH_INDEX={value}")
    assert (checkout.folder / "called").read_text() == f"cpu|{value}|.venv/bin/python\n"
    assert not (checkout.folder / "broken").exists()


@pytest.mark.parametrize("script", ["setup.sh", "install.sh"])
def test_the_scripts_refuse_another_value_too(tmp_path, script):
    shutil.copytree(ROOT / "envs", tmp_path / "envs")
    command = ["sh", f"envs/{script}", sys.executable]
    environment = {**os.environ, "TORCH": "gpu"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (1, "error: TORCH='gpu': must be auto, cpu or cuda\n")
    assert [path.name for path in tmp_path.iterdir()] == ["envs"]
