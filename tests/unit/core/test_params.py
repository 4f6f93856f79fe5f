"""Parameter algebra against numbers worked by hand, inside vmap and outside."""

from __future__ import annotations

import pytest
import torch

from fedrepro.core.params import Params, Uploads, all_finite, weighted_sum
from tests.builders import params

A = params(w=[[1.0, 2.0], [3.0, 4.0]], b=[5.0])
B = params(w=[[10.0, 0.0], [0.0, -10.0]], b=[1.0])


def same(found: Params, **expected) -> bool:
    return list(found) == list(expected) and all(torch.equal(found[k], v) for k, v in params(**expected).items())


def test_arithmetic():
    assert same(A + B, w=[[11.0, 2.0], [3.0, -6.0]], b=[6.0])
    assert same(A - B, w=[[-9.0, 2.0], [3.0, 14.0]], b=[4.0])
    assert same(A.add(B, alpha=0.5), w=[[6.0, 2.0], [3.0, -1.0]], b=[5.5])
    assert same(2.0 * A, w=[[2.0, 4.0], [6.0, 8.0]], b=[10.0])
    assert same(A * 2.0, w=[[2.0, 4.0], [6.0, 8.0]], b=[10.0])
    assert same(-A, w=[[-1.0, -2.0], [-3.0, -4.0]], b=[-5.0])


def test_a_step_may_be_a_tensor():
    assert same(A.add(B, alpha=torch.tensor(0.5, dtype=torch.float64)), w=[[6.0, 2.0], [3.0, -1.0]], b=[5.5])


def test_operands_stay_as_they_are():
    a, b = A.clone(), B.clone()
    _ = a + b, a - b, a * 3.0, -a, weighted_sum([a, b], [0.5, 0.5])
    assert same(a, **A)
    assert same(b, **B)


def test_a_clone_has_memory_of_its_own():
    a = A.clone()
    a["w"].zero_()
    assert A["w"].sum() == 10


def test_names_are_matched_not_places():
    swapped = Params({"b": B["b"], "w": B["w"]})
    assert same(A + swapped, w=[[11.0, 2.0], [3.0, -6.0]], b=[6.0])
    assert same(weighted_sum([A, swapped], [1.0, 1.0]), w=[[11.0, 2.0], [3.0, -6.0]], b=[6.0])


def test_dot_and_norm():
    assert A.dot(B) == 10 - 40 + 5
    assert params(w=[3.0], b=[4.0]).norm() == 5


def test_flatten_and_back():
    assert A.flatten().tolist() == [1, 2, 3, 4, 5]
    assert same(B.unflatten(A.flatten()), **A)
    assert params(w=[7.0]).flatten().tolist() == [7]


def test_flatten_of_stacked_parameters_gives_one_row_per_client():
    stacked = Uploads(iter([A, B])).stack().flatten(stacked=True)
    assert torch.equal(stacked, torch.stack([A.flatten(), B.flatten()]))


def test_plain_tensors_are_stacked_as_they_are():
    assert Uploads(iter([torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])])).stack().tolist() == [[1, 2], [3, 4]]


def test_weighted_sum_by_hand():
    # ¼·(1, 2, 3, 4 | 5) + ¾·(10, 0, 0, −10 | 1)
    assert same(weighted_sum([A, B], [0.25, 0.75]), w=[[7.75, 0.5], [0.75, -6.5]], b=[2.0])


def test_weighted_sum_is_the_same_for_uploads_computed_together():
    one_by_one = weighted_sum(Uploads(iter([A, B])), [0.25, 0.75])
    stacked = Uploads(iter(()), Uploads(iter([A, B])).stack())
    assert stacked.together
    assert same(weighted_sum(stacked, [0.25, 0.75]), **one_by_one)


@pytest.mark.parametrize("weights", [[1.0], [0.2, 0.3, 0.5]])
def test_weighted_sum_needs_a_weight_for_each(weights):
    with pytest.raises(ValueError, match="zip"):
        weighted_sum(iter([A, B]), weights)


def test_weighted_sum_takes_one_at_a_time():
    alive = []

    def uploads():
        for value in (1.0, 2.0, 3.0):
            alive.append(value)
            yield params(w=[value])
            alive.remove(value)
            assert alive == []  # the next upload is requested only after this one is added

    assert weighted_sum(uploads(), [1.0, 1.0, 1.0])["w"].item() == 6


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_all_finite_finds_what_is_not(bad):
    assert all_finite({"w": A, "servers": [A, B], "size": 3, "name": "x", "none": None, "index": torch.arange(3)})
    assert not all_finite({"w": A, "servers": [A, params(w=[[1.0, bad], [0.0, 0.0]], b=[0.0])]})
    assert not all_finite({"w": A, "temperature": bad})
    assert not all_finite({"w": A, "values": torch.tensor([1.0, bad])})


def test_infinities_do_not_cancel():
    assert not all_finite(params(w=[float("inf"), -float("inf")]))


def test_inside_vmap_the_same_numbers():
    stacked = Uploads(iter([A, B])).stack()

    def f(w: Params, alpha):
        return w.add(w, alpha=alpha) - w * 0.5, w.norm()

    vector, norm = torch.func.vmap(f)(stacked, torch.tensor([1.0, 2.0], dtype=torch.float64))
    for i, (w, alpha) in enumerate(((A, 1.0), (B, 2.0))):
        expected = w.add(w, alpha=alpha) - w * 0.5
        assert all(torch.equal(vector[k][i], expected[k]) for k in w)
        torch.testing.assert_close(norm[i], w.norm(), rtol=1e-15, atol=0)
