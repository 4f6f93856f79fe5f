"""Python's first import in a job of a local run (see fedrepro.workflow.warm)."""

import sys

from fedrepro.workflow.warm import hand_over, script_of

if script := script_of(sys.orig_argv):
    hand_over(script)
