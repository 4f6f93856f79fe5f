"""The order of training jobs, by hand."""

from __future__ import annotations

from types import SimpleNamespace

from fedrepro.workflow.counts import samples_read
from fedrepro.workflow.layout import Layout
from fedrepro.workflow.priorities import priorities
from tests.configs import EXPERIMENT, experiment, write_config, write_yaml
from tests.unit.commands.test_cli import CLAIM

HEADLINE = {"quote": "they agree", "place": "Abstract", "says": "They agree.", "claims": ["agree"], "rule": "all"}


def test_samples_read_by_hand():
    # 3 rounds × 4 clients × 5 full batches of 6 samples × 2 algorithms × 2 seeds
    assert samples_read(experiment()) == 3 * 4 * 5 * 6 * 2 * 2
    epochs = {"participation.clients": 2, "local": {"epochs": 3, "batch": 4}}
    assert samples_read(experiment(epochs)) == 3 * 2 * 3 * 6 * 2 * 2


def test_more_headlines_per_hour_come_first():
    cheap, dear, shared, unused = (
        experiment({"rounds": rounds}, scale="paper", name=name)
        for name, rounds in (("cheap", 2), ("dear", 20), ("shared", 2), ("unused", 1))
    )
    # per round: cheap decides 1 headline in 2 rounds, dear 1 + 1/2 in 20, shared half of one in 2
    headlines = [{"toy/cheap"}, {"toy/dear"}, {"toy/dear", "toy/shared"}, {"toy/elsewhere"}, set()]
    found = priorities([unused, dear, shared, cheap], headlines)
    assert found == {"toy/unused": 0, "toy/dear": 1, "toy/shared": 2, "toy/cheap": 3}


def test_a_job_has_the_priority_of_its_experiment(tmp_path, monkeypatch):
    config = write_config(tmp_path)
    folder = tmp_path / "config" / "studies" / "toy"
    write_yaml(folder / "experiments" / "unused.yaml", EXPERIMENT)
    write_yaml(folder / "claims.yaml", {"claims": {"agree": CLAIM}})
    study = {"title": "T", "authors": ["A"], "venue": "V", "link": "https://example.org", "main": "all_agree"}
    write_yaml(folder / "study.yaml", {**study, "headlines": {"all_agree": HEADLINE}})
    monkeypatch.chdir(tmp_path)
    layout = Layout(config)
    found = [layout.priority(SimpleNamespace(study="toy", experiment=name)) for name in ("line", "unused")]
    assert found == [1, 0]
