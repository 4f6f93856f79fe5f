"""The audit says how many packages could be looked up."""

from __future__ import annotations

import pytest

from fedrepro.commands.audit import summary
from fedrepro.errors import UserError

CLEAN = {"name": "a", "version": "1.0", "vulns": []}
SKIPPED = {"name": "b", "skip_reason": "b (2.0) could not be audited"}
WRONG = {"name": "c", "version": "3.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"]}]}


def test_a_clean_audit_counts_the_packages_that_could_be_looked_up():
    told = list(summary({"dependencies": [CLEAN, SKIPPED, SKIPPED]}))
    assert told == ["1 of 3 packages could be looked up, 0 known vulnerabilities"]


def test_an_audit_that_found_nothing_out_is_no_clean_one():
    with pytest.raises(UserError, match="0 of 1 packages could be looked up"):
        list(summary({"dependencies": [SKIPPED]}))


def test_a_vulnerability_is_named_and_an_error():
    lines = summary({"dependencies": [CLEAN, WRONG]})
    assert next(lines) == "c 3.0: PYSEC-1, fixed in 3.1"
    with pytest.raises(UserError, match="2 of 2 packages could be looked up, 1 known vulnerabilities"):
        next(lines)
