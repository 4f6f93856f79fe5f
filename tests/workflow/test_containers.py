"""Containers. No image is built here: its files agree with the checkout, and jobs start through apptainer's command."""

from __future__ import annotations

import json
import re
import sys

import pytest

from fedrepro.core.schemas import validate
from fedrepro.errors import UserError
from fedrepro.files import ROOT, read_yaml

CONTAINERFILE = (ROOT / "Containerfile").read_text(encoding="utf-8")
DEFINITION = (ROOT / "envs" / "fedrepro.def").read_text(encoding="utf-8")
#: in the place of apptainer: records the image and runs the command as it is
APPTAINER = f"""#!{sys.executable}
import json, os, sys
if sys.argv[1:] == ["--version"]:
    print("apptainer version 1.4.0")
    sys.exit()
shell = sys.argv.index("-c") - 1
with open(os.path.join({{folder!r}}, "images"), "a") as file:
    file.write(json.dumps(sys.argv[shell - 1]) + "\\n")
os.execvp(sys.argv[shell], sys.argv[shell:])
"""


def copied() -> tuple[set[str], set[str]]:
    """The files and folders of the checkout that go into each image."""
    lines = re.findall(r"(?m)^COPY (.+) \S+$", CONTAINERFILE)
    files = re.search(r"(?ms)^%files\n(.*?)\n\n", DEFINITION)[1]
    return {name for line in lines for name in line.split()}, {line.split()[0] for line in files.splitlines()}


def test_both_images_hold_the_same_files_of_the_checkout():
    one, other = copied()
    assert one == other
    assert {"envs", "src", "pyproject.toml"} <= one
    assert [name for name in sorted(one) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("text", [CONTAINERFILE, DEFINITION], ids=["Containerfile", "fedrepro.def"])
def test_an_image_installs_the_lock_into_a_python_that_is_new_enough(text):
    least = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    version = re.search(r"(?mi)^from:? python:3\.(\d+)-slim$", text)[1]
    conda = re.search(r"python=3\.(\d+)", (ROOT / "envs" / "fedrepro.yaml").read_text(encoding="utf-8"))[1]
    assert int(version) >= int(least)
    assert version == conda
    assert "sh envs/install.sh python" in text
    assert "Not built so far" in text


@pytest.mark.slow
@pytest.mark.workflow
def test_jobs_run_in_the_image_of_the_config(fresh, tmp_path):
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(APPTAINER.format(folder=str(tmp_path)))
    program.chmod(0o755)
    path = f"{program.parent}:{fresh.environment()['PATH']}"
    image = str(tmp_path / "fedrepro.sif")
    options, config = ("--sdm", "apptainer"), (f"container={image}",)
    done = fresh.snakemake("toy/fig3b", options=options, config=config, PATH=path, FEDREPRO_WARM="off")
    assert done.returncode == 0, done.stderr
    assert (fresh.results / "artefacts" / "toy" / "fig3b.svg").exists()
    images = [json.loads(line) for line in (tmp_path / "images").read_text().splitlines()]
    manifests = list((fresh.results / "runs").rglob("*.json"))
    assert len(images) > len(manifests) > 0
    assert set(images) == {image}


@pytest.mark.parametrize(
    "image", ["a b", "x;y", "$(touch${IFS}broken)", "`x`", "a&b", "a|b", "", "a\n", "'", '"', "~x"]
)
def test_an_image_that_a_shell_would_interpret_is_refused(image):
    config = read_yaml(ROOT / "config" / "config.yaml")
    validate({**config, "container": "docker://host/name:1.0@sha256"}, "config", "config.yaml")
    with pytest.raises(UserError, match="container"):
        validate({**config, "container": image}, "config", "config.yaml")
