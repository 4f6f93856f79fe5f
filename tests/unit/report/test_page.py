"""The page is built from a results folder alone: it shows all results as text and loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from fedrepro import report
from fedrepro.evidence import ledger
from fedrepro.report import formats
from fedrepro.report.claims import VERDICTS
from fedrepro.report.page import PAGES, build_report
from tests.pages import (
    HOSTILE,
    SHA,
    SVG,
    write_artefact,
    write_ledger,
    write_manifest,
    write_reference,
    write_results,
)


class Page(HTMLParser):
    """Tags, attributes and visible text of a page, as a browser would see them."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.words))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def ids(self) -> set[str | None]:
        return {attributes["id"] for _, attributes in self.tags if "id" in attributes}


class Site(dict[str, Page]):
    """The pages of a report by name; of `text`, `words` and `tags` those of all pages together."""

    def __init__(self, folder: Path):
        self.texts = {name: (folder / f"{name}.html").read_text(encoding="utf-8") for name in PAGES}
        super().__init__({name: Page(text) for name, text in self.texts.items()})

    @property
    def words(self) -> str:
        return " ".join(page.text for page in self.values())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for page in self.values() for attributes in page.all(tag)]


def build(results: Path, studies: tuple[str, ...] = ("toy", "other"), reference: Path | None = None) -> Site:
    index = results / "report" / "index.html"
    build_report(results, index, scale="demo", studies=list(studies), reference=reference)
    return Site(index.parent)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_results(tmp_path / "demo")


def test_every_claim_and_artefact_is_there(results):
    site = build(results)
    claims = site["claims"]
    for at, verdict in enumerate(VERDICTS):
        assert f"toy/claim_{at}" in claims.ids
        assert f"Statement {at}." in claims.text
        assert f"Reason {at}." in claims.text
        assert verdict in claims.text
    row = claims.text[claims.text.index("within 5 of the printed 160") :]
    parts = ("158.1", "[150.5, 166.25]", "0.0031", "corrected 0.013", "sign flips 0.031", "published settings 5 seeds")
    places = [row.index(part) for part in parts]
    assert places == sorted(places)
    for name in ("toy/fig3", "toy/theorem1", "other/table2_2", "other/fig2_3"):
        assert f"artefact/{name}" in site["figures"].ids
    assert "Title of toy/fig3" in site["figures"].text
    assert "Caption of other/table2_2" in site["figures"].text
    assert "added by us" in site["figures"].text


def test_what_the_paper_says_and_what_we_test_are_two_columns(results):
    text = build(results).texts["claims"]
    row = text[text.index('id="toy/claim_1"') :]
    cells = re.findall(r"<td.*?</td>", row, re.DOTALL)[:2]
    assert "160 ± 2 (30 runs)" in cells[0]
    assert "within 5 of the printed 160" in cells[1]
    assert "within 5" not in cells[0]


def test_summary_counts_origins_apart(results):
    page = build(results)["index"]
    assert "Of the papers' own claims, 1 of 5 tested claims reproduced, 1 in direction only, 1 not " in page.text
    assert "2 further claims not tested." in page.text
    assert "arithmetic on printed numbers: 0 of 1 tested claim reproduced, 1 contradicted by the source." in page.text
    assert "added by us: 1 of 1 tested claim reproduced." in page.text
    assert "Of the headlines, what the papers want believed, 0 of 2 tested headlines reproduced, 1 not" in page.text
    links = {link.get("href") for link in page.all("a")}
    assert {"claims.html#origin=paper&study=toy&verdict=not%20tested", "claims.html#origin=added&study=toy"} <= links
    assert "claims.html#origin=paper&study=other&verdict=reproduced" not in links


def test_readings_hints_and_next_steps_are_under_their_claim(results):
    text = build(results).texts["claims"]
    rows = {row.partition('"')[0]: row for row in text.split('<tbody role="rowgroup" id="')[1:]}
    assert "1 other reading<" in rows["toy/claim_0"]
    assert "Not as a sum." in rows["toy/claim_0"]
    assert "flips: the sum → not reproduced" in rows["toy/claim_0"]
    assert "<b>To decide it</b> 12 more seeds, about 3 min" in rows["toy/claim_3"]
    assert "<b>Hint</b> points to not reproduced: p 0.003" in rows["toy/claim_5"]
    assert "reduced: rounds 20 of 100" in rows["toy/claim_5"]
    assert not [part for part in ("other reading", "<b>Hint", "<b>To decide") if part in rows["toy/claim_1"]]


