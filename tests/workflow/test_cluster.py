"""The slurm profile on a real slurm with one node of 2 CPUs: short jobs run together, cancelled jobs are retried,
pending ones are named."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from fedrepro.core.study import load_studies
from fedrepro.files import ROOT, read_json, read_yaml
from tests import slurm as clusters
from tests.workflow.cluster_runs import RUNS, files, start
from tests.workflow.conftest import SMOKE_STUDIES, copy_checkout, copy_tree

pytestmark = pytest.mark.workflow

#: slurm runs everything that the local run did; SLURM_ONLY=<study> restricts it to one study
STUDIES = os.environ.get("SLURM_ONLY", "").split() or SMOKE_STUDIES or sorted(load_studies(ROOT / "config"))


@pytest.fixture
def slurm_with_accounts(tmp_path_factory):
    """A slurm in which only sacct knows the state of jobs."""
    if reason := clusters.missing(accounts=True):
        pytest.skip(reason)
    with clusters.one_node(tmp_path_factory.mktemp("slurm") / "node", accounts=True) as node:
        (node.folder / "bin" / "squeue").write_text("#!/bin/sh\nexit 1\n")
        yield node


def test_the_smoke_scale_through_slurm_gives_the_bytes_of_a_local_run(slurm, smoke_run, tmp_path):
    local, outcome = smoke_run
    assert outcome["returncode"] == 0, outcome["err"]
    remote = copy_checkout(tmp_path / "checkout", local.folder)
    copy_tree(local.folder / "cache", remote.folder / "cache")  # the strategies chosen there
    before = set(slurm.jobs())
    run = start(remote, slurm, "all", config=(f"only={' '.join(STUDIES)}",))
    _, told = run.communicate(timeout=3000)
    assert run.returncode == 0, told

    records = {job: record for job, record in slurm.jobs().items() if job not in before}
    assert {record["JobState"] for record in records.values()} == {"COMPLETED"}
    manifests = sorted(remote.results.glob("runs/**/*.json"))
    assert {read_json(path)["cluster_job"] for path in manifests} <= set(records)
    assert {read_json(path)["cluster_job"] for path in local.results.glob("runs/**/*.json")} == {None}
    assert {path.relative_to(remote.results).parts[1] for path in manifests} == set(STUDIES)
    assert len(records) == len(STUDIES) + 2, "a place for the data, one per study, one for the report"
    assert not any("gpu" in record.get("TresPerJob", "") for record in records.values())

    kinds = (
        "runs/{}/*/*/*.parquet",
        "tables/{}/*.parquet",
        "artefacts/{}/*.csv",
        "artefacts/{}/*.svg",
    )
    compared = [kind.format(study) for kind in kinds for study in STUDIES]
    ours, theirs = files(remote, *compared), files(local, *compared)
    assert len(ours) > 20
    assert set(ours) == set(theirs)
    assert [name for name in ours if ours[name] != theirs[name]] == []
    for study in STUDIES:
        own, other = (pd.read_csv(run.results / "ledgers" / f"{study}.csv", dtype=str) for run in (remote, local))
        timed = own["our_test"].str.contains("seconds")  # and the cost of what is next hang on the machine
        pd.testing.assert_frame_equal(own[~timed].drop(columns="next"), other[~timed].drop(columns="next"))
    for name, content in files(remote, "data/*/*.npz", "federations/*/*/*.npz").items():
        assert (local.results / name).read_bytes() == content, name


def test_a_cancelled_job_is_retried_with_more_memory_and_ends_with_the_same_bytes(slurm, fresh, first_run):
    copy_tree(first_run[0].folder / "cache", fresh.folder / "cache")
    before = set(slurm.jobs())
    run = start(fresh, slurm, "all")
    try:
        while not list(fresh.results.glob("logs/train_algorithm/**/*.log")):
            assert run.poll() is None, run.communicate()[1]
            assert "PartitionConfig" not in {record["Reason"] for record in slurm.jobs().values()}, "too many CPUs"
            time.sleep(0.1)
        (victim,) = [j for j, r in slurm.jobs().items() if r["JobState"] == "RUNNING" and j not in before]
        slurm.command("scancel", victim)
        _, told = run.communicate(timeout=1500)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 0, told
    assert "failed, in one job of the cluster:" in told
    records = slurm.jobs()
    assert records[victim]["JobState"] == "CANCELLED"
    (retry,) = {read_json(path)["cluster_job"] for path in fresh.results.glob("runs/**/*.json")} - {victim}
    memory = [int(records[job]["MinMemoryNode"].removesuffix("M")) for job in (victim, retry)]
    assert memory[1] == 2 * memory[0]
    assert {records[job]["Requeue"] for job in (victim, retry)} == {"0"}, "slurm would hold one whose launch fails"
    assert files(fresh, RUNS) == files(first_run[0], RUNS)


def test_a_job_that_stays_pending_is_named_with_slurms_reason(slurm, checkout):
    (checkout.results / "ledger.csv").unlink()
    submitted = slurm.command("sbatch", "--parsable", "--exclusive", "--output=/dev/null", "--wrap=sleep 120")
    blocker = submitted.strip()
    before = set(slurm.jobs())
    run = start(checkout, slurm, "results/smoke/ledger.csv", FEDREPRO_PENDING_SECONDS="1")
    try:
        told = next((line for line in run.stderr if "pending" in line), "")
        slurm.command("scancel", blocker)
        rest = run.communicate(timeout=600)[1]
    finally:
        slurm.command("scancel", blocker)
        run.kill()
        run.wait()
    assert run.returncode == 0, rest
    (job,) = set(slurm.jobs()) - before
    assert told == f"slurm job {job} pending for 1 s or longer; slurm's reason: Resources\n"


def test_the_state_of_jobs_is_read_by_sacct_where_there_are_accounts(slurm_with_accounts, fresh, first_run):
    copy_tree(first_run[0].folder / "cache", fresh.folder / "cache")
    run = start(fresh, slurm_with_accounts, "all", status="sacct")
    _, told = run.communicate(timeout=1500)
    assert run.returncode == 0, told
    listed = slurm_with_accounts.command("sacct", "--allocations", "--noheader", "--parsable2", "--format=JobID,State")
    states = dict(line.split("|") for line in listed.split())
    assert set(states.values()) == {"COMPLETED"}
    assert {read_json(path)["cluster_job"] for path in fresh.results.glob("runs/**/*.json")} <= set(states)
    assert files(fresh, RUNS) == files(first_run[0], RUNS)


def test_on_cuda_a_training_job_asks_for_a_gpu_and_a_node_without_one_is_named(slurm, checkout):
    before = set(slurm.jobs())
    out = "results/smoke/runs/toy/line/toy/0-1.parquet"
    (checkout.folder / out).unlink()
    run = start(checkout, slurm, "--retries", "0", out, config=("device=cuda",))
    _, told = run.communicate(timeout=1500)
    (record,) = [record for job, record in slurm.jobs().items() if job not in before]
    assert record["TresPerJob"] == "gres:gpu:1"
    if run.returncode:
        assert "error: device: 'cuda' was asked for, but torch sees none" in told
        (failure,) = read_json(checkout.results / "failures.json")
        assert failure["job"] == "train toy on toy/line, seeds 0-1"
        assert failure["log_tail"][-1].startswith("error: device: 'cuda' was asked for")


def test_another_scheduler_is_a_submit_command(checkout):
    """Here a shell that runs the job at once."""
    (checkout.results / "ledger.csv").unlink()
    submit = checkout.folder / "submit"
    submit.write_text('#!/bin/sh\nsh "$3" >submitted.log 2>&1 && echo "$1 $2" >>submitted.txt && echo job-1\n')
    submit.chmod(0o755)
    command = [sys.executable, "-m", "snakemake", "--profile", "workflow/profiles/generic", "--latency-wait", "5"]
    command += ["--seconds-between-status-checks", "1"]
    asked = f"{submit} {{resources.mem_mb}} {{resources.gpu}}"
    done = subprocess.run(
        [*command, "--cluster-generic-submit-cmd", asked, "--config", "scale=smoke", "--", "results/smoke/ledger.csv"],
        cwd=checkout.folder,
        env=checkout.environment(),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert (checkout.results / "ledger.csv").exists()
    assert (checkout.folder / "submitted.txt").read_text() == "1000 0\n"


def test_every_profile_agrees_on_what_a_change_is_and_shows_the_same_progress():
    root = Path(__file__).parents[2] / "workflow" / "profiles"
    profiles = {path.parent.name: read_yaml(path) for path in root.glob("*/config.yaml")}
    assert set(profiles) == {"local", "slurm", "generic"}
    for key in ("rerun-triggers", "logger", "keep-going", "rerun-incomplete", "quiet"):
        assert len({str(profile[key]) for profile in profiles.values()}) == 1, key
