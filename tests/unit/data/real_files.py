"""Made-up files in place of real ones, to test readers without real data."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from fedrepro.data import catalogue
from fedrepro.data.catalogue import Source


def unverified(monkeypatch: pytest.MonkeyPatch, name: str, folder: Path) -> Source:
    """A source that uses the files of one data set below `folder` as real ones, unverified."""
    entries = copy.deepcopy(catalogue.catalogue())
    for layout in entries[name]["layouts"].values():
        for file in layout["files"]:
            for check in ("bytes", "md5", "sha256"):
                file.pop(check, None)
    monkeypatch.setattr(catalogue, "catalogue", lambda: entries)
    return Source(np.random.default_rng(0), "real", (folder,))
