"""iid and equal_devices: everybody alike."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.partitions.iid import iid
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.partitions.equal_devices import equal_devices
from tests.unit.data.partitions.builders import all_rows, counts, held, labelled, measured, rng, sizes_of


def test_iid_deals_all_of_it_and_keeps_the_test_set_global():
    found = iid(measured(10, test=3), rng(), clients=3)
    assert sizes_of(found) == [4, 3, 3]
    assert all_rows(found) == list(range(10))
    assert held(found, "test") == [[0, 1, 2]]


def test_iid_clients_have_the_classes_alike():
    data = labelled([2000, 4000])
    assert np.abs(counts(data, iid(data, rng(), clients=4)) - [500, 1000]).max() < 75  # 4 standard deviations


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


@pytest.mark.parametrize("make", [iid, equal_devices])
def test_a_client_gets_samples_from_everywhere_and_others_with_another_seed(make):
    """The mean row of 500 of 0 … 999 has a standard deviation of about 9."""
    data = measured(1000, test=1000)
    firsts = [make(data, rng(s), clients=2).rows for s in (0, 1)]
    for name in ("train", "test") if make is equal_devices else ("train",):
        one, other = (rows[name][0] for rows in firsts)
        assert np.mean(one) == pytest.approx(499.5, abs=40)
        assert set(one) != set(other)


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (iid, {"clients": 11}, r"^iid: clients = 11: there are only 10 training samples$"),
        (iid, {"clients": 0}, r"^iid: clients = 0: must be at least 1$"),
        (equal_devices, {"clients": 11}, r"^equal_devices: clients = 11: there are only 10 training samples$"),
        (equal_devices, {"clients": 4}, r"^equal_devices: clients = 4: there are only 3 test samples$"),
    ],
)
def test_what_cannot_be_dealt_is_refused(make, options, message):
    with pytest.raises(UserError, match=message):
        make(measured(10, test=3), rng(), **options)


def test_devices_hold_at_most_so_many():
    data = measured(100, test=10)
    assert sizes_of(equal_devices(data, rng(), clients=4, at_most=7)) == [7] * 4
    assert sizes_of(equal_devices(data, rng(), clients=4, at_most=99)) == [25] * 4
    assert sizes_of(equal_devices(data, rng(), clients=4, at_most=7), "test") == [2] * 4
