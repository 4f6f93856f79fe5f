"""The documentation in a real browser: nothing is asked of another machine, and the picture is shown."""

from __future__ import annotations

from tests.documentation import build_site


def test_pages_ask_nothing_of_another_machine(browser, tmp_path):
    done = build_site(tmp_path)
    assert done.returncode == 0, done.stderr
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index.html", "docs/architecture.html", "docs/verdicts.html"):
        page.goto((tmp_path / name).as_uri(), wait_until="load")
    assert any(url.endswith("architecture.svg") for url in asked)
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.goto((tmp_path / "docs" / "architecture.html").as_uri())
    assert page.evaluate("document.querySelector('article img').naturalWidth") > 0
    page.close()
