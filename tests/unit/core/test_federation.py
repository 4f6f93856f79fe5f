"""Holdings of clients; a client's batches are its own rows, each once per epoch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.core.federation import Batch, Batches, Federation, Holdings, LocalWork, Samples
from tests.builders import federate, holdings


def numbered(sizes, shuffle: int | None = None) -> Holdings:
    """Clients of the given sizes; sample i is the number i. The rows are scattered if `shuffle` is a seed."""
    total = sum(sizes)
    samples = Samples(torch.arange(total, dtype=torch.float64)[:, None], torch.arange(total))
    held = holdings(samples, sizes)
    if shuffle is None:
        return held
    return Holdings(samples, np.random.default_rng(shuffle).permutation(total), held.offsets)


# --- holdings ---------------------------------------------------------------------------------------------------------


def test_holdings_by_hand():
    held = numbered([2, 0, 3])
    assert len(held) == 3
    assert held.sizes.tolist() == [2, 0, 3]
    assert [held.of(k).tolist() for k in range(3)] == [[0, 1], [], [2, 3, 4]]
    batch = held.full_batch(2)
    assert batch.x.tolist() == [[2.0], [3.0], [4.0]]
    assert batch.y.tolist() == [2, 3, 4]
    assert batch.weight is None


def test_splits_are_those_that_hold_anything():
    held, empty = numbered([2, 2]), numbered([0, 0])
    assert [name for name, _ in Federation(held).splits()] == ["train"]
    assert [name for name, _ in Federation(held, validation=empty, test=held).splits()] == ["train", "test"]
    assert len(Federation(held, test=numbered([4]))) == 2


# --- how many steps ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("work", "size", "expected"),
    [
        (LocalWork(epochs=5), 100, (5, 1)),  # full batch: one step per epoch
        (LocalWork(epochs=5, batch=32), 100, (20, 4)),  # ⌈100/32⌉ = 4
        (LocalWork(epochs=1, batch=50), 100, (2, 2)),
        (LocalWork(epochs=3, batch=50), 7, (3, 1)),  # fewer samples than a batch
        (LocalWork(steps=250), 100, (250, 1)),
        (LocalWork(steps=7, batch=50), 100, (7, 2)),
        (LocalWork(epochs=2, batch=40, whole=True), 204, (10, 5)),  # ⌊204/40⌋ = 5
        (LocalWork(epochs=1, batch=40, whole=True), 7, (1, 1)),
        (LocalWork(steps=3, batches=100), 622, (3, 100)),
        (LocalWork(steps=3, batches=100), 30, (3, 30)),  # batches of one sample
        (LocalWork(epochs=2, batches=4), 9, (8, 4)),
    ],
)
def test_steps_by_hand(work, size, expected):
    assert work.steps_for(size) == expected


# --- the batches of a round -------------------------------------------------------------------------------------------


def seen_in(batches: Batches, start: int, stop: int) -> list[int]:
    """The samples that count in steps [start, stop), sorted."""
    found = []
    for batch in list(batches)[start:stop]:
        counts = torch.ones(len(batch.y)) if batch.weight is None else batch.weight
        assert set(counts.tolist()) <= {0.0, 1.0}
        assert torch.equal(batch.x[:, 0].long(), batch.y)  # x and y of the same row
        found += batch.y[counts > 0].tolist()
    return sorted(found)


@given(
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    batch=st.integers(1, 9),
    epochs=st.integers(1, 3),
    seed=st.integers(0, 999),
    data=st.data(),
)
def test_every_epoch_covers_each_of_the_clients_rows_once_and_no_others(sizes, batch, epochs, seed, data):
    held = numbered(sizes, shuffle=seed)
    client = data.draw(st.integers(0, len(sizes) - 1))
    work = LocalWork(epochs=epochs, batch=batch)
    drawn = work.draw(held, [client], 4, np.random.default_rng(seed))[client]
    steps, per_epoch = work.steps_for(sizes[client])
    assert (len(drawn), drawn.round, len(drawn.index)) == (steps, 4, steps)
    for epoch in range(epochs):
        first = epoch * per_epoch
        assert seen_in(drawn, first, first + per_epoch) == sorted(held.of(client).tolist())
        assert {drawn.epoch(t) for t in range(first, first + per_epoch)} == {epoch}


@given(
    size=st.integers(1, 20),
    batch=st.integers(1, 9),
    steps=st.integers(1, 80),
    seed=st.integers(0, 999),
)
def test_a_number_of_steps_goes_through_whole_epochs_and_stops_in_one(size, batch, steps, seed):
    held = numbered([3, size, 3], shuffle=seed)
    drawn = LocalWork(steps=steps, batch=batch).draw(held, [1], 0, np.random.default_rng(seed))[1]
    mine = sorted(held.of(1).tolist())
    per_epoch = -(-size // batch)
    assert len(list(drawn)) == steps
    for first in range(0, steps, per_epoch):
        seen = seen_in(drawn, first, min(first + per_epoch, steps))
        if first + per_epoch <= steps:
            assert seen == mine
        else:
            assert set(seen) < set(mine)
            assert len(seen) == len(set(seen))


def test_only_the_last_batch_of_an_epoch_is_short():
    drawn = LocalWork(epochs=2, batch=3).draw(numbered([5]), [0], 0, np.random.default_rng(0))[0]
    assert drawn.weight.tolist() == [[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 0]]
    assert drawn.weight.dtype == torch.float64


def test_whole_batches_leave_the_rest_of_an_epoch_out():
    drawn = LocalWork(epochs=2, batch=3, whole=True).draw(numbered([8]), [0], 0, np.random.default_rng(0))[0]
    assert drawn.weight is None
    assert tuple(drawn.index.shape) == (4, 3)
    for epoch in (0, 1):
        seen = seen_in(drawn, 2 * epoch, 2 * epoch + 2)
        assert len(set(seen)) == 6
        assert set(seen) < set(range(8))


def test_no_padding_where_none_is_needed():
    for size in (1, 2, 3, 6):
        assert LocalWork(epochs=1, batch=3).draw(numbered([size]), [0], 0, np.random.default_rng(0))[0].weight is None


def test_epochs_are_fresh_permutations():
    drawn = LocalWork(epochs=2, batch=50).draw(numbered([50]), [0], 0, np.random.default_rng(0))[0]
    assert drawn.index[0].tolist() != drawn.index[1].tolist()


def test_a_full_batch_is_repeated():
    whole = federate(([[1.0]], [2.0])).train.full_batch(0)
    assert [batch is whole for batch in Batches(round=0, steps=3, whole=whole)] == [True] * 3


def test_head_takes_the_first_steps():
    drawn = LocalWork(epochs=2, batch=3).draw(numbered([5]), [0], 0, np.random.default_rng(0))[0]
    short = drawn.head(3)
    assert [b.y.tolist() for b in short] == [b.y.tolist() for b in drawn][:3]
    assert len(drawn.head(99)) == len(drawn)


# --- Poisson sampling -------------------------------------------------------------------------------------------------


@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=4),
    batch=st.integers(1, 6),
    steps=st.integers(1, 12),
    seed=st.integers(0, 999),
)
def test_a_poisson_batch_has_different_rows_of_its_client_and_one_width_for_all(sizes, batch, steps, seed):
    held = numbered(sizes, shuffle=seed)
    work = LocalWork(steps=steps, batch=batch, poisson=True)
    drawn = work.draw(held, range(len(sizes)), 2, np.random.default_rng(seed))
    assert len({tuple(b.index.shape) for b in drawn.values()}) == 1
    for k, batches in drawn.items():
        assert len(batches) == steps
        assert batches.size == min(batch, sizes[k])
        for t in range(steps):
            seen = seen_in(batches, t, t + 1)
            assert len(seen) == len(set(seen))
            assert set(seen) <= set(held.of(k).tolist())


@pytest.mark.parametrize("size", [40, 4000])  # the two ways of drawing different rows
def test_in_poisson_sampling_every_sample_joins_every_batch_with_the_same_probability(size):
    work = LocalWork(steps=4000, batch=4, poisson=True)
    drawn = work.draw(numbered([size]), [0], 0, np.random.default_rng(3))[0]
    joined = drawn.index[drawn.weight > 0].numpy()
    counts = drawn.weight.sum(1).numpy()
    assert counts.mean() == pytest.approx(4, abs=0.15)
    assert counts.var() == pytest.approx(4 * (1 - 4 / size), rel=0.1)  # binomial, not fixed
    halves = np.histogram(joined, bins=4, range=(0, size))[0] / len(joined)
    np.testing.assert_allclose(halves, 0.25, atol=0.02)


def test_a_poisson_batch_divides_by_the_size_expected():
    batch = Batch(torch.zeros(3, 1), torch.zeros(3), torch.tensor([1.0, 1.0, 0.0]), size=4.0)
    assert batch.shares().tolist() == [0.25, 0.25, 0.0]
    assert batch._replace(size=None).shares().tolist() == [0.5, 0.5, 0.0]
    assert Batch(torch.zeros(4, 1), torch.zeros(4)).shares() == 0.25


def test_a_client_smaller_than_the_batch_gives_all_it_has():
    drawn = LocalWork(steps=3, batch=9, poisson=True).draw(numbered([2]), [0], 0, np.random.default_rng(0))[0]
    assert [seen_in(drawn, t, t + 1) for t in range(3)] == [[0, 1]] * 3
    assert drawn.size == 2.0


def test_a_nearest_batch_is_a_sample_and_those_next_to_it():
    x = torch.tensor([0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 50.0])[:, None].double()
    holdings = Holdings(Samples(x, torch.zeros(7)), np.arange(7), np.array([0, 6, 7]))
    drawn = LocalWork(epochs=3, batch=3, nearest=True).draw(holdings, [0, 1], 0, np.random.default_rng(1))
    assert drawn[0].steps == 6
    assert {tuple(sorted(rows)) for rows in drawn[0].index.tolist()} == {(0, 1, 2), (3, 4, 5)}
    assert drawn[1].index.tolist() == [[6]] * 3


def test_every_sample_is_the_centre_of_a_nearest_batch_equally_often():
    x = 2.0 ** torch.arange(5)[:, None].double()
    holdings = Holdings(Samples(x, torch.zeros(5)), np.arange(5), np.array([0, 5]))
    drawn = LocalWork(steps=15, batch=1, nearest=True).draw(holdings, [0], 0, np.random.default_rng(1))
    assert np.bincount(drawn[0].index.flatten()).tolist() == [3] * 5


def test_subsets_are_new_draws_without_replacement():
    """Every step's batch has different rows of the client; each row is as likely as any other."""
    held = holdings(Samples(torch.zeros(9, 1), torch.zeros(9)), [2, 5, 2])
    work = LocalWork.from_spec({"steps": 400, "batch": 3, "sampling": "subsets"})
    drawn = work.draw(held, [0, 1, 2], 0, np.random.default_rng(0))
    assert list(drawn) == [0, 1, 2]
    for k, width in ((0, 2), (1, 3), (2, 2)):
        index = drawn[k].index.numpy()
        assert index.shape == (400, width)
        assert set(index.ravel()) == set(held.of(k))
        assert all(len(set(line)) == width for line in index.tolist())
    shares = np.bincount(drawn[1].index.numpy().ravel() - 2, minlength=5) / 400
    assert shares == pytest.approx(np.full(5, 0.6), abs=0.08)
    first = np.bincount(drawn[1].index.numpy()[:, 0] - 2, minlength=5) / 400
    assert first == pytest.approx(np.full(5, 0.2), abs=0.08)


# --- passes that go on from round to round ----------------------------------------------------------------------------


def test_a_pass_goes_on_from_round_to_round_and_leaves_out_what_is_over():
    """Eleven samples in four batches of two, three per round: the second pass begins in the second round."""
    held, work = numbered([11, 4], shuffle=1), LocalWork(steps=3, batches=4)

    def rng(client: int, number: int) -> np.random.Generator:
        return np.random.default_rng([client, number])

    seen = [row.tolist() for t in range(4) for row in work.walk(held, [0], t, rng)[0].index]
    assert [len(batch) for batch in seen] == [2] * 12
    for number in range(3):
        wanted = rng(0, number).permutation(held.of(0))[:8].reshape(4, 2).tolist()
        assert seen[4 * number : 4 * number + 4] == wanted
    left_over = [set(held.of(0).tolist()).difference(*seen[i : i + 4]) for i in (0, 4, 8)]
    assert [len(rows) for rows in left_over] == [3] * 3
    assert left_over[0] != left_over[1]
    small = work.walk(held, [1], 5, rng)[1]
    assert (len(small), small.steps_per_epoch, small.weight, small.index.shape) == (3, 4, None, (3, 1))
