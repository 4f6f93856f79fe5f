"""Where a result comes from: code, commit, versions, machine."""

from __future__ import annotations

import subprocess

import pytest

from fedrepro.evidence import provenance
from fedrepro.workflow.train_job import peak_memory_mb


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """An empty folder in the place of the checkout, out of reach of any repository above it."""
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def test_the_commit_is_marked_where_tracked_files_changed(checkout):
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *identity, *arguments], cwd=checkout, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    assert provenance.commit() == "unknown"
    git("init", "-q")
    (checkout / "a.py").write_text("1")
    git("add", "a.py")
    git("commit", "-qm", "one")
    head = git("rev-parse", "HEAD")
    assert provenance.commit() == head
    (checkout / "new.py").write_text("not tracked: results lie there too")
    assert provenance.commit() == head
    (checkout / "a.py").write_text("2")
    assert provenance.commit() == f"{head}+"


def test_no_git_at_all_is_no_error(checkout, monkeypatch):
    monkeypatch.setenv("PATH", str(checkout))
    assert provenance.commit() == "unknown"


def test_versions_name_what_computes():
    found = provenance.versions()
    assert {"python", "fedrepro", "torch", "numpy", "scipy", "pandas", "snakemake"} <= set(found)
    assert all(version[0].isdigit() for version in found.values())


def test_machine_and_memory():
    found = provenance.machine()
    assert set(found) == {"cpu", "cores", "memory_gb", "system"}
    assert found["cpu"]
    assert found["cores"] >= 1
    assert found["memory_gb"] > 0.1
    assert 10 < peak_memory_mb() < 1024 * found["memory_gb"]


def test_a_cluster_job_is_known_by_its_number(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert provenance.cluster_job() is None
    monkeypatch.setenv("SLURM_JOB_ID", "42")
    assert provenance.cluster_job() == "42"
