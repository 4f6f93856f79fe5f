"""`fedrepro reference`: what it says and how it ends."""

from __future__ import annotations

import pytest

from fedrepro.commands import cli
from fedrepro.report import reference


def test_a_difference_is_told_and_the_command_fails(capsys, monkeypatch):
    monkeypatch.setattr(reference, "check", lambda results: ("1 of 1 claims were compared", ["toy/a: undecided"]))
    assert cli.main(["reference", "check", "results/demo"]) == 1
    told = capsys.readouterr()
    assert told.out == "toy/a: undecided\n1 of 1 claims were compared\n"
    assert told.err == "error: 1 differences from results/reference\n"
    monkeypatch.setattr(reference, "check", lambda results: ("1 of 1 claims were compared", []))
    assert cli.main(["reference", "check", "results/demo"]) == 0
    assert capsys.readouterr().out.endswith("no difference\n")


def test_the_command_says_how_it_is_used(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["reference", "keep", "results/demo"])
    assert "usage: fedrepro reference keep" in capsys.readouterr().err
