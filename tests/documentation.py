"""The commands that the documentation shows, and the site that is made of it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from fedrepro.commands.command import example_names
from fedrepro.files import ROOT

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "config/README.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
FENCED = re.compile(r"(?ms)^ *```[a-z]*\n(.*?)^ *```")
INDENTED = re.compile(r"(?m)^ {4,}(\S.*)$")
COMMENT = re.compile(r" +# (?!or:).*")
INLINE = re.compile(r"`([^`]+)`")
PREFIX = re.compile(r"^(?:[A-Z_]+=\S+ +)+")


@dataclass(frozen=True)
class Shown:
    """A command as a page shows it; `whole` if it stands in a block, to be copied; `words` without variables before."""

    page: str
    text: str
    whole: bool

    @property
    def words(self) -> list[str]:
        return shlex.split(PREFIX.sub("", self.text))

    def __str__(self) -> str:
        return f"{self.page}: {self.text}"


def commands(*programs: str) -> list[Shown]:
    """The commands of the programs that stand in blocks or as inline code, each once per page."""
    found: dict[Shown, None] = {}
    for path in PAGES:
        text, page = path.read_text(encoding="utf-8"), str(path.relative_to(ROOT))
        blocks = "\n".join([*FENCED.findall(text), *INDENTED.findall(text)])
        lines = [
            part
            for line in blocks.splitlines()
            for part in re.split(r" && | # or: ", re.sub(r" +# (?!or:).*", "", line))
        ]
        inline = [" ".join(code.split()) for code in INLINE.findall(INDENTED.sub("", FENCED.sub("", text)))]
        for whole, texts in ((True, lines), (False, inline)):
            for shown in texts:
                plain = shown.strip().removeprefix(".venv/bin/").replace("\\|", "|")
                if PREFIX.sub("", plain).split(" ")[0] in programs:
                    found[Shown(page, plain, whole)] = None
    return list(found)


def filled(text: str) -> str:
    """Names of the reference in place of STUDY, STUDY/CLAIM, …; brackets around what can be left out are dropped."""
    real = example_names()
    for name in ("claim", "artefact", "experiment"):
        text = text.replace(f"STUDY/{name.upper()}", real[name])
    return re.sub(r"\bSTUDY\b", real["study"], text).replace("[", "").replace("]", "")


def build_site(folder: Path, checkout: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """What `make docs` runs, into another folder."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=600)
