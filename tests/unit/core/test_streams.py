"""Named streams: numbers depend on the name and on nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fedrepro.core import streams

IDS = st.text("abcdefghijklmnopqrstuvwxyz0123456789_-/", min_size=1, max_size=20)
NAMES = st.tuples(
    IDS,
    st.integers(0, 2**40),
    st.sampled_from(streams.PURPOSES),
    st.lists(st.integers(0, 10**6), max_size=3).map(tuple),
)


def draw(name) -> bytes:
    experiment, seed, purpose, keys = name
    return streams.generator(experiment, seed, purpose, *keys).random(4).tobytes()


@given(NAMES, NAMES)
def test_streams_are_equal_exactly_where_their_names_are(a, b):
    assert draw(a) == draw(a)
    assert (draw(a) == draw(b)) == (a == b)


@given(IDS, st.integers(1, 9), st.integers(0, 99), st.integers(0, 99))
def test_neighbouring_numbers_do_not_run_together(experiment, seed, a, b):
    """Seed 1, round 23 is not seed 12, round 3."""
    glued = streams.entropy(experiment, int(f"{seed}{a}"), "batches", b)
    assert glued != streams.entropy(experiment, seed, "batches", int(f"{a}{b}"))


def test_every_purpose_is_a_stream_of_its_own():
    assert len({streams.entropy("toy/line", 0, purpose) for purpose in streams.PURPOSES}) == len(streams.PURPOSES)


def test_an_unknown_purpose_is_an_error_that_lists_the_valid_ones():
    for make in (streams.entropy, streams.generator, streams.torch_generator):
        with pytest.raises(ValueError, match=r"unknown stream 'inti'; valid: .*init"):
            make("toy/line", 0, "inti")


def test_streams_do_not_depend_on_the_process():
    """Pinned: a change of these bits changes every result of every study."""
    assert streams.entropy("toy/line", 0, "data") == streams.entropy("toy/line", np.int64(0), "data")
    assert hex(streams.entropy("toy/line", 0, "data"))[2:10] == "123be3e4"


def test_torch_generators_repeat_and_leave_the_global_state_alone():
    before = torch.random.get_rng_state()
    one, two = (torch.rand(3, generator=streams.torch_generator("a", 1, "init")) for _ in range(2))
    other = torch.rand(3, generator=streams.torch_generator("a", 2, "init"))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_one_stream_does_not_disturb_another():
    first = streams.generator("a", 0, "batches")
    alone = streams.generator("a", 0, "batches").random(6)
    streams.generator("a", 0, "noise").random(100)
    np.testing.assert_array_equal(np.concatenate([first.random(3), first.random(3)]), alone)
