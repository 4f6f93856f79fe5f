"""`fedrepro show STUDY/CLAIM --config`: what a claim comes to, each value with its place."""

from __future__ import annotations

import pytest
import yaml

from fedrepro.commands import cli, command
from fedrepro.evidence.claim_files import load_claims
from tests.configs import write_config, write_yaml

CLAIMS = """\
defaults: {origin: paper, measured_on: synthetic}
claims:
  "{method}_small":
    for_each: {method: {fedavg: {name: FedAvg}, fedpd: {name: FedPD}}}
    source: §1
    statement: "{name} is small."
    kind: threshold
    ours: {experiment: line, algorithm: "{method}", metric: loss}
    at_most: 0.5
    readings:
      at first: {ours: {round: first}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_config(tmp_path)
    write_yaml(tmp_path / "config" / "studies" / "toy" / "claims.yaml", CLAIMS)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "WORK", tmp_path)
    monkeypatch.setattr(command, "CONFIG", tmp_path / "config")
    return tmp_path / "config" / "studies" / "toy"


def test_a_claim_is_shown_with_the_place_of_each_value(capsys, folder):
    assert cli.main(["show", "toy/fedpd_small", "--config"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line.rsplit("  ", 1) if ".yaml" in line else [line] for line in lines]
    content = yaml.safe_load("\n".join(row[0] for row in rows))
    claim = load_claims(folder / "claims.yaml").claims["fedpd_small"]
    assert content == {**claim.spec, "readings": {"at first": {"ours": {"round": "first"}}}}
    places = {row[0].strip(): row[1] for row in rows if len(row) == 2}
    file = "config/studies/toy/claims.yaml"
    assert places["at_most: 0.5"] == f"{file}:9"
    assert places["origin: paper"] == f"{file}:1"
    assert places["algorithm: fedpd"] == f"{file}:4"


def test_an_unknown_name_is_an_error_with_the_nearest(capsys, folder):
    assert cli.main(["show", "toy/fedpd_smal", "--config"]) == 1
    assert "'toy/fedpd_smal' is no experiment and no claim; did you mean 'fedpd_small'?" in capsys.readouterr().err
