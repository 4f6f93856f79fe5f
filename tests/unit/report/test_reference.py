"""The committed reference run: keeping it, and comparing a fresh run with it."""

from __future__ import annotations

import copy
import io
import json
import re
from html import escape

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from fedrepro.core.checksums import wrong
from fedrepro.core.experiment import load_experiments
from fedrepro.core.study import load_studies
from fedrepro.errors import UserError
from fedrepro.report import reference
from fedrepro.report.page import PAGES
from tests.configs import EXPERIMENT, STUDY, write_config, write_study, write_yaml
from tests.pages import HEADLINES, LEDGER, NUMBERS, write_rows
from tests.unit.evidence.made_up import runs

ROW = dict.fromkeys(LEDGER, "") | {
    "claim": "toy/a",
    "study": "toy",
    "origin": "paper",
    "kind": "value",
    "statement": "It is 2.",
    "ours": "2.1 ± 0.08",
    "ci_low": "2.0",
    "ci_high": "2.2",
    "verdict": "reproduced",
    "evidence": "published settings",
    "data": "synthetic",
    "scale": "demo",
    "seeds": "5",
}
READING = {**ROW, "reading": "the sum", "verdict": "not reproduced"}
HEADLINE = {"study": "toy", "headline": "main", "claims": "toy/a", "verdict": "reproduced"}


SHARD = "0-3"  # the first four of six seeds
COLOURS = np.array([[255, 255, 255], [0, 0, 0], [31, 119, 180], [214, 39, 40]], dtype=np.uint8)
OLDER = "0-99"  # a job from an older division of the seeds


def ledger(**changes) -> pd.DataFrame:
    return pd.DataFrame([{**ROW, **changes}])


def write_judged(folder, **changes) -> None:
    """Ledger, readings, headlines and numbers of the study, and the joint files."""
    for name, joint, columns, row in (
        ("ledgers", "ledger.csv", LEDGER, ROW),
        ("readings", "readings.csv", LEDGER, READING),
        ("headlines", "headlines.csv", HEADLINES, HEADLINE),
    ):
        for path in (folder / name / "toy.csv", folder / joint):
            write_rows(path, columns, [{**row, **{key: changes[key] for key in changes if key in columns}}])
    write_rows(folder / "numbers" / "toy.csv", NUMBERS, [{"claim": "toy/a", "seed": 0, "value": 2.1}])


@pytest.fixture
def results(tmp_path):
    """A results/<scale> folder with one study, and config/ with two."""
    write_config(tmp_path)
    write_study(tmp_path / "config", "other")
    folder = tmp_path / "demo"
    for name in ("artefacts/toy", "runs/toy/line/fedavg", "tables/toy", "notebooks"):
        (folder / name).mkdir(parents=True)
    write_judged(folder)
    about = {"artefact": "toy/fig1", "study": "toy", "title": "t", "kind": "table", "source": "Fig. 1", "scale": "demo"}
    (folder / "artefacts/toy/fig1.json").write_text(json.dumps(about))
    (folder / "artefacts/toy/fig1.csv").write_text("a,b\n1,2\n")
    (folder / "artefacts/toy/fig1.png").write_text("a picture of a table")
    for shard in (SHARD, OLDER):
        about = {"experiment": "toy/line", "scale": "demo", "shard": shard}
        (folder / f"runs/toy/line/fedavg/{shard}.json").write_text(json.dumps(about))
    (folder / f"runs/toy/line/fedavg/{SHARD}.parquet").write_text("large")
    (folder / "tables/toy/line.parquet").write_text("large")
    (folder / "notebooks/toy.html").write_text("<p>")
    return folder


@pytest.fixture
def kept(results, tmp_path):
    folder = tmp_path / "reference"
    reference.keep(results, ["toy"], folder, tmp_path / "config")
    return folder


def test_kept_are_verdicts_artefacts_manifests_and_no_large_file(kept, results):
    files = {str(path.relative_to(kept)) for path in kept.rglob("*") if path.is_file()}
    assert files == {
        "SHA256SUMS",
        "artefacts/toy/fig1.csv",
        "artefacts/toy/fig1.json",
        "assumed.json",
        "errata.json",
        "headlines.csv",
        "headlines/toy.csv",
        "ledger.csv",
        "ledgers/toy.csv",
        "numbers/toy.csv",
        "readings.csv",
        "readings/toy.csv",
        "studies.json",
        *(f"report/{page}.html" for page in PAGES),
        f"runs/toy/line/fedavg/{SHARD}.json",
    }
    for name in ("ledger.csv", "readings.csv", "headlines.csv"):
        assert (kept / name).read_text() == (results / name).read_text()
    assert "toy/a" in (kept / "report" / "claims.html").read_text()
    assert reference.scales(kept) == {"toy": "demo"}
    assert list(wrong(kept)) == []


