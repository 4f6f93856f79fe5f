"""Models: the declared way to run their clients, their operations, and quadratic objectives worked by hand."""

from __future__ import annotations

import pytest
import torch

from fedrepro.core import parts
from fedrepro.core.model import AssessingModel, ClosedFormModel, Model, Quadratic
from fedrepro.errors import UserError
from tests.builders import federate, make_plan, make_problem, make_task

DEVICES = ("cpu", "cuda", "mps")
OPERATIONS = {
    ClosedFormModel: ("batch_loss", "batch_gradient"),
    AssessingModel: ("assess",),
}


@pytest.mark.parametrize("name", parts.modules("models"))
def test_a_model_declares_a_way_that_it_can_run_for_every_device(name):
    model = make_task(name).model
    assert tuple(model.strategies) == DEVICES
    for device in DEVICES:
        declared = model.strategies[device]
        assert declared in (("loop", "vmap") if model.vectorised else ("loop",))
        assert model.strategy(device) == declared


@pytest.mark.parametrize(
    ("name", "cpu", "cuda"),
    [("softmax", "vmap", "vmap"), ("cnn", "vmap", "vmap"), ("lenet5", "loop", "vmap"), ("char_lstm", "loop", "loop")],
)
def test_declared_ways(name, cpu, cuda):
    assert [parts.model(name).strategies[device] for device in ("cpu", "cuda")] == [cpu, cuda]


@pytest.mark.parametrize("asked", ["loop", "vmap"])
def test_what_is_asked_for_is_taken(asked):
    for name in ("softmax", "lenet5"):
        assert make_task(name).model.strategy("cpu", asked) == asked


def test_vmap_of_a_model_without_a_vectorised_form_is_an_error_of_one_line():
    model = make_task("char_lstm").model
    with pytest.raises(UserError, match=r"^strategy: vmap cannot run the model CharLSTM: use loop$"):
        model.strategy("cpu", "vmap")


@pytest.mark.parametrize("name", parts.modules("models"))
def test_a_model_has_the_operations_that_its_kind_declares(name):
    make = parts.model(name)
    assert issubclass(make, Model)
    for kind, operations in OPERATIONS.items():
        for operation in operations if issubclass(make, kind) else ():
            assert operation in vars(make)


# --- quadratics -------------------------------------------------------------------------------------------------------

#: ½·2w₀² + ½·4w₁² − 2w₀ and ½·6w₀² + ½·8w₁² − 8w₁
Q = Quadratic(
    torch.tensor([[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]),
    torch.tensor([[2.0, 0.0], [0.0, 8.0]]),
    torch.zeros(2),
)


def test_spectrum_is_over_all_clients():
    assert Q.spectrum() == (2, 8)


def test_minimiser_is_of_the_plain_mean():
    # mean curvature diag(4, 6), mean slope (1, 4) → (¼, ⅔)
    torch.testing.assert_close(Q.minimiser(), torch.tensor([1 / 4, 2 / 3]))
    torch.testing.assert_close(Q.of(torch.tensor([1])).minimiser(), torch.tensor([0.0, 1.0]))


def test_gradients_are_each_clients_at_its_own_point():
    found = Q.gradients(torch.tensor([[1.0, 1.0], [2.0, 0.0]]))
    assert found.tolist() == [[0, 4], [12, -8]]


def test_a_problem_knows_its_quadratics():
    # client 0: (x, y) = (1, 2): ½(w − 2)²; client 1: (2, 2), (0, 4): ½·mean((2w − 2)², 16) = w² − 2w + 5
    federation = federate(([[1.0]], [2.0]), ([[2.0], [0.0]], [2.0, 4.0]))
    task = make_task("linear", features=1, bias=False)
    problem = make_problem(task, federation, make_plan())
    assert problem.quadratics.curvature.tolist() == [[[1]], [[2]]]
    assert problem.quadratics.linear.tolist() == [[2], [2]]
    assert problem.quadratics.constant.tolist() == [2, 5]
    torch.testing.assert_close(problem.minimiser, torch.tensor([4 / 3], dtype=torch.float64))


def test_a_problem_that_is_not_quadratic_has_no_quadratics():
    federation = federate(([[1.0]], [0]), ([[2.0], [0.0]], [1, 0]))
    problem = make_problem(make_task("softmax", features=1, outputs=2), federation, make_plan())
    assert problem.quadratics is None
    assert problem.minimiser is None
