"""The command `fedrepro`: list, show, status and why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time

import pytest
import yaml

from fedrepro import __version__
from fedrepro.commands import cli, command
from fedrepro.core import parts
from fedrepro.core.checkpoint_file import pack
from fedrepro.core.experiment import load_artefacts, load_experiment, load_experiments
from fedrepro.core.study import load_studies
from fedrepro.files import ROOT, write_atomically, write_json
from tests.configs import EXPERIMENT, STUDY, changed, write_config, write_study, write_yaml
from tests.pages import HEADLINES, LEDGER, NUMBERS, write_rows

ABOUT = {"title": "The line", "source": "Fig. 3(b)", "scale": "smoke", "data": ["synthetic"], "seeds": 2}
CLAIM = {
    "source": "§IV",
    "origin": "paper",
    "statement": "They agree.",
    "kind": "threshold",
    "measured_on": "synthetic",
    "ours": {"experiment": "line", "algorithm": "fedavg", "metric": "loss"},
    "at_most": 1.0e-6,
    "margin": {"absolute": 0.0},
    "readings": {"the sum": {"ours": {"algorithm": "fedpd"}}},
}
ROW = {
    "claim": "toy/servers_agree",
    "study": "toy",
    "origin": "paper",
    "source": "§IV",
    "kind": "threshold",
    "statement": "They agree.",
    "paper_says": "the servers reach consensus",
    "our_test": "loss at most 1e-06",
    "ours": "1e-7",
    "ci_low": "0",
    "ci_high": "2e-7",
    "p": "0.0123",
    "p_holm": "0.0246",
    "verdict": "reproduced",
    "reason": "far below",
    "evidence": "published settings",
    "data": "synthetic",
    "scale": "smoke",
    "seeds": "2",
    "reading": "flips: the sum → undecided",
    "hint": "a hint",
    "next": "12 more seeds, about 3 min",
}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """results/smoke of a checkout whose only study has one run, one artefact and a ledger."""
    write_config(tmp_path)
    write_yaml(tmp_path / "config" / "studies" / "toy" / "claims.yaml", {"claims": {"servers_agree": CLAIM}})
    folder = tmp_path / "results" / "smoke"
    for name in ("artefacts/toy", "runs/toy/line/fedavg", "logs/train_algorithm/toy/line/fedavg"):
        (folder / name).mkdir(parents=True)
    (folder / "artefacts/toy/fig3b.json").write_text(json.dumps({**ABOUT, "kind": "figure", "caption": "Both lines."}))
    (folder / "artefacts/toy/fig3b.csv").write_text("x,y\n1,2.34567\n")
    write_rows(folder / "ledgers/toy.csv", LEDGER, [ROW, ROW | {"claim": "toy/adds_up", "origin": "printed"}])
    other = ROW | {
        "reading": "the sum",
        "verdict": "undecided",
        "ours": "3e-7",
        "reason": "across",
        "p": "",
        "p_holm": "",
    }
    write_rows(folder / "readings/toy.csv", LEDGER, [other])
    number = {"claim": "toy/servers_agree", "quantity": "ours", "seed": 0, "value": "1.23456789e-7", "diverged": False}
    more = [number | {"seed": 1, "value": "", "diverged": True}, number | {"reading": "the sum", "value": 77}]
    write_rows(folder / "numbers/toy.csv", NUMBERS, [number, *more, number | {"claim": "toy/adds_up", "value": 88}])
    run = {
        "shard": "0-1",
        "seconds": 1.5,
        "commit": "c0ffee" * 7,
        "config_sha256": "aa11",
        "code_sha256": "bb22",
        "federation_sha256": "cc33",
        "data": {"name": "dfl_line", "kind": "real", "sha256": "dd44", "found": {"files": {"line.csv": "ee55"}}},
    }
    (folder / "runs/toy/line/fedavg/0-1.json").write_text(json.dumps(run))
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "CONFIG", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    return folder


def told(capsys, *arguments: str, code: int = 0) -> str:
    assert cli.main(list(arguments)) == code
    captured = capsys.readouterr()
    assert (captured.err == "") is (code == 0)
    return captured.out if code == 0 else captured.err


def test_everything_is_listed(capsys):
    out = told(capsys, "list")
    names = {line.split()[0] for line in out.splitlines() if line.startswith("  ")}
    experiments = load_experiments(ROOT / "config", "smoke")
    studies = {e.study for e in experiments.values()}
    found = {*parts.modules("algorithms"), *parts.modules("datasets")}
    assert names == studies | set(load_artefacts(ROOT / "config", experiments)) | found


def test_one_kind_is_listed_with_what_it_is(capsys, monkeypatch):
    monkeypatch.setattr(cli, "terminal_width", lambda: 70)
    lines = told(capsys, "list", "algorithms").splitlines()
    assert lines[0] == "algorithms:"
    line = next(line for line in lines if line.startswith("  fedprox "))
    assert line.removeprefix("  fedprox").strip().startswith("FedProx (Li et al")
    assert max(map(len, lines)) == 70


def test_nothing_is_cut_in_a_pipe(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    lines = told(capsys, "list", "algorithms").splitlines()
    assert max(map(len, lines)) > 70
    assert not [line for line in lines if line.endswith("…")]


def test_a_command_is_a_module_that_declares_one():
    for name, module in cli.names().items():
        assert isinstance(cli.load(module), command.Command), name
    assert {"list", "show", "status", "why", "next", "evidence", "plan", "reference", "bill"} <= set(cli.names())
    assert not {"cli", "command"} & set(cli.names())


def test_listing_imports_nothing_slow():
    code = "import sys; from fedrepro.commands import cli; cli.main(['list']); sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    slow = {"torch", "pandas", "numpy", "scipy", "matplotlib", "snakemake", "jsonschema", "fedrepro.core.experiment"}
    imported = set(done.stderr.split())
    assert "fedrepro.commands.list" in imported
    assert not slow & imported


def test_the_help_names_every_command_and_imports_nothing_slow(capsys):
    code = "import sys; from fedrepro.commands import cli; [cli.load(m) for m in cli.names().values()]"
    code += "; sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert not {"torch", "pandas", "numpy", "scipy", "matplotlib", "snakemake"} & set(done.stderr.split())
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out
    assert {line.split()[0] for line in told.splitlines() if line.startswith("    ")} >= set(cli.names())


def test_a_part_is_listed_with_the_first_sentence_of_its_module(capsys, monkeypatch, tmp_path):
    text = '"""A method (thesis App. C): the mean\nof all. It has a second sentence.\n\nAnd a paragraph."""\n'
    (tmp_path / "mean.py").write_text(text)
    monkeypatch.setattr(parts, "PACKAGE", tmp_path)
    monkeypatch.setattr(parts, "modules", lambda kind: {"mean": "fedrepro.mean"})
    assert told(capsys, "list", "algorithms") == "algorithms:\n  mean  A method (thesis App. C): the mean of all.\n\n"


def test_a_study_is_listed_with_its_paper_and_shown_with_its_counts(capsys, results):
    about = f"{STUDY['title']}: {', '.join(STUDY['authors'])} ({STUDY['venue']})"
    assert told(capsys, "list", "studies") == f"studies:\n  toy  {about}\n\n"
    assert "1 claims, 0 on printed numbers, 0 added; `fedrepro claims toy` lists them\n" in told(capsys, "show", "toy")


def test_a_study_without_a_title_is_an_error_that_names_the_file(capsys, results, tmp_path):
    write_yaml(tmp_path / "config" / "studies" / "toy" / "study.yaml", {"venue": "Toys 2020"})
    assert "toy/study.yaml" in told(capsys, "list", "studies", code=1)


def test_every_study_is_listed_in_order_with_its_paper(capsys):
    studies = load_studies(ROOT / "config").values()
    expected = [(s.name, f"{s.title}: {', '.join(s.authors)} ({s.venue})") for s in studies]
    lines = told(capsys, "list", "studies").splitlines()[1:-1]
    assert [tuple(part.strip() for part in line.strip().split("  ", 1)) for line in lines] == expected


def test_a_picture_is_shown_by_its_place_and_a_table_as_text(capsys, results):
    out = told(capsys, "show", "toy/fig3b")
    assert out.startswith("The line (Fig. 3(b))\nscale smoke · data: synthetic · 2 seeds\n")
    assert "picture: results/smoke/artefacts/toy/fig3b.png\n" in out
    assert "(1 rows: x, y)" in out
    (results / "artefacts/toy/fig3b.json").write_text(json.dumps({**ABOUT, "kind": "table", "caption": "Both."}))
    out = told(capsys, "show", "toy/fig3b", "--in", str(results))
    assert " x     y\n 1 2.346\n" in out
    assert out.endswith("\nBoth.\n")


def test_the_newest_results_are_shown_and_the_reference_last(capsys, results, tmp_path):
    for name, seconds in (("demo", 100), ("reference", 1e6)):
        folder = tmp_path / "results" / name / "artefacts" / "toy"
        folder.mkdir(parents=True)
        (folder / "fig3b.csv").write_text("x\n1\n")
        (folder / "fig3b.json").write_text(json.dumps({**ABOUT, "scale": name, "kind": "table", "caption": ""}))
        later = (results / "artefacts/toy/fig3b.json").stat().st_mtime + seconds
        os.utime(folder / "fig3b.json", (later, later))
    assert "scale demo" in told(capsys, "show", "toy/fig3b")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("show", "toy/fig3c"), "'toy/fig3c' is no artefact and no claim; did you mean 'fig3b'? (or fig1)"),
        (("show", "toy/fig1"), "there is no result of toy/fig1 yet: `make reproduce ONLY=toy/fig1` makes it"),
        (("show", "toy/fig1", "--in", "nowhere"), "nowhere: has no toy/fig1"),
        (("why", "xyz/a"), "study 'xyz' is unknown"),
        (("why", "toy"), "claim 'toy' is unknown; `fedrepro claims toy` lists 1"),
        (("claims", "tyo"), "study 'tyo' is unknown; did you mean 'toy'?"),
        (("compare", "nowhere", "results/smoke"), "nowhere: has no ledgers"),
        (("open", "toy/fig9"), "artefact 'toy/fig9' is unknown; did you mean 'toy/fig1'?"),
        (("lst",), "there is no command 'lst'; did you mean 'list'?"),
        (("why", "toy/servers_agre"), "claim 'toy/servers_agre' is unknown; did you mean 'servers_agree'?"),
        (("status", "--in", "nowhere"), "nowhere: there is no such folder"),
        (("status", "tyo"), "study 'tyo' is unknown; did you mean 'toy'?"),
    ],
)
def test_wrong_names_get_one_line(capsys, results, arguments, says):
    line = told(capsys, *arguments, code=1)
    assert line.startswith(f"error: {says}")
    assert line.count("\n") == 1


def test_the_chain_from_a_claim_to_the_data(capsys, results):
    out = told(capsys, "why", "toy/servers_agree").splitlines()
    assert out[:19] == [
        "toy/servers_agree (§IV; origin: paper): reproduced",
        "  paper says: the servers reach consensus",
        "  that is: They agree.",
        "  our test: loss at most 1e-06",
        "  ours: 1e-7 [0, 2e-7] · p 0.012, corrected 0.025",
        "  because: far below",
        "  evidence: published settings · 2 seeds · synthetic data · smoke",
        "  hint: a hint",
        "  next: 12 more seeds, about 3 min",
        "  readings: flips: the sum → undecided",
        "    the sum: undecided (3e-7 [0, 2e-7]); across",
        "  assumptions: `fedrepro explain toy/servers_agree` runs the other values of what the paper leaves",
        "    open",
        "  seed  ours",
        "  0     1.235e-07",
        "  1     – (diverged)",
        "  rule: kind threshold in config/studies/toy/claims.yaml, verdict in results/smoke/ledgers/toy.csv",
        "run runs/toy/line/fedavg/0-1.json",
        "  seeds 0-1 · 1.5 s · commit c0ffeec0ffee",
    ]
    assert out[-7:] == [
        "run runs/toy/line/fedavg/0-1.json",
        "  seeds 0-1 · 1.5 s · commit c0ffeec0ffee",
        "  config aa11",
        "  code   bb22",
        "  split  cc33",
        "  data   dd44 (dfl_line, real)",
        "    real file line.csv: ee55",
    ]


def test_why_tells_the_explanation(capsys, results):
    number = {"verdict": "not reproduced", "mean": 2.0, "low": 1.5, "high": 2.5}
    moved = {"moved": -1.0, "moved_low": -1.1, "moved_high": -0.9}
    other = {
        **number,
        **moved,
        "keys": ["local.steps"],
        "value": "5",
        "other": "10",
        "verdict": "reproduced",
        "mean": 1.0,
    }
    record = {"reading": "hangs on local.steps", "said": "6 seeds at paper", "answer": "another reading gives it"}
    record |= {"main": number, "alternatives": [other], "pairs": [], "fixed": []}
    write_json(results / "explain" / "toy" / "servers_agree.json", record)
    out = told(capsys, "why", "toy/servers_agree")
    assert "  assumptions: hangs on local.steps (6 seeds at paper): another reading gives it\n" in out
    assert "    main run: 2 [1.5, 2.5] not reproduced\n" in out
    assert "    local.steps = 5 → 10: 1 [1.5, 2.5] moved by -1 [-1.1, -0.9] reproduced\n" in out


def test_a_claim_without_readings_numbers_or_next_step(capsys, results):
    for name in ("readings", "numbers"):
        (results / name / "toy.csv").unlink()
    write_rows(results / "ledgers/toy.csv", LEDGER, [{**ROW, "hint": "", "next": "", "reading": "", "paper_says": ""}])
    out = told(capsys, "why", "toy/servers_agree")
    assert "  paper says: They agree.\n  our test:" in out
    assert not [word for word in ("hint", "next", "readings", "seed  ", "that is") if f"  {word}" in out]


def test_a_claim_that_is_newer_than_its_ledger(capsys, results):
    write_rows(results / "ledgers/toy.csv", LEDGER, [])
    line = told(capsys, "why", "toy/servers_agree", code=1)
    assert line.startswith("error: results/smoke/ledgers/toy.csv: has no claim 'toy/servers_agree'")


def test_the_runs_of_other_readings_are_in_the_chain(capsys, results):
    folder = results / "runs/toy/line"
    (folder / "fedpd").mkdir()
    (folder / "fedpd/0-1.json").write_text((folder / "fedavg/0-1.json").read_text())
    runs = [line for line in told(capsys, "why", "toy/servers_agree").splitlines() if line.startswith("run ")]
    assert runs == ["run runs/toy/line/fedavg/0-1.json", "run runs/toy/line/fedpd/0-1.json"]


def test_status_of_jobs(capsys, results):
    out = told(capsys, "status", "toy")
    assert "toy      training: 1 done, 1 waiting · 1 of 2 artefacts · reproduced: 1 of 1 paper, 1 of 1 printed\n" in out
    assert out.endswith("report: not yet\n")
    (results / "runs/toy/line/fedavg/0-1.json").unlink()
    log = results / "logs/train_algorithm/toy/line/fedavg/0-1.log"
    log.write_text("calibrating\nround 3/6\n")
    assert "\n  running: toy/line/fedavg/0-1\n    round 3/6\n" in told(capsys, "status", "toy")
    os.utime(log, (0, 0))
    assert "\n  stopped: toy/line/fedavg/0-1\n    round 3/6\n" in told(capsys, "status", "toy")
    log.write_text("round 3/6\nerror: no such data\n")
    assert "\n  failed: toy/line/fedavg/0-1\n    round 3/6\n    error: no such data\n" in told(capsys, "status")


def test_status_of_a_long_job(capsys, results):
    """Ten rounds in 600 seconds, of thirty; the checkpoint is ten minutes old."""
    (results / "runs/toy/line/fedavg/0-1.json").unlink()
    (results / "logs/train_algorithm/toy/line/fedavg/0-1.log").write_text("round 12/30\n")
    for name, job in (("a", "toy/line/fedavg/0-1"), ("b", "toy/line/other/0-1")):
        header = {"job": job, "round": 10, "rounds": 30, "seconds": 600.0}
        write_atomically(results / f"checkpoints/{name}.pt", pack(header, b"tensors"))
    os.utime(results / "checkpoints/a.pt", (time.time() - 600, time.time() - 600))
    write_atomically(results / "checkpoints/damaged.pt", b"")
    told_of = "10 of 30 rounds · 60 s per round · about 20 min left · last checkpoint 10 min ago"
    assert f"  running: toy/line/fedavg/0-1\n    round 12/30\n    {told_of}\n" in told(capsys, "status", "toy")


def test_status_before_anything_ran(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "WORK", tmp_path)
    assert told(capsys, "status") == "nothing has run yet: `make reproduce` starts\n"


def test_an_interrupt_is_one_line(capsys, monkeypatch):
    def interrupted(_module):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "load", interrupted)
    assert cli.main(["list"]) == 130
    assert capsys.readouterr().err == "stopped by SIGINT\n"


def test_a_closed_pipe_is_no_error():
    command = [sys.executable, "-m", "fedrepro.commands.cli", "list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_an_experiments_settings_are_shown_with_their_places(capsys, monkeypatch, tmp_path):
    folder = write_study(tmp_path / "config", "toy") / "experiments"
    write_yaml(folder / "_base.yaml", EXPERIMENT)
    ring = 'extends: _base\nid: "ring_{x}"\nfor_each: {x: [7]}\nrounds: "{x}"\nscales: {smoke: {seeds: 3}}\n'
    write_yaml(folder / "ring.yaml", ring)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "CONFIG", tmp_path / "config")
    rows = {}
    for scale in (None, "smoke", "paper"):
        lines = told(capsys, "show", "toy/ring_7", "--config", *(["--scale", scale] if scale else [])).splitlines()
        rows[scale] = [tuple(line.rsplit("  ", 1)) if ".yaml" in line else (line, "") for line in lines]
        rows[scale] = [(setting.rstrip(), place) for setting, place in rows[scale]]
        content = yaml.safe_load("\n".join(setting for setting, _ in rows[scale]))
        whole = {**changed(EXPERIMENT, {"rounds": 7, "scales.smoke.seeds": 3}), "title": "A line"}
        if scale:
            assert content == load_experiment(tmp_path / "config", "toy/ring_7", scale).spec
        else:
            assert content == whole
    number = 1 + (folder / "_base.yaml").read_text().splitlines().index("seeds: 6")
    assert ("rounds: 7", "config/studies/toy/experiments/ring.yaml:3") in rows[None]
    assert ("seeds: 6", f"config/studies/toy/experiments/_base.yaml:{number}") in rows["paper"]
    assert ("seeds: 3", "config/studies/toy/experiments/ring.yaml:5") in rows["smoke"]
    assert ("seeds_per_job: 3", "config/studies/toy/experiments/ring.yaml:5") in rows[
        "smoke"
    ]  # at most the number of seeds
    assert ("dataset:", "") in rows["smoke"]
    assert "did you mean 'ring_7'?" in told(capsys, "show", "toy/ring_8", "--config", code=1)
    assert "did you mean 'demo'?" in told(capsys, "show", "toy/ring_7", "--config", "--scale", "dem", code=1)
    assert "--scale is possible with --config only" in told(capsys, "show", "toy/fig3b", "--scale", "demo", code=1)


def test_the_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"fedrepro {__version__}\n"


def test_claims_are_chosen_by_verdict_and_origin(capsys, results):
    assert told(capsys, "claims", "toy").splitlines()[-1] == "2 claims, 2 reproduced"
    only = told(capsys, "claims", "--origin", "printed", "--verdict", "reproduced").splitlines()
    assert [line.split()[0] for line in only] == ["toy/adds_up", "1"]
    assert told(capsys, "claims", "--verdict", "undecided") == "0 claims\n"


def test_rows_are_given_as_json(capsys, results):
    rows = json.loads(told(capsys, "claims", "toy", "--json"))
    assert [row["claim"] for row in rows] == ["toy/servers_agree", "toy/adds_up"]
    assert json.loads(told(capsys, "list", "studies", "--json"))[0]["name"] == "toy"


def test_every_command_with_rows_has_json_and_no_other():
    for name, module in cli.names().items():
        parser = cli.parser_of({name: module})
        made = cli.load(module)
        own = parser._subparsers._group_actions[0].choices[name]
        assert ("--json" in own.format_help()) is (made.rows is not None), name


def test_two_runs_are_compared(capsys, results, tmp_path):
    other = tmp_path / "results" / "demo"
    write_rows(other / "ledgers/toy.csv", LEDGER, [ROW | {"verdict": "undecided", "ours": "2e-7"}])
    lines = told(capsys, "compare", str(results), str(other)).splitlines()
    assert lines[0].split("  ") == ["claim", "toy/servers_agree", "reproduced → undecided", "1e-7 → 2e-7"]
    assert lines[1] == "results/smoke and results/demo both judge 1 claims; 1 verdicts differ"


def test_a_study_is_shown_with_its_headlines(capsys, results, tmp_path):
    headline = {"quote": "it is", "place": "Abstract", "says": "It is so.", "claims": ["servers_agree"], "rule": "all"}
    study = {**STUDY, "headlines": {"so": headline}, "main": "so"}
    write_yaml(tmp_path / "config" / "studies" / "toy" / "study.yaml", study)
    assert "  not judged: It is so. (main message, Abstract; )" in told(capsys, "show", "toy")
    row = {"headline": "so", "study": "toy", "verdict": "undecided", "reason": "one claim: undecided"}
    write_rows(results / "headlines/toy.csv", HEADLINES, [row])
    out = told(capsys, "show", "toy")
    assert out.startswith("Toys\nAnn (Toys 2020)\nhttps://example.org/toys\n")
    verdict = "undecided: It is so. (main message, Abstract; one claim: undecided)"
    assert f"headlines, judged in results/smoke:\n  {verdict}\n" in out
    assert "artefacts: fig1, fig3b\nexperiments: line\n" in out


def test_a_claim_is_shown_without_its_runs(capsys, results):
    out = told(capsys, "show", "toy/servers_agree")
    assert out.startswith("toy/servers_agree (§IV; origin: paper): reproduced\n")
    assert "\nrun " not in out


def test_the_report_is_opened(capsys, results, monkeypatch):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: not opened.append(address))
    for file in ("report/index.html", "notebooks/toy.html", "artefacts/toy/fig3b.png"):
        (results / file).parent.mkdir(parents=True, exist_ok=True)
        (results / file).touch()
    assert told(capsys, "open") == "results/smoke/report/index.html\n"
    assert told(capsys, "open", "toy", "--print") == "results/smoke/notebooks/toy.html\n"
    assert told(capsys, "open", "toy/fig3b") == "results/smoke/artefacts/toy/fig3b.png\n"
    assert [address.rpartition("/")[2] for address in opened] == ["index.html", "fig3b.png"]
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert cli.main(["open"]) == 1
    assert "no browser was found" in capsys.readouterr().err


def test_words_that_a_shell_completes(capsys, results):
    assert {"list", "claims", "--version"} <= set(told(capsys, "completion", "words").split())
    assert {"toy", "--verdict", "--json"} <= set(told(capsys, "completion", "words", "--", "claims").split())
    assert "toy/servers_agree" in told(capsys, "completion", "words", "--", "why").split()
    assert told(capsys, "completion", "words", "--", "nothing") == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_valid(capsys, shell):
    script = told(capsys, "completion", shell)
    assert "fedrepro completion words" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


EXAMPLES = [(name, example) for name, module in cli.names().items() for example in cli.load(module).examples]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_examples_of_the_help_work(capsys, monkeypatch, name, example):
    monkeypatch.chdir(ROOT)
    arguments = f"{name} {example.format(**command.example_names())}".split()
    assert told(capsys, *arguments)


def test_the_help_has_the_examples(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["fedrepro", "why", "--help"])
    with pytest.raises(SystemExit):
        cli.main(["why", "--help"])
    assert f"examples:\n  fedrepro why {command.example_names()['claim']}\n" in capsys.readouterr().out
