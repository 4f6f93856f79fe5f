"""A notebook's page stands alone: nothing in it is fetched or run."""

from __future__ import annotations

import re

import nbformat
from nbconvert import HTMLExporter

from fedrepro.workflow.run_notebook import alone

LINK = "https://example.org/paper"


def test_a_page_without_foreign_addresses_but_links():
    text = f"# A study\n\nFormulas $x^2$ and a [paper]({LINK})."
    outputs = [
        nbformat.v4.new_output("display_data", {"text/html": "<p>shown</p><script src='https://x.org'></script>"})
    ]
    cells = [nbformat.v4.new_markdown_cell(text), nbformat.v4.new_code_cell("1 + 1", outputs=outputs)]
    page = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))[0]
    assert "cdnjs.cloudflare.com" in page
    page = alone(page)
    assert "A study" in page
    assert "<p>shown</p>" in page
    assert "<script" not in page
    assert set(re.findall(r"https?://[^\s\"'<>)]+", page)) - {"http://www.w3.org/2000/svg"} == {LINK}
    head = page[: page.index("</head>")]
    assert head.index("default-src 'none'") < head.index("<style")
