"""Hooks of mkdocs: the pages of the site are Markdown files of the checkout, at the same relative paths.

A link in such a file thus leads to the same place on the site, and `mkdocs build --strict` checks it. A file that is
linked and is no page (a config file, a picture) is copied. A link to a folder becomes its text: a site has no listings.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FINDINGS = "docs/findings"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(?m)^( {4,}|```).*$|`[^`\n]*`")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the findings to the navigation: one page per study, found by its file."""
    findings = [f"{FINDINGS}/{path.name}" for path in sorted((ROOT / FINDINGS).glob("*.md"))]
    config.nav = [{"Findings": findings} if item == {"Findings": []} else item for item in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The pages of the navigation and of docs/, what they link to, and the files of the theme."""
    pages = {*listed(config.nav), *(f"docs/{file.src_uri}" for file in files.documentation_pages())}
    wanted = pages | {target for page in pages if (ROOT / page).is_file() for target in targets(page)}
    taken = [file for file in files if file.abs_src_path is None or not in_docs(file)]
    ours = [File(path, str(ROOT), config.site_dir, config.use_directory_urls) for path in sorted(wanted)]
    return Files([*taken, *(file for file in ours if Path(str(file.abs_src_path)).is_file())])


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The text of links to folders in place of the links."""

    def replaced(match: re.Match[str]) -> str:
        target = resolved(page.file.src_uri, match[3])
        return match[2] if target is not None and (ROOT / target).is_dir() else match[0]

    return LINK.sub(replaced, markdown)


def in_docs(file: File) -> bool:
    return Path(str(file.abs_src_path)).is_relative_to(ROOT / "docs")


def listed(nav: object) -> Iterator[str]:
    """The paths that a navigation names."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, (list, dict)):
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from listed(item)


def targets(page: str) -> Iterator[str]:
    """The files of the checkout that a page links to."""
    text = CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    found = (resolved(page, match[3]) for match in LINK.finditer(text))
    yield from (target for target in found if target is not None and (ROOT / target).is_file())


def resolved(page: str, link: str) -> str | None:
    """The path, from the checkout, of what a page links to; None for an address or a path outside."""
    target = os.path.normpath(os.path.join(os.path.dirname(page), link))
    return None if "://" in link or target.startswith("..") else target
