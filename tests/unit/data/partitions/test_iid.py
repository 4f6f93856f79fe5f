"""iid: samples are dealt at random, in parts of equal size."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.data.partitions.iid import iid
from fedrepro.errors import UserError
from tests.unit.data.partitions.builders import all_rows, counts, held, labelled, measured, rng, sizes_of


def test_iid_deals_all_of_it_and_keeps_the_test_set_global():
    found = iid(measured(10, test=3), rng(), clients=3)
    assert sizes_of(found) == [4, 3, 3]
    assert all_rows(found) == list(range(10))
    assert held(found, "test") == [[0, 1, 2]]


def test_iid_clients_have_the_classes_alike():
    data = labelled([2000, 4000])
    assert np.abs(counts(data, iid(data, rng(), clients=4)) - [500, 1000]).max() < 75  # 4 standard deviations


def test_a_client_gets_samples_from_everywhere_and_others_with_another_seed():
    """The mean row of 500 of 0 … 999 has a standard deviation of about 9."""
    one, other = (iid(measured(1000), rng(s), clients=2).rows["train"][0] for s in (0, 1))
    assert np.mean(one) == pytest.approx(499.5, abs=40)
    assert np.mean(other) == pytest.approx(499.5, abs=40)
    assert set(one) != set(other)


@pytest.mark.parametrize(
    ("clients", "message"),
    [(11, r"^iid: clients = 11: there are only 10 training samples$"), (0, r"^iid: clients = 0: must be at least 1$")],
)
def test_what_cannot_be_dealt_is_refused(clients, message):
    with pytest.raises(UserError, match=message):
        iid(measured(10, test=3), rng(), clients=clients)
