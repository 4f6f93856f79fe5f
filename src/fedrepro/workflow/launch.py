"""`python -m fedrepro.workflow.launch ARGUMENTS`: snakemake, which a signal stops with one line from the beginning.

Snakemake takes a second to import, and more until it reads the Snakefile, which handles signals from then on. `make`
and `fedrepro` start it here, `fedrepro` with signals held back (`interrupts.held_back`) until they are handled.
`snakemake` itself ends with Python's traceback if SIGINT comes that early.
"""

import sys

from fedrepro.workflow import interrupts


def main() -> None:
    interrupts.end_with_one_line(None)
    from snakemake.cli import main as snakemake  # here: this is what takes long

    sys.argv[0] = "snakemake"
    snakemake()


if __name__ == "__main__":
    main()
