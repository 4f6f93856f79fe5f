"""Needs config/. Makes LAYOUT: the checked config, all paths, and the input files of each job.

config/config.yaml is read here, not by `configfile:`, so that errors in it are one line too; --config, or the config of
a workflow that uses this one as a module, overrides it.
"""

import sys
from pathlib import Path

from fedrepro.workflow import interrupts

if workflow.is_main_process:
    interrupts.end_with_one_line(workflow)

from fedrepro.files import ROOT, read_yaml
from fedrepro.errors import UserError
from fedrepro.workflow.layout import Layout

try:
    LAYOUT = Layout({**read_yaml(ROOT / "config" / "config.yaml"), **config})
except UserError as error:
    sys.exit(f"error: {error}")


container: LAYOUT.container


wildcard_constraints:
    study="|".join(LAYOUT.declared),
    ledger="|".join([*LAYOUT.declared, *LAYOUT.artefacts]),
    notebook="|".join([*LAYOUT.declared, "overview"]),
    experiment="[a-z][a-z0-9_]*",
    algorithm="[a-z][a-z0-9_]*",
    artefact="[a-z][A-Za-z0-9_]*",
    dataset="[a-z0-9_]+-[0-9a-f]{8}",
    partition="[a-z0-9_]+-[0-9a-f]{8}",
    shard=r"all|\d+-\d+",
