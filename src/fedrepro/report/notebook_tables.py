"""Tables and pictures as the notebooks show them: words left, numbers right and short, nothing for a missing value."""

import base64
import html
from pathlib import Path
from typing import Any

import pandas as pd

MOST_DIGITS = 4  # significant, of a number


class Table(pd.DataFrame):
    """A data frame that shows itself without row numbers."""

    @property
    def _constructor(self) -> Any:
        return Table

    def _repr_html_(self) -> str:
        return as_html(self)


def as_html(table: pd.DataFrame) -> str:
    """An html table; an index is shown only if it names its rows."""
    if not isinstance(table.index, pd.RangeIndex):
        table = table.reset_index(names=str(table.index.name or ""))
    numeric = [pd.api.types.is_numeric_dtype(table[column]) for column in table]
    heads = "".join(f'<th class="{_side(n)}">{html.escape(str(c))}</th>' for c, n in zip(table, numeric, strict=True))
    rows = "".join(
        f"<tr>{''.join(_cell(value, number) for value, number in zip(row, numeric, strict=True))}</tr>"
        for row in table.itertuples(index=False)
    )
    return f'<div class="wide"><table class="told"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'


def folded(summary: str, content: str) -> str:
    """Content that opens by a click on its summary."""
    return f"<details><summary>{html.escape(summary)}</summary>{content}</details>"


def picture(path: Path, alt: str) -> str:
    """A png file as part of the page, with the words for those who do not see it."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{html.escape(alt, quote=True)}">'


def _cell(value: Any, number: bool) -> str:
    return f'<td class="{_side(number)}">{html.escape(_text(value))}</td>'


def _side(number: bool) -> str:
    return "number" if number else "words"


def _text(value: Any) -> str:
    """A cell's text: a float at four digits, nothing if missing."""
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 10**MOST_DIGITS else f"{value:.{MOST_DIGITS}g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
