"""Data sets, one a file. To add one: write the file, add a line here, and one to config/datasets.yaml if it is
not synthetic by definition.

A data set is a function of a `Source` (where real files are, and a random stream) and its own parameters, and
returns a `Dataset`. No module here imports torch when it is imported.
"""

from fedrepro.datasets.base import Dataset, Entry, Source, Split
from fedrepro.datasets.dfl_line import dfl_line, dfl_line_size

DATASETS: dict[str, Entry] = {
    "dfl_line": Entry(dfl_line, seeded=True, size=dfl_line_size),
}

__all__ = ["DATASETS", "Dataset", "Entry", "Source", "Split"]
