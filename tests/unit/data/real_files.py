"""Files in the place of real ones, so that readers can be tested without these."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

from fedrepro.data import catalogue
from fedrepro.data.source import Source


def unverified(monkeypatch: pytest.MonkeyPatch, name: str, folder: Path) -> Source:
    """A source that takes the files of one data set below `folder` for real, whatever they hold."""
    entries = copy.deepcopy(catalogue.catalogue())
    for layout in entries[name]["layouts"].values():
        for file in layout["files"]:
            for check in ("bytes", "md5", "sha256"):
                file.pop(check, None)
    monkeypatch.setattr(catalogue, "catalogue", lambda: entries)
    return Source(np.random.default_rng(0), "real", (folder,))
