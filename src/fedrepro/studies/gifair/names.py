"""Names, order and colours in which the figures and tables show methods and data sets."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from fedrepro.core import parts
from fedrepro.evidence.tables import rows
from fedrepro.report.plotting import COLOURS

#: colours of the thesis' methods, in the order of its tables; other methods follow
THESIS = {
    "fedavg": COLOURS[6],
    "q_ffl": COLOURS[5],
    "term": COLOURS[2],
    "term_group": COLOURS[2],
    "fedmgda_plus": COLOURS[4],
    "afl": COLOURS[7],
    "ditto": COLOURS[3],
    "gifair_global": COLOURS[0],
    "gifair_exact": COLOURS[0],
    "gifair_per": COLOURS[1],
}
#: variants that differ from the method of their name
VARIANTS = {"gifair_exact": "GIFAIR-FL-Global, exact ranks"}
TITLES = {
    "mnist_skewed": "MNIST-skewed",
    "fmnist_skewed": "F-MNIST-skewed",
    "femnist_skewed": "FEMNIST-skewed",
    "femnist_original": "FEMNIST-original",
    "femnist_3_groups": "FEMNIST-3-groups",
    "shakespeare_31": "Shakespeare, 31 roles",
    "shakespeare_2": "Shakespeare, 2 groups",
}
GROUPS = {"femnist_3_groups": ("capital", "lowercase", "mixed"), "shakespeare_2": ("male", "female")}


def name(method: str) -> str:
    """A method's label; a variant that is neither a method nor in VARIANTS goes by its own name."""
    return VARIANTS.get(method) or (parts.label(method) if method in parts.modules("algorithms") else method)


def present(*tables: pd.DataFrame) -> list[str]:
    """The methods with results in one of the tables, in the order in which they are shown."""
    have = dict.fromkeys(method for table in tables for method in rows(table, "chosen_accuracy")["algorithm"].unique())
    return [*(method for method in THESIS if method in have), *(method for method in have if method not in THESIS)]


def colours(methods: Sequence[str]) -> dict[str, str]:
    """Method → colour. Methods beyond the thesis take the colours that are free, and then all colours in turn."""
    found = {method: THESIS[method] for method in methods if method in THESIS}
    free = [colour for colour in COLOURS if colour not in found.values()]
    others = [method for method in methods if method not in THESIS]
    return found | dict(zip(others, itertools.chain(free, itertools.cycle(COLOURS)), strict=False))


def chosen_setting(table: pd.DataFrame, method: str) -> str:
    """The setting that the tuning rule chooses."""
    return str(rows(table, "chosen_accuracy", algorithm=method)["setting"].iloc[0])
