"""FEMNIST-3-groups."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fedrepro.errors import UserError
from fedrepro.studies.gifair.partitions.three_groups import three_groups
from tests.unit.data.partitions.builders import all_rows, counts, held, labelled, rng, sizes_of


def test_the_table_of_the_thesis():
    data = labelled([5000] * 62)
    found = three_groups(data, rng())
    by_group = Counter(zip(found.groups, sizes_of(found), strict=True))
    assert by_group == {("capital", 800): 60, ("lowercase", 1000): 100, ("mixed", 600): 40}
    rows = all_rows(found)
    assert len(rows) == len(set(rows)) == 48_000 + 100_000 + 24_000


def test_each_group_writes_its_letters_and_digits():
    data = labelled([400] * 10 + [200] * 26 + [100] * 26, test=2)
    found = three_groups(data, rng(), clients=10, samples=86)
    assert found.groups == ["capital"] * 3 + ["lowercase"] * 5 + ["mixed"] * 2
    assert sizes_of(found) == [80] * 3 + [100] * 5 + [60] * 2
    assert held(found, "test") == [[0, 1]]
    table = counts(data, found)
    kinds = np.stack([table[:, :10].sum(1), table[:, 10:36].sum(1), table[:, 36:].sum(1)], axis=1)
    totals = [kinds[np.array(found.groups) == g].sum(axis=0).tolist() for g in ("capital", "lowercase", "mixed")]
    # the pool has 4,000 digits, 5,200 capitals, 2,600 small letters
    assert totals == [[104, 136, 0], [303, 0, 197], [41, 53, 26]]


def test_a_share_of_digits_holds_in_every_group():
    data = labelled([400] * 10 + [200] * 26 + [100] * 26)
    found = three_groups(data, rng(), clients=10, samples=86, digits=0.25)
    table = counts(data, found)
    kinds = np.stack([table[:, :10].sum(1), table[:, 10:36].sum(1), table[:, 36:].sum(1)], axis=1)
    totals = [kinds[np.array(found.groups) == g].sum(axis=0).tolist() for g in ("capital", "lowercase", "mixed")]
    # of 240, 500 and 120; the other letters of the last as 2 : 1
    assert totals == [[60, 180, 0], [125, 0, 375], [30, 60, 30]]


def test_every_device_of_a_group_has_its_mix_and_images_are_random():
    data = labelled([400] * 62)
    one, other = (three_groups(data, rng(s), clients=10, samples=860) for s in (0, 1))
    digits = counts(data, one)[:, :10].sum(axis=1) / np.array(sizes_of(one))
    assert np.abs(digits[:8] - 10 / 36).max() < 0.08  # 5 standard deviations
    assert np.abs(digits[8:] - 10 / 62).max() < 0.08
    assert all_rows(one) != all_rows(other)


@pytest.mark.parametrize(
    ("sizes", "options", "message"),
    [
        ([9] * 10, {}, r"^three_groups: needs the 62 digits and letters of EMNIST; this data has 10$"),
        ([9] * 61 + [0], {"clients": 10, "samples": 9}, "class 61 has no training samples$"),
        ([9] * 62, {"clients": 10}, r"samples = 860: too few digits for 10 clients \(capital\)$"),
        ([90] * 62, {"clients": 10, "samples": 560}, r"samples = 560: too few digits for 10 clients \(lowercase\)$"),
        ([9] * 62, {"clients": 10, "samples": 9, "digits": 1.0}, "digits = 1.0: must lie between 0 and 1$"),
        ([9] * 62, {"clients": 559}, "clients = 559: there are only 558 training samples$"),
        ([9] * 62, {"clients": 2, "samples": 9}, "2 clients of 9 samples leave a group without any$"),
        ([9] * 62, {"clients": 20, "samples": 0}, "20 clients of 0 samples leave a group without any$"),
    ],
)
def test_impossible_requests_are_refused(sizes, options, message):
    with pytest.raises(UserError, match=message):
        three_groups(labelled(sizes), rng(), **options)