def test_the_page_knows_the_verdicts_of_the_ledger():
    assert tuple(VERDICTS) == ledger.VERDICTS


def test_verdicts_differ_in_colour_sign_and_word():
    css = (Path(report.__file__).parent / "page.css").read_text(encoding="utf-8")
    colours = [re.search(f"--{name}: (.*?);", css).group(1) for name, _, _ in VERDICTS.values()]
    signs = [sign for _, sign, _ in VERDICTS.values()]
    assert len(set(colours)) == len(set(signs)) == len(VERDICTS) == 6


def test_hostile_text_is_text(results):
    site = build(results, reference=write_reference(results.parent / "reference", results))
    for text in site.texts.values():
        assert "alert('x')</script>" not in text
    # Claim: statement, source, paper says, test, reason, hint, next, evidence, reading; of its reading four; on the
    # first page title, authors, venue, quote, place, says; artefact title, caption; assumed reason; log.
    assert site.words.count(HOSTILE) >= 25
    for page in site.values():
        assert not [tag for tag, attributes in page.tags if any(key.startswith("on") for key in attributes)]
        assert page.all("script") == [{}]
    assert not [link for link in site.all("a") if (link.get("href") or "").startswith("javascript:")]
    assert "</" not in (Path(report.__file__).parent / "page.js").read_text(encoding="utf-8")


def test_svg_is_never_markup(results):
    site = build(results)
    assert not site.all("svg")
    assert not [text for text in site.texts.values() if 'alert("svg")' in text]
    link = next(link for link in site["figures"].all("a") if link["href"].endswith("toy/fig3.svg"))
    assert (results / "report" / link["href"]).read_text() == SVG


def test_only_the_pages_own_script_may_run(results):
    site = build(results)
    for name, text in site.texts.items():
        script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy = next(meta["content"] for meta in site[name].all("meta") if "http-equiv" in meta)
        assert f"script-src 'sha256-{digest}'" in policy
        assert "default-src 'none'" in policy


def test_the_only_external_addresses_are_links_to_the_papers(results):
    site = build(results)
    loading = {"src", "srcset", "action", "poster", "data"}
    for page in site.values():
        for tag, attributes in page.tags:
            for key in loading & set(attributes):
                assert attributes[key].startswith(("../", "data:"))
            address = attributes.get("href") or "#"
            inside = address.startswith(("data:", "#", "../")) or address.split(".")[0] in PAGES
            assert inside or address.startswith("https://example.org/toys")
            assert not address.startswith("https:") or tag == "a"
    for text in site.texts.values():
        assert not re.search(r"@import|url\(", text)


def test_links_lead_somewhere(results):
    site = build(results)
    for name, page in site.items():
        assert len([attributes for _, attributes in page.tags if "id" in attributes]) == len(page.ids)
        for link in page.all("a"):
            file, _, place = link["href"].partition("#")
            if link["href"].startswith("../"):
                assert (results / "report" / link["href"]).resolve().is_file()
            elif not link["href"].startswith("https:") and place and "=" not in place:
                assert unquote(place) in site[file.removesuffix(".html") or name].ids


def test_same_results_same_bytes(results):
    first = build(results).texts
    assert build(results).texts == first
    assert not list((results / "report").glob("*.tmp"))


def test_standin_is_labelled_and_marked_on_its_picture(results):
    write_artefact(results, "toy/made_up", data=["standin"])
    site = build(results)
    assert "stand-in data" in site["claims"].text or {"class": "label standin"} in site["claims"].all("span")
    assert "For 1 claim, generated data takes the place of a real data set here." in site["index"].text
    buttons = re.findall(r'<button type="button" class="zoom".*?</button>', site.texts["figures"], re.DOTALL)
    marked = {'class="label standin mark">stand-in data<' in button for button in buttons if "made_up" in button}
    assert marked == {True}
    assert sum("standin mark" in button for button in buttons) == 1


