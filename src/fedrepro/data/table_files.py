"""Shared by the readers of tables: complete rows of numbers, and a choice of targets. Errors name line and column."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedrepro.errors import UserError


def read_cells(path: Path, columns: Sequence[str], *, delimiter: str | None = None) -> list[list[str]]:
    """The rows of a text table: with a delimiter below a header that names the columns, else separated by blanks."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise UserError(f"{path}: not a text file") from None
    rows = [line.split() for line in lines] if delimiter is None else list(csv.reader(lines, delimiter=delimiter))
    if delimiter is not None:
        _expect_header(path, rows.pop(0) if rows else [], columns)
    for line, row in enumerate(rows, start=1 if delimiter is None else 2):
        if len(row) != len(columns):
            raise UserError(f"{path}: line {line} has {len(row)} cells, not {len(columns)}")
    return rows


def _expect_header(path: Path, header: list[str], columns: Sequence[str]) -> None:
    lacking = [name for name in columns if name not in header]
    strange = [name for name in header if name not in columns]
    said = [f"{what} column {', '.join(names)}" for what, names in (("no", lacking), ("unknown", strange)) if names]
    if said:
        raise UserError(f"{path}: {'; '.join(said)}")
    if header != list(columns):
        raise UserError(f"{path}: its columns are not in the order {', '.join(columns[:3])}, …")


def as_numbers(path: Path, rows: Sequence[Sequence[str]], columns: Sequence[str], *, first_line: int) -> np.ndarray:
    """Cells as finite numbers [rows, columns]."""
    try:
        table = np.array(rows, dtype=np.float64).reshape(len(rows), len(columns))
    except ValueError:
        table = np.array([[_number(cell) for cell in row] for row in rows])
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0]
        where = f"{path}: line {row + first_line}, column {columns[column]}"
        raise UserError(f"{where}: '{rows[row][column]}' is not a finite number")
    return table


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return float("nan")


def expect_rows(path: Path, rows: int, expected: int) -> None:
    if rows != expected:
        raise UserError(f"{path}: {rows} rows, not {expected}{' (cut off?)' if rows < expected else ''}")


def pick(name: str, what: str, asked: int | Sequence[int] | None, count: int) -> np.ndarray:
    """Indices (from 0) of the requested targets (numbers 1 … count); None: all of them."""
    numbers = np.arange(1, count + 1) if asked is None else np.atleast_1d(np.asarray(asked))
    whole = numbers.ndim == 1 and np.issubdtype(numbers.dtype, np.integer)
    if not whole or not len(numbers) or not set(numbers.tolist()) <= set(range(1, count + 1)):
        raise UserError(f"{name}: {what} = {asked}: must be whole numbers from 1 to {count}")
    if len(np.unique(numbers)) != len(numbers):
        raise UserError(f"{name}: {what} = {asked}: one is named twice")
    return numbers - 1


def targets(columns: np.ndarray) -> np.ndarray:
    """y in the shape of all data sets: [n] for one target, [n, outputs] for several."""
    return columns[:, 0] if columns.shape[1] == 1 else columns
