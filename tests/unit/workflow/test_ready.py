"""What stops a run before its first job."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pytest

from fedrepro.data import fetch
from fedrepro.errors import UserError
from fedrepro.files import ROOT
from fedrepro.workflow import ready
from fedrepro.workflow.counts import OTHER_JOBS
from fedrepro.workflow.layout import Layout
from tests.configs import write_config


def test_an_unknown_target_is_an_error_with_the_nearest():
    known = ["all", "toy", "toy/fig1"]
    ready.check_targets(["snakemake", "--", "toy", "results/smoke/ledger.csv"], known, "results/smoke")
    ready.check_targets(["snakemake", "-n"], known, "results/smoke")
    with pytest.raises(UserError, match=r"^there is no study, artefact or rule 'toy/fig2'; did you mean 'toy/fig1'"):
        ready.check_targets(["snakemake", "--", "toy/fig2"], known, "results/smoke")


@pytest.mark.parametrize("device", ["cuda", "mps"])
def test_a_device_that_is_not_here_is_an_error_on_one_machine_only(device, monkeypatch):
    monkeypatch.setattr(ready.sys, "platform", "linux")
    asked = SimpleNamespace(device=device, gpus_listed=False)
    with pytest.raises(UserError, match=f"device: '{device}' was asked for"):
        ready.check_device(asked, local=True)
    ready.check_device(asked, local=False)
    ready.check_device(SimpleNamespace(device="auto", gpus_listed=False), local=True)


def test_real_data_that_cannot_be_had_is_one_error_that_names_all(tmp_path, monkeypatch):
    def refused(name, folders):
        raise UserError(f"data: real, but {name} is not here")

    monkeypatch.setattr(fetch, "fetch_missing", refused)
    layout = SimpleNamespace(data="real", data_folders=[str(tmp_path)])
    with pytest.raises(UserError, match=r"^data: real, but cifar10 is not here \(and mnist\)$"):
        ready.fetch_real(layout, ["mnist", "cifar10", "dfl_line"])
    ready.fetch_real(SimpleNamespace(data="auto", data_folders=[]), ["mnist"])


def test_the_plan_has_the_seconds_of_every_training_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = write_config(tmp_path)
    ready.write_plan("plan.json", json.dumps(config))
    layout = Layout(config)
    jobs = {f"{e.id}/{a}/{shard}" for e in layout.experiments.values() for a, shard in e.jobs()}
    assert set(json.loads((tmp_path / "plan.json").read_text())) == jobs


def test_every_rule_has_its_seconds():
    rules = "".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    assert set(re.findall(r"(?m)^rule (\w+):", rules)) - {"train_algorithm"} == set(OTHER_JOBS) - {"all"}


def test_until_the_plan_is_made_all_training_jobs_of_a_scale_count_the_same():
    training = [SimpleNamespace(study="toy", experiment="line", algorithm=a, shard="0-1") for a in ("fedavg", "local")]
    costs = ready.rough_costs("demo", training)
    assert set(costs) == {"toy/line/fedavg/0-1", "toy/line/local/0-1"}
    assert len(set(costs.values())) == 1
    assert min(costs.values()) > 0
    assert ready.rough_costs("paper", training) == {}
