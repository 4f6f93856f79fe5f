"""Needs config/. Makes LAYOUT: the checked config, all paths, and which files a job needs."""

import sys

from fedrepro.errors import UserError
from fedrepro.layout import Layout

try:
    LAYOUT = Layout(config)
except UserError as error:
    sys.exit(f"error: {error}")


wildcard_constraints:
    study="[a-z]+",
    experiment="[a-z][a-z0-9_]*",
    algorithm="[a-z][a-z0-9_]*",
    artefact="[a-z][A-Za-z0-9_]*",
    dataset="[a-z0-9_]+-[0-9a-f]{8}",
    partition="[a-z0-9_]+-[0-9a-f]{8}",
    shard=r"all|\d+-\d+",