def test_claims_and_artefacts_point_at_each_other(results):
    site = build(results)
    hrefs = Counter(link.get("href") for link in site["claims"].all("a"))
    assert hrefs["figures.html#artefact/toy/fig3"] == len(VERDICTS)
    hrefs = Counter(link.get("href") for link in site["figures"].all("a"))
    assert hrefs["claims.html#toy/claim_0"] == 1
    assert "paper: 160 ± 2 (30 runs); ours: 158.1 [150.5, 166.25]" in site["figures"].text


@pytest.mark.parametrize(
    ("source", "named"),
    [("§IV, Fig. 3", True), ("Fig. 3.", True), ("Fig. 3(b)", False), ("Fig. 31", False), ("Fig. 3.1", False)],
)
def test_a_place_is_matched_as_a_whole(tmp_path, source, named):
    write_ledger(tmp_path, [{"claim": "toy/a", "study": "toy", "source": source, "verdict": "reproduced"}])
    write_artefact(tmp_path, "toy/fig3", source="Fig. 3")
    assert ('href="figures.html#artefact/toy/fig3"' in build(tmp_path).texts["claims"]) is named


def test_provenance_reaches_the_data(results):
    text = build(results)["figures"].text
    chain = text[text.index("Where this comes from") :]
    parts = ["toy/fig3", "fedrepro/artefacts/toy.py", "tables/toy/line.parquet", "runs/toy/line/toy/0.json", SHA]
    places = [chain.index(part) for part in parts]
    assert places == sorted(places)


def test_real_data_is_known_down_to_its_files(results):
    found = {"layout": "binary", "complete": False, "files": {"<b>.bin": "md5:5dd7e06a"}}
    data = {"name": "cifar10", "kind": "real", "sha256": SHA, "found": found}
    write_manifest(results, "runs/toy/line/toy/0.json", data=data)
    site = build(results)
    chain = site["figures"].text[site["figures"].text.index("On the data") :]
    assert "cifar10 (real data, a sample of it)" in chain
    assert chain.index("<b>.bin") < chain.index("md5:5dd7e06a")
    assert "<b>.bin" not in site.texts["figures"]  # a file's name is text, not markup


def test_pictures_are_loaded_when_seen_and_say_what_is_on_them(results):
    write_artefact(results, "toy/described", alt="2 panels: MNIST; F-MNIST. Across: round.")
    images = [image for image in build(results).all("img") if "src" in image]
    assert len(images) >= 5
    assert {image["loading"] for image in images} == {"lazy"}
    alts = {image["src"].rpartition("/")[2]: image["alt"] for image in images}
    assert alts["described.png"] == "Title of toy/described. 2 panels: MNIST; F-MNIST. Across: round."
    assert alts["fig3.png"] == "Title of toy/fig3. Caption of toy/fig3"


def test_cost_failures_assumed_errata_and_notebooks(results):
    site = build(results)
    cost = site["cost"].text
    assert "1 job took 3 min 20 s" in cost
    assert "512 MB" in cost
    assert "12,345 gradient steps" in cost
    assert "Tiny CPU, 2 cores, 8 GB memory, Linux" in cost
    assert "gamma=0.5" in cost
    first = site["index"].text
    assert first.index("1 job failed: this page is incomplete") < first.index("Does it hold?")
    assert "train · experiment=toy/ring" in first
    assert "batch_size" in site["assumptions"].text
    assert 'href="figures.html#artefact/toy/theorem1">theorem1<' in site.texts["assumptions"]
    assert "nowhere" not in site.texts["assumptions"]  # an artefact of a study that is not on the page
    errata = ("Breaks a proof or a table (1)", "the text says 0.801", "Slips (1)", "eq. (1)", "not graded (1)")
    places = [site["errata"].text.index(words) for words in errata]
    assert places == sorted(places)
    assert "../notebooks/toy.html" in [link.get("href") for link in site["index"].all("a")]


def test_an_erratum_is_listed_once(results):
    path = results / "errata.json"
    rows = json.loads(path.read_text())
    path.write_text(json.dumps([*rows, rows[2] | {"how": "another way"}]))
    text = build(results)["errata"].text
    assert "Breaks a proof or a table (1)" in text
    assert "another way" not in text


def test_the_bench_is_shown_where_there_is_one(results):
    assert "There is no benchmark yet." in build(results)["speed"].text
    bench = results.parent / "bench"
    bench.mkdir()
    (bench / "engine.csv").write_text("case,system,ratio\nsoftmax,pfl,27.34\n")
    (bench / "engine.png").write_bytes(next(results.glob("artefacts/*/*.png")).read_bytes())
    page = build(results)["speed"]
    assert "A round beside other simulators and bare code" in page.text
    assert "27.34" in page.text
    assert "What a round costs as clients become many" not in page.text


