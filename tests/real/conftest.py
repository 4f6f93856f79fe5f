"""Tests on real data: the folder that FEDREPRO_TEST_DATA or DATA_DIR names, or ../shared/datasets.

Without it these tests are skipped, with a message.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedrepro.core import parts
from fedrepro.data.catalogue import Source
from fedrepro.data.dataset import Dataset
from fedrepro.files import ROOT

_CANDIDATES = [os.environ.get("FEDREPRO_TEST_DATA"), os.environ.get("DATA_DIR"), ROOT.parent / "shared" / "datasets"]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    for folder in filter(None, _CANDIDATES):
        if Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no real data: set DATA_DIR to a folder that holds it")


@pytest.fixture(scope="session")
def real(data_dir: Path):
    """real("mnist", **parameters): the data set read from its real files; skipped, with its name, without them."""
    from fedrepro.data.catalogue import present

    def load(name: str, **parameters) -> Dataset:
        entry = parts.dataset(name)
        if entry.files and present(entry.files, [data_dir]) is None:
            pytest.skip(f"the real files of {name} are not in the data folder")
        return entry.load(Source(np.random.default_rng(0), "real", (data_dir,)), **parameters)

    return load
