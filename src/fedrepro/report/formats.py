"""Values as the page shows them: texts, numbers, durations, labels; and the order of names."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_ROWS = 200  # of any table on the page
DATA_LABELS = {"real": "real data", "standin": "stand-in data", "synthetic": "synthetic data"}
# column of the ledger → what the p-value is
P_VALUES = {"p": "p", "p_holm": "corrected", "p_flip": "sign flips", "p_printed": "against the print"}


def as_text(value: object) -> str:
    """Any JSON value as one line of text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        value = [f"{key}={as_text(item)}" for key, item in value.items()]
    return ", ".join(map(as_text, value)) if isinstance(value, list) else str(value)


def as_float(value: Any) -> float:
    """The number, or 0.0 for anything but a finite number."""
    try:
        return number if math.isfinite(number := float(value)) else 0.0
    except (TypeError, ValueError):
        return 0.0


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def short_number(text: str) -> str:
    """A long number at four significant digits; a short one and other text unchanged; nothing for nan."""
    text = text.strip()
    value = float(text) if is_number(text) else math.inf
    if len(text) <= 7 or not math.isfinite(value):
        return "" if math.isnan(value) else text
    return f"{value:,.0f}" if 10_000 <= abs(value) < 1e12 else f"{value:.4g}"


def short_numbers(column: list[str]) -> list[str]:
    """The cells of a column; numbers of similar size share their number of decimals."""
    found = (abs(float(cell)) for cell in column if cell and is_number(cell))
    sizes = [size for size in found if 0 < size < math.inf]
    similar = bool(sizes) and max(sizes) < 1000 * min(sizes)
    if not similar or max(map(len, column)) <= 7 or not all(is_number(cell) for cell in column if cell):
        return [short_number(cell) for cell in column]
    decimals = min(12, max(0, 3 - math.floor(math.log10(max(sizes)))))
    return [f"{float(cell):.{decimals}f}" if cell and math.isfinite(float(cell)) else cell for cell in column]


def interval_text(low: str, high: str) -> str:
    """`[1.2, 3.4]`; nothing without ends."""
    low, high = short_number(low), short_number(high)
    return f"[{low or '?'}, {high or '?'}]" if low or high else ""


def p_texts(row: Mapping[str, str]) -> list[tuple[str, str]]:
    """(what it is, its value) of each p-value of a row of the ledger: raw, corrected and the tests beside it."""
    return [(words, text) for key, words in P_VALUES.items() if (text := p_text(row.get(key, "")))]


def p_text(text: str) -> str:
    """A p-value at two significant digits; nothing where there is none."""
    value = float(text) if is_number(text) else math.nan
    if math.isnan(value):
        return ""
    return "< 0.0001" if value < 1e-4 else f"{value:.2g}"


def duration(seconds: object) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 05 min`; a dash where unknown."""
    if seconds is None:
        return "–"
    value = as_float(seconds)
    if value < 10:
        return f"{value:.1f} s"
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def natural(text: str) -> list[tuple[int, str]]:
    """Sort key with fig2 before fig10."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", text) if part]


def data_labels(names: Iterable[object]) -> list[dict[str, str]]:
    """{css, text} of each kind of data; the stand-in first, because a reader must not miss it."""
    kinds = sorted({as_text(name) for name in names} - {""}, key=lambda kind: (kind != "standin", kind))
    return [{"css": kind if kind in DATA_LABELS else "other", "text": DATA_LABELS.get(kind, kind)} for kind in kinds]
