"""The small config from data to report: every declared file and its content."""

from __future__ import annotations

import html
import json

import nbformat
import pandas as pd
import pytest

from fedrepro.evidence.claim_files import load_claims
from fedrepro.evidence.ledger import COLUMNS as LEDGER_COLUMNS
from fedrepro.evidence.ledger import VERDICTS
from fedrepro.files import read_json, read_yaml, sha256
from fedrepro.workflow import code_inputs
from tests.workflow.conftest import ARTEFACTS, Checkout

pytestmark = pytest.mark.workflow

RUNS = {"line": ["toy"], "faults": ["toy", "fedprox", "wild"]}
RUN_COLUMNS = ["experiment", "algorithm", "setting", "seed", "round", "step"]
RUN_COLUMNS += ["client", "group", "split", "metric", "value"]
MANIFEST_KEYS = {
    *("experiment", "algorithm", "shard", "seeds", "config", "config_sha256", "code_sha256", "data"),
    *("federation_sha256", "commit", "versions", "device", "threads", "seconds", "peak_memory_mb", "strategy"),
    *("gradient_steps", "diverged", "machine", "resumed_from"),
}
LEDGER = ["claim", "study", "origin", "source", "kind", "family", "statement", "paper_says", "our_test", "ours"]
LEDGER += ["ci_low", "ci_high", "p", "p_holm", "p_flip", "p_printed", "verdict", "reason", "hint", "evidence"]
LEDGER += ["data", "scale", "seeds", "reading", "next"]


@pytest.fixture(scope="module")
def run(first_run) -> Checkout:
    checkout, outcome = first_run
    assert outcome["returncode"] == 0, outcome["err"]
    return checkout


def test_ends_well_and_shows_its_progress(first_run):
    _, outcome = first_run
    assert outcome["returncode"] == 0, outcome["err"]
    lines = [line for line in outcome["err"].splitlines() if " jobs · " in line]
    assert lines[0].startswith("1/")
    assert " gone · " in lines[0]
    assert " · prepare data " in lines[0]
    assert " 100 % " in lines[-1]
    assert "Traceback" not in outcome["err"]


@pytest.mark.parametrize(("experiment", "algorithm"), [(e, a) for e, names in RUNS.items() for a in names])
def test_metrics_and_manifest_of_a_job(run, experiment, algorithm):
    base = run.results / "runs" / "toy" / experiment / algorithm / "0-1"
    metrics, manifest = pd.read_parquet(base.with_suffix(".parquet")), read_json(base.with_suffix(".json"))
    assert list(metrics.columns) == RUN_COLUMNS
    assert set(metrics["experiment"]) == {f"toy/{experiment}"}
    assert set(metrics["algorithm"]) == {algorithm}
    assert set(metrics["seed"]) == {0, 1}
    assert set(manifest) >= MANIFEST_KEYS
    assert (manifest["experiment"], manifest["algorithm"]) == (f"toy/{experiment}", algorithm)
    assert (manifest["shard"], manifest["seeds"], manifest["resumed_from"]) == ("0-1", [0, 1], None)
    assert manifest["config"]["rounds"] == 6
    assert list(manifest["config"]["algorithms"]) == [algorithm]
    assert set(manifest["machine"]) == {"cpu", "cores", "memory_gb", "system"}
    assert manifest["strategy"] in ("loop", "vmap")
    assert manifest["threads"] == 1
    assert manifest["gradient_steps"] > 0
    assert manifest["seconds"] > 0
    (data,) = (run.results / "data").glob("*/0-1.npz")
    assert manifest["data"]["sha256"] == sha256(data)
    assert (manifest["data"]["name"], manifest["data"]["kind"]) == ("dfl_line", "synthetic")
    (federation,) = (run.results / "federations").glob("*/*/0-1.json")
    assert manifest["federation_sha256"] == read_json(federation)["sha256"]


@pytest.mark.parametrize("experiment", RUNS)
def test_one_tidy_table_per_experiment(run, experiment):
    table = pd.read_parquet(run.results / "tables" / "toy" / f"{experiment}.parquet")
    assert list(table.columns) == [*RUN_COLUMNS, "data", "diverged", "variant", "point"]
    assert list(table["algorithm"].unique()) == RUNS[experiment]
    assert set(table["data"]) == {"synthetic"}
    assert {"train", "server", "derived"} <= set(table["split"])


def test_a_run_that_diverges_is_recorded_and_does_not_fail_the_workflow(run):
    manifest = read_json(run.results / "runs" / "toy" / "faults" / "wild" / "0-1.json")
    assert [(d["setting"], d["seed"]) for d in manifest["diverged"]] == [("", 0), ("", 1)]
    assert all(d["round"] >= 1 for d in manifest["diverged"])
    table = pd.read_parquet(run.results / "tables" / "toy" / "faults.parquet")
    assert table[table["diverged"]]["algorithm"].unique().tolist() == ["wild"]
    assert table[table["algorithm"] == "wild"]["diverged"].all()
    assert read_json(run.results / "artefacts" / "toy" / "faults.json")["diverged"] == 2
    assert read_json(run.results / "artefacts" / "toy" / "fig3b.json")["diverged"] == 0