def test_a_study_that_was_never_kept_is_not_run_yet_with_its_message_and_cost(kept, tmp_path):
    headline = {"quote": "it is <far> better", "place": "Abstract", "says": "Better.", "claims": ["*"], "rule": "all"}
    about = STUDY | {"title": "Other toys", "headlines": {"better": headline}, "main": "better"}
    write_yaml(tmp_path / "config" / "studies" / "other" / "study.yaml", about)
    reference.build(kept, tmp_path / "config", cost=lambda study: f"3 days for {study}")
    page = (kept / "report" / "index.html").read_text()
    (row,) = re.findall(r'<tr role="row" id="study/other">.*?</tr>', page, re.DOTALL)
    for told in (
        "Other toys",
        STUDY["link"],
        "it is &lt;far&gt; better",
        "Abstract",
        "not run yet",
        "3 days for other",
    ):
        assert told in row, told
    assert "0 training jobs" in row
    assert "SCALE=paper ONLY=other" in row
    assert 'id="study/toy"' in page.replace(row, "")


def test_the_committed_page_names_every_study():
    """Those without a reference as not run yet; `fedrepro reference build` writes it."""
    page = (reference.REFERENCE / "report" / "index.html").read_text()
    kept = {path.stem for path in (reference.REFERENCE / "ledgers").iterdir()}
    for name, study in load_studies(reference.CONFIG).items():
        assert f'id="study/{name}"' in page
        assert escape(study.title) in page
        assert study.link in page
    assert page.count("not run yet") == len(set(load_studies(reference.CONFIG)) - kept)


def test_a_picture_is_kept_in_fewer_colours_and_looks_the_same():
    drawn = Image.fromarray(COLOURS[np.random.default_rng(0).integers(4, size=(60, 80))])
    file = io.BytesIO()
    drawn.save(file, "png")
    kept = Image.open(io.BytesIO(reference.with_fewer_colours(file.getvalue())))
    assert kept.mode == "P"
    assert np.array_equal(np.asarray(kept.convert("RGB")), np.asarray(drawn))


def test_what_a_study_no_longer_has_goes(kept, results, tmp_path):
    (results / "artefacts/toy/fig1.csv").rename(results / "artefacts/toy/fig2.csv")
    reference.keep(results, ["toy"], kept, tmp_path / "config")
    assert [path.name for path in kept.glob("artefacts/toy/*.csv")] == ["fig2.csv"]


def test_a_study_of_which_a_part_was_run_is_judged_on_that_part(results, tmp_path):
    """Two experiments, one run to its end with ours below 1; the other has a table of older settings."""
    config = tmp_path / "config"
    folder = config / "studies" / "toy"
    write_yaml(folder / "experiments" / "circle.yaml", EXPERIMENT)
    claim = {"source": "§1", "quote": "small", "statement": "It is small.", "kind": "threshold", "at_most": 1.0}
    claim |= {"origin": "paper", "measured_on": "synthetic", "margin": {"absolute": 0.1}, "needs": {"rounds": "reach"}}
    measured = {"algorithm": "fedavg", "metric": "loss"}
    names = ("line", "circle")
    claims = {name: copy.deepcopy(claim) | {"ours": {"experiment": name, **measured}} for name in names}
    write_yaml(folder / "claims.yaml", {"claims": claims})
    for name, settings in (("line", None), ("circle", "older")):
        for method in ("fedavg", "fedpd"):
            for shard, seeds in (("0-3", range(4)), ("4-5", range(4, 6))):
                made = load_experiments(config, "demo", "toy")[f"toy/{name}"]
                about = {"experiment": f"toy/{name}", "algorithm": method, "scale": "demo", "shard": shard}
                about |= {"config": made.spec, "config_sha256": settings or made.job_sha256(method)}
                about |= {"seeds": list(seeds), "seconds": 1.0, "settings": {"": {"variant": ""}}}
                path = results / "runs" / "toy" / name / method / f"{shard}.json"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(about))
        table = runs([0.5, 0.52, 0.48, 0.51, 0.49, 0.5], algorithm="fedavg", experiment=f"toy/{name}")
        table.to_parquet(results / "tables" / "toy" / f"{name}.parquet")
    (results / "ledgers" / "toy").mkdir()
    (results / "ledgers" / "toy.csv").rename(results / "ledgers" / "toy" / "fig1.csv")
    kept = tmp_path / "reference"
    reference.keep(results, ["toy"], kept, config)
    found = pd.read_csv(kept / "ledgers" / "toy.csv").set_index("claim")
    assert dict(found["verdict"]) == {"toy/line": "reproduced", "toy/circle": "not tested"}
    assert found["next"]["toy/circle"] == "a run of circle"
    assert {path.parts[-3] for path in kept.glob("runs/toy/*/*/*.json")} == {"line"}


