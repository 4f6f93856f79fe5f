"""The first page: one row and one scorecard per study, and a run beside the reference."""

from __future__ import annotations

import csv
import html
import re
from pathlib import Path

import pytest

from fedrepro.core.study import load_studies
from fedrepro.evidence.headlines import roll_up
from fedrepro.files import ROOT, read_yaml
from fedrepro.report.agreement import decided_claims, relation_of
from fedrepro.report.claims import as_claim, factor_of
from fedrepro.report.page import REFERENCE, build_report
from fedrepro.report.papers import data_of, paper_of
from fedrepro.report.scorecards import conclusion, deviations, further, open_headlines, strength
from tests.pages import write_ledger, write_reference, write_results


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_results(tmp_path / "demo")


def built(results: Path, reference: Path | None = None) -> str:
    """The first page as text without its style and script."""
    index = results / "report" / "index.html"
    build_report(results, index, scale="demo", studies=["toy", "other"], reference=reference)
    return re.sub(r"<(style|script)>.*?</\1>", "", index.read_text(encoding="utf-8"), flags=re.DOTALL)


def words(text: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", text)))


def part(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end, text.index(start))]


def test_the_first_table_names_paper_message_verdict_reason_and_evidence(results):
    row = part(built(results), '<table class="glance"', "</tr>\n<tr")
    said = words(row)
    for expected in ("Toys that agree", "Ann and Bo", "Toys 2020", "It is so.", "Abstract", "not reproduced"):
        assert expected in said
    assert 'href="https://example.org/toys"' in row
    assert "1 of 3 claims reproduced. Statement 2: Reason 2." in said
    assert re.findall(r'aria-label="(\d of 3): ', row) == ["3 of 3", "2 of 3", "3 of 3"]


def test_every_committed_study_has_its_title_and_link_on_the_first_screen(tmp_path):
    studies = load_studies(ROOT / "config")
    write_ledger(tmp_path, [{"claim": f"{name}/a", "study": name, "verdict": "undecided"} for name in studies])
    from fedrepro.report.papers import write_papers

    write_papers(tmp_path, [study.folder for study in studies.values()])
    index = build_report(tmp_path, tmp_path / "report" / "index.html", scale="demo", studies=list(studies))
    glance = part(index.read_text(encoding="utf-8"), '<table class="glance"', "</table>")
    for study in studies.values():
        assert study.title in html.unescape(glance)
        assert f'href="{study.link}"' in html.unescape(glance)


@pytest.mark.parametrize("study", load_studies(ROOT / "config").values(), ids=lambda study: study.name)
def test_the_key_artefact_of_a_committed_study_exists(study):
    assert study.key_artefact in read_yaml(study.folder / "artefacts.yaml")


def test_headline_verdicts_on_the_page_are_the_roll_up_of_the_ledger(results, tmp_path):
    folders = {results: ["toy", "other"]}
    if (REFERENCE / "headlines.csv").is_file():
        folders[REFERENCE] = []
    for folder, studies in folders.items():
        index = build_report(folder, tmp_path / "pages" / "index.html", scale="x", studies=studies)
        text = index.read_text(encoding="utf-8")
        with (folder / "ledger.csv").open(encoding="utf-8", newline="") as file:
            verdicts = {row["claim"]: row["verdict"] for row in csv.DictReader(file)}
        with (folder / "headlines.csv").open(encoding="utf-8", newline="") as file:
            headlines = list(csv.DictReader(file))
        for row in headlines:
            ids = [c if "/" in c else f"{row['study']}/{c}" for c in row["claims"].split()]
            decisive = row["rule"].removeprefix("decisive: ") if row["rule"].startswith("decisive") else None
            alone = verdicts.get(f"{row['study']}/{decisive}")
            expected = alone or roll_up(row["rule"], [verdicts[claim] for claim in ids])
            item = part(text, f'id="headline/{row["study"]}/{row["headline"]}"', "</p>")
            assert f"</span>{expected}</span>" in item


