"""Config files with values replaced, removed and added, and what the workflow says about them before any job starts."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from fedrepro.commands import plan
from fedrepro.errors import UserError
from fedrepro.workflow.layout import Layout
from tests.configs import EXPERIMENT, STUDY

LONGEST_LINE = 500  # characters, with `error: ` in front
HANGS = 5.0  # seconds of the processor: a mutation that takes longer counts as a hang, however busy the machine is
NASTY = [
    *("", " ", "a b", "a;touch broken", "$(touch broken)", "`touch broken`", "a'b", 'a"b', "a\nb", "a\n", "\t", "é"),
    *("数据", "../up", "..", "/etc/passwd", "~", "{study}", "{{}}", "%s", "\x1b[31m", "-rf", "--help", "null", "nan"),
    "x" * 5000,
]
KEYS = ["name", "lr", "grid", "variants", "method", "extends", "for_each", "without", "algorithms", "inside", "rounds"]
huge = st.sampled_from([2**31, 2**63, 10**30, -(10**30), 10**400, 1e308])
numbers = st.one_of(st.integers(-3, 3), huge, st.floats(allow_nan=True, allow_infinity=True))
words = st.sampled_from(["all", "line", "fedavg", "fedpd", "linear", "smoke", "paper", "{x}", *KEYS])
scalars = st.one_of(st.none(), st.booleans(), numbers, st.sampled_from(NASTY), words, st.text(max_size=12))
many_values = st.sampled_from([60, 2000]).map(lambda size: list(range(size)))
values = st.recursive(
    scalars | many_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NASTY, *KEYS]), inner, max_size=3),
    max_leaves=6,
)


def paths(tree: Any, at: tuple = ()) -> list[tuple]:
    """The path to every value of a tree of dicts and lists."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [way for key, value in inside for way in ((*at, key), *paths(value, (*at, key)))]


@st.composite
def disturbed(draw, tree: dict[str, Any]) -> dict[str, Any]:
    """The tree with one to three values replaced, removed, or moved to a new key."""
    tree = yaml.safe_load(yaml.safe_dump(tree))
    for _ in range(draw(st.integers(1, 3))):
        ways = paths(tree)
        if not ways:
            break
        *parents, last = draw(st.sampled_from(ways))
        target = tree
        for key in parents:
            target = target[key]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "replace":
                target[last] = draw(values)
            case "remove":
                del target[last]
            case "add" if isinstance(target, dict):
                target[draw(st.sampled_from([*NASTY, *KEYS]) | st.text(max_size=8))] = draw(values)
    return tree


@contextlib.contextmanager
def no_hang(wall: bool = False) -> Iterator[None]:
    """TimeoutError once the block has used HANGS seconds of the processor; of the clock, ten times as many, if it may
    wait for something."""

    def stop(*_: object) -> None:
        raise TimeoutError("it hangs")

    timer, number = (signal.ITIMER_REAL, signal.SIGALRM) if wall else (signal.ITIMER_PROF, signal.SIGPROF)
    before = signal.signal(number, stop)
    signal.setitimer(timer, 10 * HANGS if wall else HANGS)
    try:
        yield
    finally:
        signal.setitimer(timer, 0)
        signal.signal(number, before)


def settled(folder: Path, config: dict[str, Any]) -> str | None:
    """The error message, or None if the config is accepted; then everything short of running a job must work, too."""
    told, before = None, Path.cwd()
    os.chdir(folder)
    try:
        with no_hang():
            layout = Layout({**config, "config": "config"})
            for e in layout.experiments.values():
                assert len(e.shards()) <= 100_000
                assert all(e.job_sha256(algorithm) for algorithm in e.spec["algorithms"])
            layout.targets()
            plan.describe(layout, cores=2)
    except UserError as error:
        told = str(error)
    finally:
        os.chdir(before)
    written = {path.relative_to(folder).parts[0] for path in folder.rglob("*") if path.is_file()}
    assert written <= {"config", ".snakemake"}
    assert not re.search(r"[\x00-\x1f\x7f]", told or "")  # one line without control characters
    assert len(f"error: {told}") <= LONGEST_LINE
    return told


VARIANTS = {
    "fedavg": {"lr": 0.1, "variants": {"a": {"decay": 0.9}, "b": {"grid": {"lr": [0.1, 0.2]}}}},
    "fedpd": {"lr": 0.1, "variants": {"a": {"gamma": 0.5, "start": "own"}, "b": {"method": "fedavg"}}},
    "swept": {"method": "fedavg", "grid": {"lr": [0.1, 0.2], "decay": [0.9, 1.0]}},
}
OVERRIDES = {
    "rounds": 3,
    "dataset": {"samples": 4},
    "algorithms": {
        "fedavg": {"lr": 0.2, "variants": {"a": {"decay": 1.0}, "b": {"grid": {"lr": [0.3]}}}},
        "swept": {"grid": {"lr": [0.5], "decay": [1.0]}},
    },
}
CLAIMS = {
    "defaults": {"origin": "paper", "measured_on": "synthetic"},
    "shared": {"low": {"kind": "threshold", "at_most": 1.0}},
    "axes": {"arm": {"fedavg": {"label": "FedAvg"}, "fedpd": {"label": "FedPD", "note": "with its own start"}}},
    "claims": {
        "sum": {"source": "§1", "statement": "Two.", "kind": "consistency", "expression": "a + a", "origin": "printed"}
        | {"numbers": {"a": 1}, "stated": 2, "tolerance": {"absolute": 0}},
        "{arm}_low": {"extends": "low", "for_each": {"arm": "arm"}, "source": "§2", "statement": "{label} is low."}
        | {"ours": {"experiment": "line", "algorithm": "{arm}", "metric": "loss"}, "needs": {"rounds": "reach"}}
        | {"only_for": {"fedpd_low": {"at_most": 2.0}}, "readings": {"best": {"ours": {"reduce": "min"}}}},
    },
}
HEADLINE = {"quote": "low", "place": "Abstract", "says": "It is low.", "claims": ["*_low"], "rule": "all"}
#: what is mutated: a file of the study `toy`, and its content
MUTATED: dict[str, tuple[str, dict[str, Any]]] = {
    "experiment": ("experiments/line.yaml", EXPERIMENT),
    "variants": ("experiments/line.yaml", {**EXPERIMENT, "algorithms": VARIANTS}),
    "overrides": (
        "experiments/line.yaml",
        {**EXPERIMENT, "algorithms": VARIANTS, "scales": {"demo": {}, "smoke": OVERRIDES}},
    ),
    "study": ("study.yaml", {**STUDY, "order": 1, "headlines": {"low": HEADLINE}, "main": "low"}),
    "claims": ("claims.yaml", CLAIMS),
}
