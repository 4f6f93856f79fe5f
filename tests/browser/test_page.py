"""The report in a real browser, opened from the file system."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fedrepro.report.claims import VERDICTS
from fedrepro.report.page import build_report
from tests.pages import HOSTILE, SVG, write_artefact, write_results


@dataclass
class Seen:
    """A page with its requests and its errors and warnings."""

    page: object
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def rows(self) -> list[str]:
        """Ids of the visible claims, in order."""
        return self.page.eval_on_selector_all("#claims > tbody", "rows => rows.filter(r => !r.hidden).map(r => r.id)")


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    folder = write_results(tmp_path_factory.mktemp("results") / "demo")
    write_artefact(folder, "other/x&<b>y", title="An odd name")
    return build_report(folder, folder / "report" / "index.html", scale="demo", studies=["toy", "other"])


@pytest.fixture
def opened(browser, file):
    """Open the page, with options of the browser's context. Any request, error or warning fails the test."""
    contexts = []

    def open_page(**options) -> Seen:
        context = browser.new_context(**options)
        contexts.append(context)
        seen = Seen(context.new_page())
        seen.page.on("request", lambda r: seen.requests.append(r.url))
        seen.page.on("console", lambda m: seen.complaints.append(m.text) if m.type in ("error", "warning") else None)
        seen.page.on("pageerror", lambda e: seen.complaints.append(str(e)))
        seen.page.on("dialog", lambda d: (seen.complaints.append(f"dialog: {d.message}"), d.dismiss()))
        seen.page.goto(file.as_uri())
        contexts.append(seen)
        return seen

    yield open_page
    for item in contexts:
        if isinstance(item, Seen):
            asked = [url for url in item.requests if not url.startswith(("data:", file.as_uri()))]
            assert asked == []
            assert item.complaints == []
        else:
            item.close()


@pytest.fixture
def seen(opened) -> Seen:
    return opened(viewport={"width": 1200, "height": 900})


def test_nothing_is_asked_of_the_network_and_every_image_loads(seen):
    images = seen.page.eval_on_selector_all(
        "main img", "all => Promise.all(all.map(i => i.decode().then(() => i.naturalWidth)))"
    )
    assert len(images) == 4
    assert min(images) >= 1
    assert [url for url in seen.requests if not url.startswith("data:")] == [seen.page.url]


def test_words_study_origin_and_verdict_filter_the_claims(seen):
    everything = seen.rows()
    assert len(everything) == len(VERDICTS) + 3
    seen.page.fill("#filter-text", "statement 2.")
    assert seen.rows() == ["toy/claim_2"]
    assert seen.page.inner_text("#filter-count") == f"1 of {len(everything)} claims"
    seen.page.fill("#filter-text", "no such words")
    assert seen.rows() == []
    seen.page.click("#filter-none button")
    assert seen.rows() == everything
    seen.page.select_option("#filter-verdict", "not tested")
    assert seen.rows() == ["toy/claim_5", "other/spread"]
    seen.page.select_option("#filter-study", "other")
    assert seen.rows() == ["other/spread"]
    seen.page.click("#filter-reset")
    assert seen.rows() == everything
    seen.page.select_option("#filter-origin", "added")
    assert seen.rows() == ["toy/control"]


def test_a_number_of_the_summary_leads_to_its_claims(seen):
    seen.page.click(".matrix a[data-study=toy][data-verdict=direction]")
    assert seen.rows() == ["toy/claim_1"]
    assert seen.page.url.endswith("#ledger")
    seen.page.click(".matrix tfoot a[data-origin=printed]")
    assert seen.rows() == ["toy/adds_up"]


def test_a_headline_opens_to_its_claims_and_a_claim_to_its_readings(seen):
    headline = seen.page.locator("[id='headline/toy/first']")
    link = headline.locator("a", has_text="Statement 0.")
    assert not link.is_visible()
    headline.locator("summary").click()
    link.click()
    assert seen.page.url.endswith("#toy/claim_0")
    claim = seen.page.locator("[id='toy/claim_0']")
    other = claim.get_by_text("Not as a sum.")
    assert not other.is_visible()
    claim.locator(".readings summary").click()
    assert other.is_visible()


