"""`python -m tests.covered LEAST`: the shares of lines and branches in .coverage; fails below LEAST per cent of lines.

Coverage's own limit is on lines and branches together.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from coverage import Coverage


def shares(totals: Mapping[str, float]) -> tuple[float, float]:
    """Per cent of the lines and of the branches; of none, all are reached."""
    parts = (("covered_lines", "num_statements"), ("covered_branches", "num_branches"))
    lines, branches = (100 * totals[done] / totals[all_] if totals[all_] else 100.0 for done, all_ in parts)
    return lines, branches


def main(least: float) -> str | None:
    """The error, if too few lines were reached."""
    measured = Coverage()
    measured.load()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "coverage.json")
        measured.json_report(outfile=str(path))
        lines, branches = shares(json.loads(path.read_text(encoding="utf-8"))["totals"])
    sys.stdout.write(f"covered: {lines:.1f} % of the lines, {branches:.1f} % of the branches\n")
    return f"error: fewer than {least:g} % of the lines are covered" if lines < least else None


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1])))
