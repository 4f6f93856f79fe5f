"""What Python does first in a job of a local run (see fedrepro.workflow.warm): hand it over to the process that has imported
everything, before the script's first lines import snakemake."""

import sys

from fedrepro.workflow.warm import hand_over, script_of

if script := script_of(sys.orig_argv):
    hand_over(script)
