"""equal_devices: every device has the same number of samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.errors import UserError
from fedrepro.studies.fgpr.partitions.equal_devices import equal_devices
from tests.unit.data.partitions.builders import all_rows, data_sets, disjoint, measured, possible, rng, seeds, sizes_of


def test_devices_of_sarcos():
    """44,484 and 4,449 samples on 25 devices: 1,779 and 177 each, 9 and 24 left over."""
    found = equal_devices(measured(44_484, test=4_449), rng(), clients=25)
    assert sizes_of(found) == [1779] * 25
    assert sizes_of(found, "test") == [177] * 25
    for name, total in (("train", 44_484 - 9), ("test", 4_449 - 24)):
        assert len(set(all_rows(found, name))) == total
    assert found.of == {}


def test_devices_may_have_fewer_samples():
    found = equal_devices(measured(100, test=10), rng(), clients=4, at_most=7)
    assert (sizes_of(found), sizes_of(found, "test")) == ([7] * 4, [2] * 4)


def test_a_client_gets_samples_from_everywhere_and_others_with_another_seed():
    """The mean row of 500 of 0 … 999 has a standard deviation of about 9."""
    data = measured(1000, test=1000)
    firsts = [equal_devices(data, rng(s), clients=2).rows for s in (0, 1)]
    for name in ("train", "test"):
        one, other = (rows[name][0] for rows in firsts)
        assert np.mean(one) == pytest.approx(499.5, abs=40)
        assert set(one) != set(other)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"clients": 11}, r"^equal_devices: clients = 11: there are only 10 training samples$"),
        ({"clients": 4}, r"^equal_devices: clients = 4: there are only 3 test samples$"),
    ],
)
def test_what_cannot_be_dealt_is_refused(options, message):
    with pytest.raises(UserError, match=message):
        equal_devices(measured(10, test=3), rng(), **options)


def test_devices_hold_at_most_so_many():
    data = measured(100, test=10)
    assert sizes_of(equal_devices(data, rng(), clients=4, at_most=7)) == [7] * 4
    assert sizes_of(equal_devices(data, rng(), clients=4, at_most=99)) == [25] * 4
    assert sizes_of(equal_devices(data, rng(), clients=4, at_most=7), "test") == [2] * 4


@given(data_sets, st.integers(1, 12), seeds)
def test_any_data_is_dealt_in_equal_parts(data, clients, seed):
    found = possible(equal_devices, data, seed, clients=clients)
    assert (found is None) == (clients > len(data.train))
    if found:
        assert disjoint(all_rows(found), len(data.train))
        assert sizes_of(found) == [len(data.train) // clients] * clients
