"""`fedrepro new-study` and `fedrepro check`: what is written holds, what is broken is told."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fedrepro.commands import check, cli, new_study
from fedrepro.contracts import data
from fedrepro.contracts.contract import Contract, hold
from fedrepro.core import outside, parts
from fedrepro.core.study import study_of
from fedrepro.files import ROOT


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The template as study `fresh`, known to this process."""
    monkeypatch.setenv(outside.VARIABLE, "")
    new_study.write_study(tmp_path / "fresh")
    parts.add_studies([tmp_path / "fresh"])
    yield study_of(tmp_path, "fresh")
    monkeypatch.undo()
    for cached in (parts.modules, parts.artefact_module, parts.label, data.made):
        cached.cache_clear()
    for name in [name for name in sys.modules if name.startswith("fedrepro.studies.fresh")]:
        del sys.modules[name]


def test_no_placeholder_is_left_and_the_files_are_formatted(study):
    for path in study.folder.rglob("*.*"):
        assert new_study.NAME not in path.read_text() + path.name
    options = ("--quiet", "--config", str(ROOT / "pyproject.toml"))
    for command in (("check",), ("format", "--check")):
        ruff = [sys.executable, "-m", "ruff", *command, *options, str(study.folder)]
        done = subprocess.run(ruff, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout


def test_its_files_hold(study):
    assert list(check.files_hold(study)) == ["files: 1 experiments, 3 claims, 1 headlines, 2 artefacts, 0 errata"]


def test_a_broken_method_is_told(study):
    """It keeps momentum outside its state: a second run, and a resumed one, differ."""
    path = study.folder / "algorithms" / "fresh_momentum.py"
    ends = {'return {"w": state["w"] - v': 'CALLS.append(v)\n        return {"w": state["w"] - v * len(CALLS)'}
    for old, new in {"@dataclass": "CALLS: list[Params] = []\n\n\n@dataclass", **ends}.items():
        path.write_text(path.read_text().replace(old, new))
    told = [line for holds, line in check.contracts_hold(study) if not holds]
    assert any(line.startswith("algorithm fresh_momentum: broken: same seed, same bytes (loop)") for line in told)
    assert not any(line.startswith("dataset") for line in told)


def test_a_broken_contract_says_what_was_found(tmp_path):
    contract = Contract.of("one is two", lambda: hold(1 == 2, "1 and 2"))
    assert list(check._held("it", [contract])) == [
        (False, "it: broken: one is two: 1 and 2"),
        (True, "it: 1 contracts tried"),
    ]


def test_a_wrong_claim_and_a_name_that_is_taken_are_one_line(study, tmp_path, monkeypatch, capsys):
    claims = study.folder / "claims.yaml"
    claims.write_text(claims.read_text().replace("metric: rounds_to_match", "metric: rounds_to_mach"))
    assert cli.main(["check", str(study.folder)]) == 1
    assert "much_closer.ours.metric: 'rounds_to_mach' is made by no code behind lines" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new-study", "fresh"]) == 1
    assert "fresh: exists already" in capsys.readouterr().err
    assert cli.main(["new-study", "Fresh Start"]) == 1
    assert "is no name: letters, digits and _ only" in capsys.readouterr().err
