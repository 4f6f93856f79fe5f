"""The documentation: its commands exist, the cheap ones work; its pages build and load nothing from elsewhere."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from fedrepro.commands import cli
from fedrepro.files import ROOT
from tests.documentation import PAGES, Shown, build_site, commands, filled

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"(?m)^([a-z-]+):.*## ", MAKEFILE))
VARIABLES = set(re.findall(r"(?m)^([A-Z_]+) \?=", MAKEFILE))
#: commands of fedrepro that only look at committed files
CHEAP = {"list", "show", "claims", "why", "next", "status", "compare"}
PLACEHOLDERS = re.compile(r"\b(?:COMMAND|NAME|CLAIM|EXPERIMENT|ARTEFACT|FOLDER|FILE)\b|[<…]")


def names(shown: list[Shown]) -> list[str]:
    return [str(each) for each in shown]


MAKE = commands("make")
FEDREPRO = [shown for shown in commands("fedrepro") if not re.match(r"fedrepro(?: (?:COMMAND|NAME)\b.*)?$", shown.text)]
BARE = {"list", "next", "status"}  # of these, those that need no argument
RUN = sorted({filled(s.text) for s in FEDREPRO if s.words[1] in (BARE if len(s.words) == 2 else CHEAP)})
RUN = [text for text in RUN if not PLACEHOLDERS.search(text) and not re.search(r"\bmine\b|results/(?!reference)", text)]


def test_commands_are_found_in_all_forms():
    """Of the extraction itself: blocks, several commands of a line, inline code, a variable before a command."""
    texts = {(shown.page, shown.text, shown.whole) for shown in [*MAKE, *FEDREPRO]}
    assert ("README.md", "make reproduce", True) in texts
    assert ("docs/explain.md", "make explain CLAIM=STUDY/CLAIM", True) in texts
    assert ("docs/commands.md", "make check-reference", False) in texts
    assert ("docs/bring-a-paper.md", "FEDREPRO_STUDIES=$PWD/mine fedrepro why mine/faster", True) in texts
    assert {text.split()[1] for text in RUN} >= {"list", "show", "claims", "why", "next", "status"}


@pytest.mark.parametrize("shown", MAKE, ids=names(MAKE))
def test_a_make_command_exists(shown: Shown):
    for word in shown.words[1:]:
        name, is_variable, _ = word.partition("=")
        assert name in (VARIABLES if is_variable else TARGETS), name


def test_make_would_run_them():
    """Without what they run, and as if set-up were done."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    for words in sorted({tuple(shown.words[1:]) for shown in MAKE}):
        line = ["make", "-n", "--no-print-directory", "STAMP=Makefile", "BENCH_STAMP=Makefile", "GPUS=0", *words]
        done = subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_every_make_command_is_documented():
    undocumented = TARGETS - {word for shown in MAKE for word in shown.words[1:]} - {"help"}
    assert not undocumented


@pytest.fixture(scope="module")
def parser() -> argparse.ArgumentParser:
    return cli.parser_of(cli.names())


@pytest.mark.parametrize("shown", FEDREPRO, ids=names(FEDREPRO))
def test_a_fedrepro_command_exists_with_its_options(shown: Shown, parser, capsys):
    words = Shown(shown.page, filled(shown.text), shown.whole).words[1:]
    try:
        parser.parse_args(words)
    except SystemExit:
        told = capsys.readouterr().err
        named_only = not shown.whole and "the following arguments are required" in told
        assert named_only, told


def test_an_option_that_does_not_exist_is_found(parser, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["why", "toy/claim", "--because"])
    assert "--because" in capsys.readouterr().err


@pytest.mark.parametrize("text", RUN)
def test_a_cheap_command_works(text: str, capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    code = cli.main(Shown("", text, True).words[1:])
    told = capsys.readouterr()
    assert code == 0, told.err
    assert told.out.strip()


def test_modules_and_tests_that_are_called_exist():
    shown = commands("python", "pytest")
    called = [(s, s.words[s.words.index("-m") + 1]) for s in shown if "-m" in s.words]
    assert {module for _, module in called} >= {"pytest", "fedrepro.bench.strategies"}
    for where, module in called:
        assert find_spec(module), str(where)
    for where in shown:
        missing = [word for word in where.words if word.startswith("tests/") and not (ROOT / word).exists()]
        assert not missing, str(where)


def test_settings_that_are_named_exist():
    """Every `NAME=…` in code of the pages is read somewhere."""
    listed = subprocess.run(
        ["git", "ls-files", "Makefile", "src", "envs", "tests"], cwd=ROOT, capture_output=True, text=True
    )
    known = "\n".join((ROOT / f).read_text(encoding="utf-8", errors="ignore") for f in listed.stdout.split())
    known = known.replace(Path(__file__).read_text(encoding="utf-8"), "")
    for path in PAGES:
        for name in re.findall(r"(?:`|^ {4,}|\s)([A-Z][A-Z_]{2,})=\S", path.read_text(encoding="utf-8"), re.MULTILINE):
            assert re.search(rf"\b{name}\b", known), f"{path}: {name}"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build_site(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_has_every_page_at_its_place(site):
    for page in (path.relative_to(ROOT) for path in PAGES):
        target = page.parent / "index.html" if page.name == "README.md" else page.with_suffix(".html")
        assert (site / target).is_file(), page
    assert (site / "docs" / "architecture.svg").is_file()
    assert (site / "config" / "datasets.yaml").read_bytes() == (ROOT / "config" / "datasets.yaml").read_bytes()


def test_every_study_has_its_page_in_the_navigation(site):
    text = (site / "index.html").read_text(encoding="utf-8")
    findings = sorted((ROOT / "docs" / "findings").glob("*.md"))
    assert findings
    for path in findings:
        assert text.count(f'href="docs/findings/{path.stem}.html"') > 0, path.stem


class Loaded(HTMLParser):
    """What a page loads: addresses of everything but links to click, and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.classes |= set((given.get("class") or "").split())
        if tag != "a":
            self.addresses += [
                given[name] or "" for name in ("src", "href", "srcset", "data", "action") if name in given
            ]


def foreign(text: str) -> list[str]:
    page = Loaded()
    page.feed(text)
    assert "mermaid" not in page.classes, "the theme would load a script for it"
    return [address for address in page.addresses if re.match(r"(?:[a-z]+:)?//", address)]


def test_a_foreign_address_is_found():
    assert foreign('<script src="https://x.org/a.js"></script><a href="https://y.org">') == ["https://x.org/a.js"]
    assert foreign('<link href="//x.org/a.css"><img src="a.png">') == ["//x.org/a.css"]


def test_pages_load_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    assert {str(path): found for path in pages if (found := foreign(path.read_text(encoding="utf-8")))} == {}
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""(?:url\(\s*|@import\s+)['"]?(?:https?:)?//""", text), path


def test_a_broken_link_stops_the_build(tmp_path):
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    with (tmp_path / "docs" / "data.md").open("a", encoding="utf-8") as file:
        file.write("\n[gone](../config/gone.yaml) [away](running.md#no-such-heading)\n")
    done = build_site(tmp_path / "site", tmp_path)
    assert done.returncode != 0
    assert "'../config/gone.yaml'" in done.stderr
    assert "#no-such-heading" in done.stderr


def test_the_navigation_has_the_pages_that_a_reader_needs():
    text = yaml.safe_dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    asked = ("install", "first-run", "verdicts", "add-a-method", "bring-a-paper", "slurm", "evidence", "architecture")
    assert [name for name in asked if f"docs/{name}.md" not in text] == []