@pytest.mark.parametrize(
    ("study", "says"),
    [("tyo", "study 'tyo' is unknown; did you mean 'toy'?"), ("other", "there is no ledger of other")],
)
def test_nothing_is_kept_of_a_study_that_is_not_there(kept, results, tmp_path, study, says):
    before = sorted(kept.rglob("*"))
    with pytest.raises(UserError, match=says):
        reference.keep(results, ["toy", study], kept, tmp_path / "config")
    assert sorted(kept.rglob("*")) == before


@pytest.mark.parametrize(
    ("fresh", "says"),
    [
        ({}, []),
        ({"ours": "2.19 ± 0.2"}, []),  # within the half-width, 0.1
        ({"ours": "2.21"}, ["toy/a: ours is 2.21, was 2.1 ± 0.08"]),
        ({"verdict": "undecided"}, ["toy/a: undecided, was reproduced (ours 2.1 ± 0.08, was 2.1 ± 0.08)"]),
        ({"ours": "no value"}, ["toy/a: ours is no value, was 2.1 ± 0.08"]),
        ({"ours": "9", "kind": "threshold"}, []),  # the verdict decides
        ({"ours": "9", "scale": "paper"}, []),  # another scale: no comparison
        ({"ours": "9", "data": "standin"}, []),
        ({"evidence": "reduced: x"}, ["toy/a: evidence is 'reduced: x', was 'published settings'"]),
        ({"origin": "added"}, ["toy/a: origin is 'added', was 'paper'"]),
    ],
)
def test_differences_of_a_claim(fresh, says):
    assert list(reference.differences(ledger(**fresh), ledger())) == says


@pytest.mark.parametrize(("ours", "differs"), [(2.1, False), (2.1 * 1.0009, False), (2.1 * 1.0011, True)])
def test_a_number_that_no_seed_moves_agrees_to_rounding(ours, differs):
    for end in ("2.1", ""):
        fixed = ledger(ci_low=end, ci_high=end)
        assert bool(list(reference.differences(ledger(ours=str(ours)), fixed))) is differs


def test_a_fresh_run_is_checked_with_its_artefacts(kept, results):
    told, found = reference.check(results, kept)
    assert found == []
    assert told.startswith("1 of 1 claims were compared")
    assert "(toy demo)" in told
    (results / "artefacts/toy/fig1.csv").write_text("a,c\n1,2\n")
    assert reference.check(results, kept)[1] == ["artefacts/toy/fig1.csv: has other columns"]
    (results / "artefacts/toy/fig1.csv").unlink()
    pd.concat([ledger(), ledger(claim="toy/new")]).to_csv(results / "ledger.csv", index=False)
    assert reference.check(results, kept)[1] == [
        "artefacts/toy/fig1.csv: is missing",
        "toy/new: is not in the reference",
    ]


def test_headlines_and_readings_are_compared(kept, results):
    write_judged(results, verdict="undecided")
    was = "(ours 2.1 ± 0.08, was 2.1 ± 0.08)"
    assert reference.check(results, kept)[1] == [
        f"toy/a: undecided, was reproduced {was}",
        f"toy/a (the sum): undecided, was not reproduced {was}",
        "headline toy/main: undecided, was reproduced",
    ]
    write_judged(results, verdict="undecided", scale="smoke")  # another scale: no comparison
    assert reference.check(results, kept)[1] == []


def test_the_last_bench_takes_the_place_of_an_older_one_and_is_on_the_page(kept, tmp_path):
    bench = tmp_path / "bench"
    with pytest.raises(UserError, match=r"there is no engine\.csv"):
        reference.keep_bench(bench, kept, tmp_path / "config")
    bench.mkdir()
    (bench / "engine.csv").write_text("case,system,ratio\nsoftmax,pfl,27.34\n")
    (kept / "bench").mkdir()
    (kept / "bench" / "older.csv").touch()
    reference.keep_bench(bench, kept, tmp_path / "config")
    assert [path.name for path in (kept / "bench").iterdir()] == ["engine.csv"]
    assert "27.34" in (kept / "report" / "speed.html").read_text()


def test_without_a_run_there_is_nothing_to_check(kept, tmp_path):
    with pytest.raises(UserError, match="no ledger to compare"):
        reference.check(tmp_path / "nothing", kept)
