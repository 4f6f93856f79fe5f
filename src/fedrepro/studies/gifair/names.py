"""What the pictures and tables of the study gifair share: names, colours, and the chosen setting of a method."""

from __future__ import annotations

import pandas as pd

from fedrepro.evidence.tables import rows
from fedrepro.report.plotting import COLOURS

#: method → (name, colour)
METHODS = {
    "fedavg": ("FedAvg", COLOURS[6]),
    "q_ffl": ("q-FFL", COLOURS[5]),
    "term": ("TERM", COLOURS[2]),
    "term_group": ("TERM-Group", COLOURS[2]),
    "fedmgda_plus": ("FedMGDA+", COLOURS[4]),
    "afl": ("AFL", COLOURS[7]),
    "ditto": ("Ditto", COLOURS[3]),
    "gifair_global": ("GIFAIR-FL-Global", COLOURS[0]),
    "gifair_exact": ("GIFAIR-FL-Global, exact ranks", COLOURS[0]),
    "gifair_per": ("GIFAIR-FL-Per", COLOURS[1]),
}
TITLES = {
    "mnist_skewed": "MNIST-skewed",
    "fmnist_skewed": "F-MNIST-skewed",
    "femnist_skewed": "FEMNIST-skewed",
    "femnist_original": "FEMNIST-original",
    "femnist_3_groups": "FEMNIST-3-groups",
    "shakespeare_31": "Shakespeare, 31 roles",
    "shakespeare_2": "Shakespeare, 2 groups",
}


def rows_of(table: pd.DataFrame, method: str, setting: str) -> pd.DataFrame:
    """The derived rows of one setting of one method."""
    keep = (table["algorithm"] == method) & (table["setting"] == setting) & (table["split"] == "derived")
    return table[keep]


def present(table: pd.DataFrame) -> list[str]:
    """The methods that a table has results of, in the order in which they are shown."""
    have = set(rows(table, "chosen_accuracy")["algorithm"])
    return [method for method in METHODS if method in have]


def chosen_setting(table: pd.DataFrame, method: str) -> str:
    return str(rows(table, "chosen_accuracy", algorithm=method)["setting"].iloc[0])


def sent_bytes(table: pd.DataFrame, method: str, way: str) -> int:
    return int(rows(table, way, algorithm=method, split="derived")["value"].mean())


def percent(values: pd.Series) -> str:
    """`79.2 ± 1.0`: mean and standard deviation over seeds."""
    if values.empty:
        return ""
    spread = f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else ""
    return f"{values.mean():.1f}{spread}"


def short_name(method: str) -> str:
    return METHODS[method][0].replace("GIFAIR-FL-", "")
