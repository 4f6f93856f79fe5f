"""Judging and drawing start without the simulator."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "left_out"),
    [
        ("evidence.claim_files", {"pandas", "torch"}),
        ("evidence.ledger", {"torch", "fedrepro.core.rounds"}),
        ("evidence.tables", {"torch", "fedrepro.core.rounds"}),
        ("evidence.provenance", {"torch", "fedrepro.core.rounds"}),
        ("report.page", {"torch", "fedrepro.core.rounds"}),
        ("report.rendering", {"torch", "fedrepro.core.rounds"}),
        ("report.notebook", {"torch", "fedrepro.core.rounds"}),
    ],
)
def test_the_simulator_is_not_imported(module, left_out):
    code = f"import sys, fedrepro.{module}; print(*(set(sys.modules) & {left_out!r}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