def test_headlines_open_to_their_claims_and_readings(results):
    card = part(built(results), 'id="study/toy"', "</article>")
    first, second = card.index("headline/toy/first"), card.index("headline/toy/second")
    assert first < second  # the main one of a study first
    own = card[first:second]
    assert "main message" in own
    assert "“It is so.” <cite>Abstract</cite>" in own
    assert re.findall('href="claims.html#(.*?)"', own) == ["toy/claim_0", "toy/claim_2", "toy/claim_3"]
    assert "1 other reading: flips: the sum → not reproduced" in own


def test_a_scorecard_has_deviations_errata_next_steps_figure_and_links(results):
    card = part(built(results), 'id="study/toy"', "</article>")
    said = words(card)
    box = said[said.index("Largest deviations") :]
    assert box.index("Statement 2.") < box.index("Statement 1.")  # a headline rests on it
    assert "No error that changes a result was found." in said  # toy has slips only
    assert "Small. 1 claim open: 12 more seeds, about 3 min" in said
    assert "If the text means the sum : not reproduced (1 claim)" in said
    assert "Title of toy/fig3" in said
    for address in ("../artefacts/toy/fig3.png", "../notebooks/toy.html", "claims.html#study=toy"):
        assert f'"{address}"' in card
    other = words(part(built(results), 'id="study/other"', "</article>"))
    assert "Table 2.2 0.811 should be 0.801" in other


def test_without_a_reference_nothing_is_compared(results):
    text = words(built(results))
    assert "This run:" not in text
    assert "Reference:" not in text
    assert words(built(results, reference=results.parent / "nowhere")) == text
    assert words(built(results, reference=results)) == text  # it is the reference


def test_a_small_run_shows_the_references_verdict_and_how_to_get_there(results):
    reference = write_reference(results.parent / "reference", results, spread="reproduced", headline_only="reproduced")
    text = built(results, reference)
    row = words(part(text, "<tbody", "</tbody>"))
    assert "reproduced reference This run: … too small to say" in row
    card = part(text, 'id="study/other"', "</article>")
    assert 'make data ONLY="digits"' in html.unescape(card)
    assert "31 MB" in card
    assert "Letters: no address serves it" in card
    assert "make reproduce SCALE=paper ONLY=other" in card
    assert "disagrees-title" not in text


def test_a_run_that_disagrees_beyond_the_intervals_is_shown_first(results):
    changes = {"claim_2": "reproduced", "headline_first": "reproduced"}
    reference = write_reference(results.parent / "reference", results, **changes)
    path = reference / "ledger.csv"
    path.write_text(path.read_text().replace("150.5,166.25", "90.0,95.0"))
    text = built(results, reference)
    said = words(text)
    alarm = said.index("This run disagrees with the reference in 1 claim")
    assert alarm < said.index("Does it hold?")
    assert "It changes 1 headline: So. (toy, not reproduced here, reproduced in the reference)" in said
    assert 'class="alarm"' in text
    path.write_text(path.read_text().replace("90.0,95.0", "150.0,167.0"))
    assert "disagrees-title" not in built(results, reference)  # the intervals overlap


ROW = {"verdict": "reproduced", "scale": "demo", "data": "real", "evidence": "published settings"}
HERE, THERE = {"ci_low": "1", "ci_high": "2"}, {"ci_low": "3", "ci_high": "4"}
FAILS = {"verdict": "not reproduced"}


@pytest.mark.parametrize(
    ("now", "was", "relation"),
    [
        (ROW, None, "alone"),
        (ROW | {"verdict": "not tested"}, ROW, "small"),
        (ROW | {"verdict": "undecided"}, ROW, "small"),
        (ROW, ROW | {"verdict": "undecided"}, "further"),
        (ROW, ROW, "agrees"),
        (ROW, ROW | FAILS, "disagrees"),  # without intervals the verdict decides
        (ROW | HERE, ROW | FAILS | HERE, "small"),
        (ROW | HERE, ROW | FAILS | THERE, "disagrees"),
        (ROW | HERE, ROW | THERE, "disagrees"),  # the same settings, other numbers
        (ROW | HERE, ROW | THERE | {"scale": "paper"}, "agrees"),
    ],
)
def test_relation_of_a_claim_to_the_reference(now, was, relation):
    assert relation_of(as_claim(now), was and as_claim(was), decided_claims) == relation


