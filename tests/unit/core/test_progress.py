"""The progress line: its text and its interval."""

from __future__ import annotations

import io

import pytest

from fedrepro.core import progress as module
from fedrepro.core.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    """A clock set by the test."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_line_says_where_we_are_and_what_is_left(clock):
    out = io.StringIO()
    progress = Progress(160, every=3.0, stream=out)
    for done in range(1, 41):
        clock[0] += 0.25
        progress.say(done, "loss 0.12")
    # one line after every 3 s: at rounds 12, 24 and 36
    assert out.getvalue().splitlines() == [
        "round 12/160 · 8% · 3.0 s, 37.0 s left · loss 0.12",
        "round 24/160 · 15% · 6.0 s, 34.0 s left · loss 0.12",
        "round 36/160 · 22% · 9.0 s, 31.0 s left · loss 0.12",
    ]


def test_the_last_round_is_always_said(clock):
    out = io.StringIO()
    progress = Progress(2, every=60.0, stream=out)
    progress.say(1)
    clock[0] += 0.5
    progress.say(2)
    assert out.getvalue() == "round 2/2 · 100% · 0.5 s, 0.0 s left\n"


def test_a_resumed_run_counts_only_its_own_rounds(clock):
    out = io.StringIO()
    progress = Progress(100, every=1.0, stream=out)
    clock[0] += 2.0
    progress.say(91)  # one round in 2 s, nine to go
    assert "2.0 s, 18.0 s left" in out.getvalue()


def test_a_line_of_its_own(clock):
    out = io.StringIO()
    Progress(1, stream=out).line("strategy loop")
    assert out.getvalue() == "strategy loop\n"
