"""`make bench`, studies: run studies/<study>/bench.py of every study that has one."""

import subprocess
import sys

from fedrepro.core import parts
from fedrepro.core.study import load_studies
from fedrepro.files import ROOT


def modules() -> dict[str, str]:
    """Study → its module `bench`."""
    found = {study: parts.study_module(study, "bench") for study in load_studies(ROOT / "config")}
    return {study: module for study, module in found.items() if module}


def main() -> int:
    """Each runs in a process of its own; 1 where one of them fails."""
    codes = [subprocess.run([sys.executable, "-m", module]).returncode for module in modules().values()]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
