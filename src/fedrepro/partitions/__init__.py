"""Splitting schemes, one a file: who holds what. To add one: write the file, add a line here, and a test.

A scheme is a pure function of a data set and a random stream and returns, for each split, the rows of every
client. `inside` then cuts each client's own samples where an experiment asks for it.
"""

from collections.abc import Callable

from fedrepro.partitions.base import Assignment
from fedrepro.partitions.by_client import by_client
from fedrepro.partitions.inside import INSIDE

PARTITIONS: dict[str, Callable[..., Assignment]] = {
    "by_client": by_client,
}

__all__ = ["INSIDE", "PARTITIONS", "Assignment"]
