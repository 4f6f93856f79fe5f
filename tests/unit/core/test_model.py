"""What models declare: how their clients are run, and which operations they have."""

from __future__ import annotations

import pytest

from fedrepro.core import parts
from fedrepro.core.model import AssessingModel, ClosedFormModel, Model
from fedrepro.errors import UserError
from tests.builders import make_task

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