def test_table_is_html_and_says_when_it_is_cut(tmp_path):
    write_artefact(tmp_path, "toy/table1", kind="table", rows=formats.MAX_ROWS)
    page = build(tmp_path)["figures"]
    assert "row 199" in page.text
    assert "rows are shown" not in page.text
    write_artefact(tmp_path, "toy/table1", kind="table", rows=formats.MAX_ROWS + 50)
    page = build(tmp_path)["figures"]
    assert "row 199" in page.text
    assert "row 200" not in page.text
    assert "The first 200 of 250 rows are shown" in page.text


def test_every_table_has_a_caption(results):
    for name, page in build(results).items():
        tags = [tag for tag, _ in page.tags]
        assert tags.count("caption") == tags.count("table"), name


def test_empty_folder_gives_pages_of_sentences(tmp_path):
    site = build(tmp_path / "nothing")
    for name, sentence in {
        "index": "There is no verdict to sum up yet.",
        "claims": "There is no ledger yet",
        "figures": "There is no figure or table yet.",
        "assumptions": "The register of assumed settings has not been written.",
        "errata": "No list of errata has been written.",
        "cost": "No manifest of a run is there yet.",
    }.items():
        assert sentence in site[name].text


def test_missing_pictures_and_numbers_give_a_sentence(results):
    for name in ("toy/fig3.png", "toy/theorem1.png", "toy/theorem1.svg", "other/table2_2.csv"):
        (results / "artefacts" / name).unlink()
    page = build(results)["figures"]
    assert page.text.count("The picture of this figure is missing.") == 1  # fig3 still has its svg
    assert "The numbers of this table are missing." in page.text


def test_broken_files_are_named(results):
    (results / "artefacts/toy/fig3.json").write_text("{")
    (results / "runs/toy/line/toy/0.json").write_bytes(b"\xff\xfe")
    (results / "ledger.csv").write_text("claim,study\nonly-one-cell\n")
    (results / "headlines.csv").write_text("headline,study\nonly\n")
    (results / "readings.csv").write_text("reading\nodd\n")
    (results / "studies.json").write_text("[")
    site = build(results)
    assert "3 files could not be read" in site["index"].text
    assert "artefacts/toy/fig3.json could not be read" in site["index"].text
    assert "Title of toy/theorem1" in site["figures"].text
    assert "only-one-cell" in site["claims"].ids


@pytest.mark.parametrize("content", ["[]", "{}", "null", "3", '[3, null, {"rule": null, "runs": 3}]'])
def test_unexpected_json_does_no_harm(results, content):
    for path in (*results.glob("*.json"), *results.glob("artefacts/*/*.json"), *results.glob("runs/**/*.json")):
        path.write_text(content)
    assert "toy/claim_0" in build(results)["claims"].ids


def test_unexpected_values_in_an_artefact_do_no_harm(tmp_path):
    odd = {"runs": [{"path": None}, 3], "inputs": "x", "code": [], "data": None, "seeds": None, "diverged": "two"}
    write_artefact(tmp_path, "toy/fig3", **odd, title=None, caption=["a", 1], kind=None)
    assert "artefact/toy/fig3" in build(tmp_path)["figures"].ids


def test_studies_choose_what_is_shown(results):
    site = build(results, studies=("other", "third"))
    assert "artefact/other/table2_2" in site["figures"].ids
    assert "artefact/toy/fig3" not in site["figures"].ids
    assert "toy/claim_0" not in site["claims"].ids
    assert "not shown here: toy." in site["index"].text
    assert "No figure or table of this study is there yet." in site["figures"].text
    assert {"artefact/other/table2_2", "artefact/toy/fig3"} <= build(results, studies=())["figures"].ids


def test_unknown_verdict_is_shown(tmp_path):
    write_ledger(tmp_path, [{"claim": "toy/a", "study": "toy", "verdict": "perhaps"}])
    site = build(tmp_path)
    assert "! perhaps" in site["index"].text.replace("!perhaps", "! perhaps")
    assert "1 perhaps" in site["index"].text
