"""Values as the pages show them."""

from __future__ import annotations

import pytest

from fedrepro.report import formats


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0.80", "0.80"),
        ("0.123456789", "0.1235"),
        ("1234567.8", "1,234,568"),
        ("1.23456789e-9", "1.235e-09"),
        ("nan", ""),
        ("inf", "inf"),
        ("FedAvg < DFL", "FedAvg < DFL"),
    ],
)
def test_short_number(text, shown):
    assert formats.short_number(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"), [("0.0312345", "0.031"), ("1.0", "1"), ("3e-9", "< 0.0001"), ("nan", ""), ("", "")]
)
def test_p_values(text, shown):
    assert formats.p_text(text) == shown


def test_short_numbers_share_their_decimals():
    assert formats.short_numbers(["0.0049464", "0.014691234", "", "0.02"]) == [
        "0.00495",
        "0.01469",
        "",
        "0.02000",
    ]
    assert formats.short_numbers(["0.80", "0.9"]) == ["0.80", "0.9"]
    assert formats.short_numbers(["1e-09", "123456789.0"]) == ["1e-09", "123,456,789"]
    assert formats.short_numbers(["FedAvg", "0.123456789"]) == ["FedAvg", "0.1235"]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.44, "0.4 s"), (59.4, "59 s"), (200, "3 min 20 s"), (7500, "2 h 05 min"), (None, "–")],
)
def test_duration(seconds, shown):
    assert formats.duration(seconds) == shown


def test_natural_order():
    assert sorted(["fig10", "fig2", "table1", "fig2_3"], key=formats.natural) == [
        "fig2",
        "fig2_3",
        "fig10",
        "table1",
    ]
