"""What the thesis prints in Tables 2.1 to 2.6, in per cent, as the artefacts want it."""

from __future__ import annotations

from fedrepro.evidence.published import Printed, printed

#: tables of accuracies by group → the groups
GROUPS = {"table2_4": ("capital", "lowercase", "mixed"), "table2_6": ("male", "female")}
#: tables of mean and spread over devices → test samples of a device, where the thesis' numbers settle them: a fifth of
#: 500 images (§2.5.1), of the 226.83 images that a FEMNIST writer has on average (LEAF, Caldas et al. 2018, Table 1),
#: of a role's 29,908 windows
TEST_SAMPLES = {"table2_2": 100.0, "table2_3": 0.2 * 226.83, "table2_5": 0.2 * 29_908}


def sizes() -> dict[str, tuple[int, int]]:
    """Table 2.1: group → (images, devices)."""
    numbers = printed("gifair")
    return {
        group: tuple(int(numbers[f"t2_1_{group}_{what}"].value) for what in ("images", "devices"))
        for group in GROUPS["table2_4"]
    }


def pairs(table: str) -> dict[str, tuple[Printed, Printed]]:
    """Method → (mean accuracy, spread over devices), each with its sd over runs."""
    numbers = printed("gifair")
    return {m: (numbers[f"{at}_mean"], numbers[f"{at}_spread"]) for m, at in _methods(table, "_mean")}


def accuracies(table: str) -> dict[str, tuple[tuple[Printed, ...], float]]:
    """Method → (mean accuracy of each group with its sd over runs, discrepancy)."""
    numbers = printed("gifair")
    return {
        m: (tuple(numbers[f"{at}_{group}"] for group in GROUPS[table]), numbers[f"{at}_discrepancy"].value)
        for m, at in _methods(table, "_discrepancy")
    }


def _methods(table: str, end: str) -> list[tuple[str, str]]:
    """(method, how its ids begin) in the order of the table."""
    start = table.replace("table", "t") + "_"
    starts = [name.removesuffix(end) for name in printed("gifair") if name.startswith(start) and name.endswith(end)]
    return [(at.removeprefix(start), at) for at in starts]
