"""The page is built from a results folder alone: it shows all results as text and loads nothing else."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fedrepro import report
from fedrepro.evidence import ledger
from fedrepro.report import artefacts, formats
from fedrepro.report.claims import VERDICTS
from fedrepro.report.page import build_report
from tests.pages import HOSTILE, SHA, SVG, write_artefact, write_ledger, write_manifest, write_results


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


def build(results: Path, studies: tuple[str, ...] = ("toy", "other")) -> tuple[str, Page]:
    path = build_report(results, results / "report" / "index.html", scale="demo", studies=list(studies))
    text = path.read_text(encoding="utf-8")
    return text, Page(text)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_results(tmp_path / "demo")


def test_every_claim_and_artefact_is_there(results):
    _, page = build(results)
    for at, verdict in enumerate(VERDICTS):
        assert f"toy/claim_{at}" in page.ids
        assert f"Statement {at}." in page.text
        assert f"Reason {at}." in page.text
        assert verdict in page.text
    row = page.text[page.text.index("within 5 of the printed 160") :]
    parts = ("158.1", "[150.5, 166.25]", "0.0031", "corrected 0.013", "sign flips 0.031", "published settings 5 seeds")
    places = [row.index(part) for part in parts]
    assert places == sorted(places)
    for name in ("toy/fig3", "toy/theorem1", "other/table2_2", "other/fig2_3"):
        assert f"artefact/{name}" in page.ids
    assert "Title of toy/fig3" in page.text
    assert "Caption of other/table2_2" in page.text
    assert "added by us" in page.text


def test_summary_counts_origins_apart(results):
    _, page = build(results)
    assert "Of the papers' own claims, 1 of 5 tested claims reproduced, 1 in direction only, 1 not " in page.text
    assert "2 further claims not tested." in page.text
    assert "arithmetic on printed numbers: 0 of 1 tested claim reproduced, 1 contradicted by the source." in page.text
    assert "added by us: 1 of 1 tested claim reproduced." in page.text
    assert "Of the headlines, what the papers want believed, 0 of 2 tested headlines reproduced, 1 not" in page.text
    links = [link for link in page.all("a") if "data-verdict" in link]
    counts = {(link["data-study"], link["data-verdict"]) for link in links if link["data-origin"] == "paper"}
    assert {study for study, verdict in counts if verdict == "not tested"} == {"toy", "other", ""}
    assert {study for study, verdict in counts if verdict == "reproduced"} == {"toy", ""}
    assert {link["data-study"] for link in links if link["data-origin"] == "added"} == {"toy", ""}


def test_headlines_come_first_and_open_to_their_claims(results):
    text, _ = build(results)
    section = text[text.index('<section id="headlines"') : text.index('<section id="ledger"')]
    first, second = section.index("headline/toy/first"), section.index("headline/toy/second")
    assert first < second < section.index("headline/other/only")  # the main one of a study first
    own = section[first:second]
    assert "main message" in own
    assert "“It is so.” <cite>Abstract</cite>" in own
    assert "One of three fails." in own
    assert "3 claims: 1 reproduced, 1 not reproduced, 1 undecided" in own
    assert re.findall('href="#(.*?)"', own) == ["toy/claim_0", "toy/claim_2", "toy/claim_3"]
    assert re.findall('href="#(.*?)"', section[second:])[0] == "toy/claim_3"  # an id without its study


def test_readings_hints_and_next_steps_are_under_their_claim(results):
    text, _ = build(results)
    rows = {row.partition('"')[0]: row for row in text.split('<tbody role="rowgroup" id="')[1:]}
    assert "1 other reading<" in rows["toy/claim_0"]
    assert "Not as a sum." in rows["toy/claim_0"]
    assert 'class="flips">flips: the sum → not reproduced<' in rows["toy/claim_0"]
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
    text, page = build(results)
    assert "alert('x')</script>" not in text
    # Statement, source, paper says, test, reason, hint, next, evidence, reading; of the reading four; headline four;
    # artefact title, caption; assumed reason; log.
    assert page.text.count(HOSTILE) >= 21
    assert not [tag for tag, attributes in page.tags if any(key.startswith("on") for key in attributes)]
    assert page.all("script") == [{}]
    assert "</" not in (Path(report.__file__).parent / "page.js").read_text(encoding="utf-8")


def test_svg_is_never_markup(results):
    text, page = build(results)
    assert not page.all("svg")
    assert 'alert("svg")' not in text
    link = next(link for link in page.all("a") if link.get("download") == "toy_fig3.svg")
    assert base64.b64decode(link["href"].partition("base64,")[2]).decode() == SVG


def test_only_the_pages_own_script_may_run(results):
    text, page = build(results)
    script = re.search(r"<script>(.*?)</script>", text, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = next(meta["content"] for meta in page.all("meta") if "http-equiv" in meta)
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_no_external_address(results):
    text, page = build(results)
    for _, attributes in page.tags:
        for key in ("src", "href", "srcset", "action", "poster", "data"):
            address = attributes.get(key) or ""
            assert address.startswith(("data:", "#", "../")) or not address
    assert not re.search(r"@import|url\(", text)
    assert "http://" not in text
    assert "https://" not in text


def test_links_inside_the_page_lead_somewhere(results):
    _, page = build(results)
    targets = [link["href"][1:] for link in page.all("a") if (link.get("href") or "").startswith("#")]
    assert set(targets) <= page.ids
    assert len([attributes for _, attributes in page.tags if "id" in attributes]) == len(page.ids)


def test_same_results_same_bytes(results):
    first, _ = build(results)
    second, _ = build(results)
    assert first == second
    assert not list((results / "report").glob("*.tmp"))


def test_standin_is_labelled(results):
    _, page = build(results)
    assert "stand-in data" in page.text
    assert {"class": "label standin"} in page.all("span")
    assert "For 1 claim, generated data takes the place of a real data set here." in page.text


def test_claims_and_artefacts_point_at_each_other(results):
    _, page = build(results)
    hrefs = [link.get("href") for link in page.all("a")]
    assert hrefs.count("#artefact/toy/fig3") == len(VERDICTS)
    assert hrefs.count("#toy/claim_0") == 3  # its own link, the figure, a headline
    assert "paper: 160 ± 2 (30 runs), ours 158.1 [150.5, 166.25]" in page.text


@pytest.mark.parametrize(
    ("source", "named"),
    [("§IV, Fig. 3", True), ("Fig. 3.", True), ("Fig. 3(b)", False), ("Fig. 31", False), ("Fig. 3.1", False)],
)
def test_a_place_is_matched_as_a_whole(tmp_path, source, named):
    write_ledger(tmp_path, [{"claim": "toy/a", "study": "toy", "source": source, "verdict": "reproduced"}])
    write_artefact(tmp_path, "toy/fig3", source="Fig. 3")
    text, _ = build(tmp_path)
    assert ('href="#artefact/toy/fig3"' in text) is named


def test_provenance_reaches_the_data(results):
    _, page = build(results)
    chain = page.text[page.text.index("Where this comes from") :]
    parts = [
        "toy/fig3",
        "fedrepro/artefacts/toy.py",
        "tables/toy/line.parquet",
        "runs/toy/line/toy/0.json",
        SHA,
    ]
    places = [chain.index(part) for part in parts]
    assert places == sorted(places)


def test_real_data_is_known_down_to_its_files(results):
    found = {"layout": "binary", "complete": False, "files": {"<b>.bin": "md5:5dd7e06a"}}
    data = {"name": "cifar10", "kind": "real", "sha256": SHA, "found": found}
    write_manifest(results, "runs/toy/line/toy/0.json", data=data)
    text, page = build(results)
    chain = page.text[page.text.index("On the data") :]
    assert "cifar10 (real data, a sample of it)" in chain
    assert chain.index("<b>.bin") < chain.index("md5:5dd7e06a")
    assert "<b>.bin" not in text  # a file's name is text, not markup


def test_cost_failures_assumed_errata_and_notebooks(results):
    text, page = build(results)
    assert "1 job took 3 min 20 s" in page.text
    assert "512 MB" in page.text
    assert "12,345 gradient steps" in page.text
    assert "Tiny CPU, 2 cores, 8 GB memory, Linux" in page.text
    assert "gamma=0.5" in page.text
    assert "1 job failed: this page is incomplete" in page.text
    assert "train · experiment=toy/ring" in page.text
    assert "batch_size" in page.text
    section = text[text.index('<section id="assumed"') : text.index('<section id="errata"')]
    assert 'href="#artefact/toy/theorem1">theorem1<' in section
    assert "nowhere" not in section  # an artefact of a study that is not on the page
    errata = ("Breaks a proof or a table (1)", "the text says 0.801", "Slips (1)", "eq. (1)", "not graded (1)")
    places = [page.text.index(words) for words in errata]
    assert places == sorted(places)
    assert "../notebooks/toy.html" in [link.get("href") for link in page.all("a")]


def test_the_bench_is_shown_where_there_is_one(results):
    assert "speed" not in build(results)[1].ids
    bench = results.parent / "bench"
    bench.mkdir()
    (bench / "engine.csv").write_text("case,system,ratio\nsoftmax,pfl,27.34\n")
    (bench / "engine.png").write_bytes(next(results.glob("artefacts/*/*.png")).read_bytes())
    _, page = build(results)
    assert "speed" in page.ids
    assert "A round beside other simulators and bare code" in page.text
    assert "27.34" in page.text
    assert "What a round costs as clients become many" not in page.text


def test_table_is_html_and_says_when_it_is_cut(tmp_path):
    write_artefact(tmp_path, "toy/table1", kind="table", rows=formats.MAX_ROWS)
    _, page = build(tmp_path)
    assert "row 199" in page.text
    assert "rows are shown" not in page.text
    write_artefact(tmp_path, "toy/table1", kind="table", rows=formats.MAX_ROWS + 50)
    _, page = build(tmp_path)
    assert "row 199" in page.text
    assert "row 200" not in page.text
    assert "The first 200 of 250 rows are shown" in page.text


def test_empty_folder_gives_a_page_of_sentences(tmp_path):
    _, page = build(tmp_path / "nothing")
    for sentence in (
        "There is no verdict to sum up yet.",
        "No headline has been judged yet.",
        "There is no ledger yet",
        "There is no figure or table yet.",
        "The register of assumed settings has not been written.",
        "No list of errata has been written.",
        "No manifest of a run is there yet.",
    ):
        assert sentence in page.text


def test_missing_pictures_and_numbers_give_a_sentence(results):
    for name in ("toy/fig3.png", "toy/theorem1.png", "toy/theorem1.svg", "other/table2_2.csv"):
        (results / "artefacts" / name).unlink()
    _, page = build(results)
    assert page.text.count("The picture of this figure is missing.") == 1  # fig3 still has its svg
    assert "The numbers of this table are missing." in page.text


def test_broken_files_are_named(results):
    (results / "artefacts/toy/fig3.json").write_text("{")
    (results / "runs/toy/line/toy/0.json").write_bytes(b"\xff\xfe")
    (results / "ledger.csv").write_text("claim,study\nonly-one-cell\n")
    (results / "headlines.csv").write_text("headline,study\nonly\n")
    (results / "readings.csv").write_text("reading\nodd\n")
    _, page = build(results)
    assert "2 files could not be read" in page.text
    assert "artefacts/toy/fig3.json could not be read" in page.text
    assert "Title of toy/theorem1" in page.text
    assert "only-one-cell" in page.ids


@pytest.mark.parametrize("content", ["[]", "{}", "null", "3", '[3, null, {"rule": null, "runs": 3}]'])
def test_unexpected_json_does_no_harm(results, content):
    for path in (
        *results.glob("*.json"),
        *results.glob("artefacts/*/*.json"),
        *results.glob("runs/**/*.json"),
    ):
        path.write_text(content)
    build(results)


def test_unexpected_values_in_an_artefact_do_no_harm(tmp_path):
    odd = {
        "runs": [{"path": None}, 3],
        "inputs": "x",
        "code": [],
        "data": None,
        "seeds": None,
        "diverged": "two",
    }
    write_artefact(tmp_path, "toy/fig3", **odd, title=None, caption=["a", 1], kind=None)
    _, page = build(tmp_path)
    assert "artefact/toy/fig3" in page.ids


def test_studies_choose_what_is_shown(results):
    _, page = build(results, studies=("other", "third"))
    assert "artefact/other/table2_2" in page.ids
    assert "artefact/toy/fig3" not in page.ids
    assert "toy/claim_0" not in page.ids
    assert "not shown here: toy." in page.text
    assert "No figure or table of this study is there yet." in page.text
    _, page = build(results, studies=())
    assert {"artefact/other/table2_2", "artefact/toy/fig3"} <= page.ids


def test_a_large_csv_is_linked_not_embedded(results, monkeypatch):
    monkeypatch.setattr(artefacts, "MAX_EMBED_BYTES", 10)
    _, page = build(results)
    link = next(link for link in page.all("a") if link.get("download") == "toy_fig3.csv")
    assert link["href"] == "../artefacts/toy/fig3.csv"
    assert (results / "report" / link["href"]).resolve().is_file()


def test_without_embedding_downloads_are_linked_and_pictures_still_shown(results):
    path = build_report(results, results / "report" / "index.html", scale="demo", studies=[], embed=False)
    page = Page(path.read_text(encoding="utf-8"))
    links = [link for link in page.all("a") if link.get("download")]
    assert links
    assert not [link for link in links if link.get("href", "").startswith("data:")]
    assert [image for image in page.all("img") if image.get("src", "").startswith("data:image/")]


def test_unknown_verdict_is_shown(tmp_path):
    write_ledger(tmp_path, [{"claim": "toy/a", "study": "toy", "verdict": "perhaps"}])
    _, page = build(tmp_path)
    assert "! perhaps" in page.text
    assert "1 perhaps" in page.text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.80", "0.80"),
        ("0.123456789", "0.1235"),
        ("1234567.8", "1,234,568"),
        ("1.23456789e-9", "1.235e-09"),
        ("nan", ""),
        ("inf", "inf"),
        ("FedAvg < DFL", "FedAvg < DFL"),
    ],
)
def test_short_number(text, shown):
    assert formats.short_number(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("0.0312345", "0.031"), ("1.0", "1"), ("3e-9", "< 0.0001"), ("nan", ""), ("", "")]
)
def test_p_values(text, shown):
    assert formats.p_text(text) == shown


def test_short_numbers_share_their_decimals():
    assert formats.short_numbers(["0.0049464", "0.014691234", "", "0.02"]) == [
        "0.00495",
        "0.01469",
        "",
        "0.02000",
    ]
    assert formats.short_numbers(["0.80", "0.9"]) == ["0.80", "0.9"]
    assert formats.short_numbers(["1e-09", "123456789.0"]) == ["1e-09", "123,456,789"]
    assert formats.short_numbers(["FedAvg", "0.123456789"]) == ["FedAvg", "0.1235"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.44, "0.4 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 05 min"), (None, "–")],
)
def test_duration(seconds, shown):
    assert formats.duration(seconds) == shown


def test_natural_order():
    assert sorted(["fig10", "fig2", "table1", "fig2_3"], key=formats.natural) == [
        "fig2",
        "fig2_3",
        "fig10",
        "table1",
    ]