def test_a_link_to_a_hidden_claim_shows_it(seen):
    seen.page.select_option("#filter-origin", "added")
    seen.page.locator("[id='headline/toy/first'] summary").click()
    seen.page.locator("[id='headline/toy/first'] a").first.click()
    assert "toy/claim_0" in seen.rows()
    assert seen.page.locator("[id='toy/claim_0']").is_visible()


def test_columns_sort_both_ways(seen):
    verdict = seen.page.locator("#claims > thead th", has_text="Verdict")
    verdict.locator("button").click()
    assert verdict.get_attribute("aria-sort") == "ascending"
    up = seen.rows()
    assert up[:4] == ["toy/claim_0", "toy/control", "toy/claim_1", "toy/claim_2"]
    verdict.locator("button").click()
    assert verdict.get_attribute("aria-sort") == "descending"
    assert seen.rows()[-2:] == up[:2]
    assert set(seen.rows()) == set(up)
    assert seen.page.locator("[id='toy/claim_3'] .more").inner_text().startswith("Reason 3.")  # it moves along


def test_a_figure_is_enlarged_and_closed_by_keyboard(seen):
    page = seen.page
    first = page.locator(".zoom").first
    first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#viewer").is_visible()
    title = page.inner_text("#viewer-title")
    assert title == "Title of toy/fig3"
    assert page.evaluate("document.getElementById('viewer-image').decode().then(() => true)")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#viewer-title") == "Title of toy/theorem1"
    page.keyboard.press("Escape")
    assert not page.locator("#viewer").is_visible()


def test_dark_and_light(opened):
    def background(seen: Seen) -> int:
        colour = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgba()").split(",")[:3])

    light, dark = (opened(color_scheme=scheme) for scheme in ("light", "dark"))
    assert background(light) > 600
    assert background(dark) < 200
    light.page.click("#theme")
    assert background(light) < 200
    assert light.page.get_attribute("#theme", "aria-pressed") == "true"
    light.page.reload()
    assert background(light) < 200  # the choice is remembered
    dark.page.click("#theme")
    assert background(dark) > 600


def test_a_phone_needs_no_sideways_scrolling(opened):
    page = opened(viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_hostile_text_is_shown_as_text(seen):
    row = seen.page.locator("[id='other/spread']")
    assert HOSTILE in row.locator("td").first.inner_text()
    assert seen.page.locator("main script, main b:has-text('&')").count() == 0
    assert seen.page.locator("[id='artefact/other/x&<b>y']").count() == 1


def test_a_picture_can_be_downloaded(seen, tmp_path):
    with seen.page.expect_download() as waiting:
        seen.page.click("a[download='toy_fig3.svg']")
    assert Path(waiting.value.path()).read_text(encoding="utf-8") == SVG
    with seen.page.expect_download() as waiting:
        seen.page.click("a[download='toy_fig3.png']")
    assert base64.b64encode(Path(waiting.value.path()).read_bytes()).startswith(b"iVBORw0KGgo")


def test_from_a_claim_to_its_figure_and_the_data(seen):
    page = seen.page
    page.click("[id='toy/claim_0'] a.see")
    assert page.url.endswith("#artefact/toy/fig3")
    article = page.locator("[id='artefact/toy/fig3']")
    article.locator(".provenance summary").click()
    assert article.get_by_text("ab" * 32).first.is_visible()


def test_without_a_script_everything_is_there(opened):
    page = opened(java_script_enabled=False).page
    assert page.locator("#claims > tbody").count() == len(VERDICTS) + 3
    assert page.locator(".zoom img").first.is_visible()
    assert not page.locator("#filter-text").is_visible()