@pytest.mark.parametrize("artefact", ARTEFACTS)
def test_an_artefact_has_its_chain_down_to_the_data(run, artefact, monkeypatch):
    base = run.results / "artefacts" / "toy" / artefact
    assert base.with_suffix(".svg").read_bytes().startswith(b"<?xml")
    assert base.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(base.with_suffix(".csv"))) > 0
    about = read_json(base.with_suffix(".json"))
    experiment = {"fig3b": "line", "faults": "faults"}[artefact]
    assert (about["artefact"], about["scale"]) == (f"toy/{artefact}", "smoke")
    assert (about["data"], about["seeds"]) == (["synthetic"], 2)
    monkeypatch.setattr(code_inputs, "ROOT", run.folder)
    monkeypatch.setattr(code_inputs.parts, "PACKAGE", run.folder / "src" / "fedrepro")
    for path, digest in about["code"].items():
        assert digest == code_inputs.syntax_sha256.__wrapped__(path)
    assert "src/fedrepro/studies/toy/artefacts.py" in about["code"]
    assert [i["path"] for i in about["inputs"]] == [f"tables/toy/{experiment}.parquet"]
    for made_from in about["inputs"]:
        assert made_from["sha256"] == sha256(run.results / made_from["path"])
    assert [r["path"] for r in about["runs"]] == [f"runs/toy/{experiment}/{a}/0-1.json" for a in RUNS[experiment]]
    (data,) = (run.results / "data").glob("*/0-1.npz")
    for used in about["runs"]:
        assert used["data_sha256"] == sha256(data)
        assert used["sha256"] == sha256((run.results / used["path"]).with_suffix(".parquet"))


def test_every_claim_has_its_verdict(run):
    ledger = pd.read_csv(run.results / "ledger.csv")
    assert list(ledger.columns) == LEDGER == LEDGER_COLUMNS
    declared = load_claims(run.folder / "config" / "studies" / "toy" / "claims.yaml").claims
    assert ledger["claim"].tolist() == [f"toy/{claim}" for claim in declared]
    assert len(ledger) > 5
    assert set(ledger["verdict"]) <= set(VERDICTS)
    assert set(ledger["scale"]) == {"smoke"}
    pd.testing.assert_frame_equal(ledger, pd.read_csv(run.results / "ledgers" / "toy.csv"))


def test_the_notebook_is_executed(run):
    notebook = nbformat.read(run.results / "notebooks" / "toy.ipynb", as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]
    assert all(cell.execution_count for cell in code)
    outputs = [output for cell in code for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    shown = "".join(output.get("data", {}).get("text/html", "") for output in outputs)
    assert shown.count("data:image/png;base64,") == len(ARTEFACTS)
    page = (run.results / "notebooks" / "toy.html").read_text()
    assert "<html" in page
    assert "consensus" in page


def test_the_report_names_every_artefact_and_every_verdict(run):
    page = "".join(html.unescape(path.read_text()) for path in sorted((run.results / "report").glob("*.html")))
    ledger = pd.read_csv(run.results / "ledger.csv")
    about = [read_json(run.results / "artefacts" / "toy" / f"{a}.json") for a in ARTEFACTS]
    assert all(a["title"] in page for a in about)
    assert all(verdict in page for verdict in ledger["verdict"].unique())


def test_who_holds_what_is_a_file_and_a_picture(run):
    (about,) = (run.results / "federations").glob("*/*/0-1.json")
    assert read_json(about)["clients"] == 25
    assert about.with_suffix(".svg").read_bytes().startswith(b"<?xml")


def test_every_job_has_its_log_and_its_benchmark(run):
    def names(folder: str, suffix: str) -> set[str]:
        found = (run.results / folder).rglob(f"*{suffix}")
        return {p.relative_to(run.results / folder).as_posix().removesuffix(suffix) for p in found}

    logs, benchmarks = names("logs", ".log"), names("benchmarks", ".tsv")
    assert logs == benchmarks
    assert {"train_algorithm/toy/faults/wild/0-1", "execute_notebook/toy", "merge_ledgers", "build_report"} <= logs
    assert "round 6/6" in (run.results / "logs/train_algorithm/toy/line/toy/0-1.log").read_text()


def test_no_checkpoint_and_no_temporary_file_is_left_over(run):
    assert not list((run.results / "checkpoints").glob("*"))
    kept = (".snakemake_timestamp", ".run.lock")  # a lock that was removed could be held twice
    assert not [p for p in run.results.rglob(".*") if p.is_file() and p.name not in kept]


def test_snakemakes_own_report_has_every_figure_by_study_with_its_caption(checkout, tmp_path):
    page = tmp_path / "report.html"
    done = checkout.snakemake("all", options=("--report", str(page)))
    assert done.returncode == 0, done.stderr
    text = page.read_text()
    shown, categories = (
        json.JSONDecoder().raw_decode(text, text.index(f'var {name} = {{"') + len(f"var {name} = "))[0]
        for name in ("results", "categories")
    )
    declared = read_yaml(checkout.folder / "config" / "studies" / "toy" / "artefacts.yaml")
    figures = {shown[path]["labels"]["artefact"]: shown[path] for path in categories["toy"]["Other"]}
    assert figures.keys() == declared.keys()
    for name, item in figures.items():
        assert declared[name]["title"] in html.unescape(item["caption"])
    (ledger,) = categories["ledger"]["Other"]
    assert "One verdict per claim" in shown[ledger]["caption"]
