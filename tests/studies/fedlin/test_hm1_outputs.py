"""HM1's simulation with several outputs: each equals a simulation of hm1 alone."""

from __future__ import annotations

import numpy as np
import pytest

from fedrepro.core import parts
from fedrepro.data.catalogue import Source
from fedrepro.errors import UserError
from fedrepro.studies.fedlin.datasets.hm1 import hm1
from fedrepro.studies.fedlin.datasets.hm1_outputs import hm1_outputs


def source(seed: int = 0) -> Source:
    return Source(np.random.default_rng(seed))


@pytest.mark.parametrize("seed", [0, 1])
def test_readings_are_outputs_with_the_same_inputs_and_parameters(seed):
    both = hm1_outputs(source(seed), case="II", clients=6, test=5)
    assert both.facts["outputs"].tolist() == ["variance", "sd"]
    for j, reading in enumerate(("variance", "sd")):
        alone = hm1(source(seed), case="II", clients=6, test=5, noise_is=reading)
        for name, split in alone.splits().items():
            mine = both.splits()[name]
            assert np.array_equal(mine.x, split.x)
            assert np.array_equal(mine.y[:, j], split.y)
            assert np.array_equal(mine.client, split.client)
        assert np.array_equal(both.facts["theta"][..., j], alone.facts["theta"])
        assert np.array_equal(both.facts["omega"][j], alone.facts["omega"])
        assert both.facts["sigma"][j] == alone.facts["sigma"]
        assert np.array_equal(both.facts["test_mean"][:, j], alone.facts["test_mean"])
    assert np.array_equal(both.facts["scored"], alone.facts["scored"])


def test_ranks_are_outputs_with_the_same_inputs():
    found = hm1_outputs(source(), case="III", ranks=[1, 4], clients=6, test=5)
    assert found.facts["outputs"].tolist() == ["rank 1", "rank 4"]
    assert [np.linalg.matrix_rank(omega) for omega in found.facts["omega"]] == [1, 4]
    alone = hm1(source(), case="III", omega="low_rank", rank=4, clients=6, test=5)
    assert np.array_equal(found.train.y[:, 1], alone.train.y)
    assert np.array_equal(found.train.x, alone.train.x)


def test_one_output_is_a_vector():
    found = hm1_outputs(source(), readings=["sd"], test=5)
    assert found.outputs == 1
    assert np.array_equal(found.train.y, hm1(source(), noise_is="sd", test=5).train.y)


def test_sizes_and_what_it_refuses():
    assert parts.dataset("hm1_outputs").size("II") == (100, 30 * 40 + 70 * 275)
    with pytest.raises(UserError, match="neither readings nor ranks"):
        hm1_outputs(source(), readings=[])
    with pytest.raises(UserError, match="noise_is = 'spread' is unknown"):
        hm1_outputs(source(), readings=["spread"])
