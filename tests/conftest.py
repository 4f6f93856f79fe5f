"""Shared by all tests: one thread as in a training job, property tests without a deadline, counted gradients, and real
data where a folder holds it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import settings

from fedrepro.core import parts
from fedrepro.data.catalogue import Source, present
from fedrepro.data.dataset import Dataset
from fedrepro.files import ROOT
from tests.builders import GradientCounter

torch.set_num_threads(1)
settings.register_profile("no clock", deadline=None)  # a slow machine is no failure
settings.load_profile("no clock")
_CANDIDATES = [os.environ.get("FEDREPRO_TEST_DATA"), os.environ.get("DATA_DIR"), ROOT.parent / "shared" / "datasets"]


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    """A test leaves no figure open: the twenty-first would be a warning, in whichever test draws it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """Processes that the test starts end by SIGINT and SIGHUP, also where nohup or a shell's `&` made them ignored."""
    ignored = [number for number in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture
def gradients() -> Iterator[GradientCounter]:
    """Counts gradient evaluations: one per client and step, also where clients are computed together."""
    with GradientCounter() as counter:
        yield counter


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data: FEDREPRO_TEST_DATA, DATA_DIR or ../shared/datasets."""
    for folder in filter(None, _CANDIDATES):
        if Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no real data: set DATA_DIR to a folder that holds it")


@pytest.fixture(scope="session")
def real(data_dir: Path):
    """real("mnist", **parameters): the data set read from its real files. Without them the test is skipped by name."""

    def load(name: str, **parameters) -> Dataset:
        entry = parts.dataset(name)
        if entry.files and present(entry.files, [data_dir]) is None:
            pytest.skip(f"the real files of {name} are not in the data folder")
        return entry.load(Source(np.random.default_rng(0), "real", (data_dir,)), **parameters)

    return load
