"""The studies' own benches are found and run."""

from __future__ import annotations

import pytest

from fedrepro.bench import runs, studies
from fedrepro.core import parts
from fedrepro.core.study import load_studies
from fedrepro.files import ROOT


def test_every_bench_of_a_study_is_found():
    files = {path.parent.name for path in parts.PACKAGE.glob("studies/*/bench.py")}
    assert set(studies.modules()) == files & set(load_studies(ROOT / "config"))
    assert files


@pytest.mark.parametrize(("code", "failed"), [("", 0), ("raise SystemExit(3)", 1)])
def test_every_bench_is_run_and_a_failure_is_no_success(tmp_path, monkeypatch, code, failed):
    (tmp_path / "first_bench.py").write_text(code)
    (tmp_path / "second_bench.py").write_text("open('ran', 'w')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(studies, "modules", lambda: {"one": "first_bench", "two": "second_bench"})
    assert studies.main() == failed
    assert (tmp_path / "ran").exists()


def test_a_study_that_is_run_as_a_whole_names_its_scale_and_rounds(monkeypatch):
    for whole in runs.whole_studies().values():
        assert whole.scale in ("smoke", "demo", "workstation", "paper")
        assert len(whole.rounds.client_tensors()) == whole.rounds.clients
    monkeypatch.setattr(studies, "modules", lambda: {"one": "fedrepro.bench.data"})
    assert runs.whole_studies() == {}