@pytest.mark.parametrize(
    ("row", "factor"),
    [
        ({"kind": "value", "ours": "0.5 ± 0.1", "paper_says": "0.25 ± 0.01 (30 runs)"}, 2),
        ({"kind": "value", "ours": "0.5", "paper_says": "2"}, 4),
        ({"kind": "ordering", "ours": "a (x=1) 0.08 ± 0.02, b 0.02 ± 0.01", "paper_says": "much smaller"}, 4),
        ({"kind": "value", "ours": "0.5", "paper_says": "0"}, 1),
        ({"kind": "threshold", "ours": "", "paper_says": "at most 3"}, 1),
    ],
)
def test_factor_between_two_numbers(row, factor):
    assert factor_of(row) == pytest.approx(factor)


def test_deviations_come_by_headline_then_verdict_then_size():
    def claim(name: str, **about: str) -> dict:
        return as_claim({"claim": name, "origin": "paper", "kind": "value", "paper_says": "1"} | FAILS | about)

    claims = [claim("small", ours="2"), claim("large", ours="9"), claim("weak", ours="5", verdict="direction")]
    claims += [claim("resting", ours="1.5"), claim("ours", ours="99", origin="added"), claim("fine") | ROW]
    found = deviations(claims, [{"claims": [claims[3]]}])
    assert [one["claim"] for one in found] == ["resting", "large", "small", "weak"]


def test_strength_in_dots():
    def dots(*rows: dict) -> list[int]:
        return [part["dots"] for part in strength([as_claim(row) for row in rows])]

    full = ROW | {"seeds": "10"}
    assert dots(full) == [3, 3, 3]
    assert dots(full, full | {"evidence": "reduced: rounds 3 of 9"}) == [2, 3, 3]
    assert dots(full | {"seeds": "5", "data": "standin"}) == [3, 2, 0]
    assert dots({"verdict": "not tested", "seeds": "0"}) == [0, 0, 0]


def test_the_conclusion_of_an_ordering_is_plain_and_has_its_numbers():
    measured = "advantage: mean -0.2, 95 % interval -0.3 to -0.1 over 30 seeds"
    claim = {"verdict": "not reproduced", "reason": f"{measured}: reversed; a note", "hint": ""}
    assert conclusion(claim) == f"it is the other way round ({measured})"


def test_a_conclusion_is_the_end_of_the_reason():
    claim = as_claim(ROW | {"reason": "mean 2, 95 % interval 1 to 3: outside 5 ± 1; a note."})
    assert conclusion(claim) == "outside 5 ± 1"
    claim = as_claim({"verdict": "not tested", "reason": "rounds 3 of 9, lr 1 of 2", "hint": "points to direction: x"})
    assert conclusion(claim) == "rounds 3 of 9 and 1 other setting; the smaller run points to direction"


def test_a_next_step_is_shortened():
    waits = as_claim({"verdict": "not tested", "next": "rounds 9 (has 3), lr 2 (has 1), width 4 (has 2), about 3 min"})
    (found,) = open_headlines([{"verdict": "not tested", "claims": [waits]}])
    assert (found["first"], found["cost"]) == ("rounds 9 (has 3) and 2 other settings, about 3 min", "about 3 min")


def test_nothing_further_is_needed_where_all_is_decided():
    assert further("toy", {"data": []}, [{"verdict": "reproduced"}], [as_claim(ROW)], None) == []


def test_data_is_what_make_data_fetches():
    archive = {"a.zip": {"bytes": 5_000_000}}
    layouts = {"zip": {"archives": archive, "files": [{"path": "x", "archive": "a.zip", "bytes": 9}]}}
    by_hand = {"hand": {"files": [{"path": "y", "bytes": 3}]}}
    entries = {"one": {"title": "One", "layouts": layouts}, "two": {"title": "Two", "layouts": by_hand}}
    assert data_of("one", entries) == {"name": "one", "title": "One", "megabytes": 5.0, "manual": False}
    assert data_of("two", entries)["manual"]


def test_a_committed_paper_is_described():
    study = next(iter(load_studies(ROOT / "config").values()))
    about = paper_of(study)
    assert (about["title"], about["link"], about["main"]) == (study.title, study.link, study.main)
    assert all(item["megabytes"] > 0 or item["manual"] for item in about["data"])
