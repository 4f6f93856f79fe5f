"""Every model: shapes, initial values from one generator, gradients. The linear model by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch.func import functional_call

from fedrepro.contracts.models import contracts, flat, made
from fedrepro.core import parts
from fedrepro.core.federation import Batch
from fedrepro.core.model import Quadratic, build, channels_last, max_pool_2
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.models.char_lstm import CharLSTM
from fedrepro.models.cnn import CNN
from fedrepro.models.linear import LinearRegression
from fedrepro.models.mlp import MLP
from fedrepro.models.softmax import SoftmaxRegression
from tests.builders import params

# --- every model ------------------------------------------------------------------------------------------------------

EVERY = [pytest.param(c, id=f"{name}: {c.says}") for name in parts.modules("models") for c in contracts(name)]


@pytest.mark.parametrize("contract", EVERY)
def test_a_model_keeps_its_contracts(contract, tmp_path):
    contract.check(tmp_path)


@pytest.mark.parametrize("name", ["lenet5", "mlp", "resnet9", "softmax"])
def test_another_generator_gives_other_values(name):
    assert not torch.equal(flat(made(name, seed=3)), flat(made(name, seed=4)))


# --- layers -----------------------------------------------------------------------------------------------------------


def test_dense_layers_start_uniformly_within_one_over_the_root_of_fan_in():
    model = build(MLP, (100,), 10, torch.Generator().manual_seed(0), hidden=[400])
    first, second = model.layers[0], model.layers[2]
    for layer, fan_in in ((first, 100), (second, 400)):
        bound = 1 / math.sqrt(fan_in)
        for parameter in layer.parameters():
            assert parameter.abs().max() <= bound
        assert layer.weight.abs().max() > 0.99 * bound
        assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


@pytest.mark.parametrize(
    ("hidden", "parameters"),
    [
        ([200], 784 * 200 + 200 + 200 * 10 + 10),
        ([], 784 * 10 + 10),
        ([30, 20], 784 * 30 + 30 + 30 * 20 + 20 + 20 * 10 + 10),
    ],
)
def test_an_mlp_on_images(hidden, parameters):
    model = MLP((1, 28, 28), 10, hidden=hidden)
    assert flat(model).numel() == parameters
    assert model(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert not isinstance(model.layers[-1], torch.nn.ReLU)


def test_softmax_regression_is_one_layer():
    model = SoftmaxRegression((1, 4, 4), 3)
    assert [tuple(p.shape) for p in model.parameters()] == [(3, 16), (3,)]
    assert model(torch.zeros(2, 1, 4, 4)).shape == (2, 3)


# --- linear regression ------------------------------------------------------------------------------------------------

X = torch.tensor([[1.0], [2.0], [0.0]], dtype=torch.float64)
Y = torch.tensor([2.0, 2.0, 4.0], dtype=torch.float64)


def linear(bias: bool = True, features: int = 1) -> LinearRegression:
    return LinearRegression((features,), bias=bias).to(torch.float64)


def test_the_line_by_hand():
    # w = (5, 2): 5x + 2 at 1, 2, 0
    model = linear()
    assert functional_call(model, params(w=[5.0, 2.0]), (X,)).tolist() == [7, 12, 2]
    # residuals at (1, 1): 0, 1, −3; gradient in slope (0·1 + 1·2 + −3·0)/3, in intercept −2/3; loss ½·10/3
    w = params(w=[1.0, 1.0])
    torch.testing.assert_close(model.batch_gradient(w, Batch(X, Y))["w"], params(w=[2 / 3, -2 / 3])["w"])
    assert model.batch_loss(w, Batch(X, Y)).item() == pytest.approx(10 / 6, rel=1e-15)


def test_its_summary_by_hand():
    # rows (1, 1), (2, 1), (0, 1): XᵀX/3 = (5 3; 3 3)/3, Xᵀy/3 = (6, 8)/3, ½·(4 + 4 + 16)/3 = 4
    h, b, c = linear().summarise(Batch(X, Y))
    torch.testing.assert_close(h, torch.tensor([[5.0, 3.0], [3.0, 3.0]], dtype=torch.float64) / 3)
    torch.testing.assert_close(b, torch.tensor([6.0, 8.0], dtype=torch.float64) / 3)
    assert c.item() == pytest.approx(4, rel=1e-15)


def test_it_starts_at_zero():
    assert made("linear").w.tolist() == [0] * 4
    assert LinearRegression((5,), bias=False).w.shape == (5,)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_gradients_of_a_batch_and_of_its_summary_are_those_of_autograd(bias, weighted):
    generator = torch.Generator().manual_seed(0)
    x, y, at = (torch.randn(*n, generator=generator, dtype=torch.float64) for n in ((9, 4), (9,), (4 + bias,)))
    weight = torch.tensor([1.0, 1, 0, 1, 0, 1, 1, 0, 1], dtype=torch.float64) if weighted else None
    model, batch = linear(bias, 4), Batch(x, y, weight)

    at.requires_grad_()
    residual = functional_call(model, {"w": at}, (x,)) - y
    shares = torch.full_like(y, 1 / 9) if weight is None else weight / weight.sum()
    loss = (0.5 * residual.square() * shares).sum()
    (expected,) = torch.autograd.grad(loss, at)

    w = Params(w=at.detach())
    for whole in (batch, model.summarise(batch)):
        torch.testing.assert_close(model.batch_gradient(w, whole)["w"], expected, rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(model.batch_loss(w, whole), loss.detach(), rtol=1e-12, atol=1e-14)
    gradients = Quadratic(*(part[None] for part in model.summarise(batch))).gradients(w["w"][None])
    torch.testing.assert_close(gradients[0], expected, rtol=1e-12, atol=1e-14)


def test_a_summary_with_padding_is_that_of_the_rows_that_count():
    padded = Batch(X, Y, torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
    for a, b in zip(linear().summarise(padded), linear().summarise(Batch(X[:2], Y[:2])), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-15, atol=0)


def test_only_the_linear_model_has_a_summary():
    batch = Batch(X, torch.tensor([0, 1, 0]))
    assert isinstance(linear().summarise(Batch(X, Y)), Quadratic)
    assert SoftmaxRegression((1,), 3).summarise(batch) is batch


@pytest.mark.parametrize("shape", [(2, 3, 4, 6), (1, 1, 5, 7)])
def test_pooling_is_torchs_own(shape):
    z = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(max_pool_2(z), torch.nn.functional.max_pool2d(z, 2))
    assert torch.equal(max_pool_2(z), torch.nn.functional.max_pool2d(z, 2))


def count(name: str, inputs: tuple[int, ...], outputs: int, **hyper) -> int:
    return sum(p.numel() for p in parts.model(name)(inputs, outputs, **hyper).parameters())


def test_lenet_5_has_its_61706_parameters():
    # (25·1 + 1)·6 + (25·6 + 1)·16 + (25·16 + 1)·120 + (120 + 1)·84 + (84 + 1)·10
    assert count("lenet5", (1, 28, 28), 10) == 156 + 2_416 + 48_120 + 10_164 + 850 == 61_706
    assert parts.model("lenet5")((3, 32, 32), 10)(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("inputs", [(1, 28, 28), (3, 28, 28), (3, 32, 32)])
def test_lenet_5_by_its_layers(inputs, dtype, tolerance):
    """Torch's own layers, in the order of the docstring, give the same output and the same gradients."""
    model = build(parts.model("lenet5"), inputs, 10, torch.Generator().manual_seed(0)).to(dtype)
    pool, relu = torch.nn.functional.max_pool2d, torch.relu
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(16, *inputs, generator=generator, dtype=dtype), torch.arange(16) % 10
    z = relu(model.third(relu(pool(model.second(relu(pool(model.first(x), 2))), 2))))
    expected, found = model.head(relu(model.dense(z.flatten(1)))), model(x)
    assert (found - expected).norm() <= tolerance * expected.norm()
    parameters = list(model.parameters())
    mine, theirs = (
        torch.autograd.grad(torch.nn.functional.cross_entropy(output, y), parameters) for output in (found, expected)
    )
    for a, b in zip(mine, theirs, strict=True):
        assert (a - b).norm() <= tolerance * b.norm()


def test_lenet_5_of_a_seed_starts_from_the_same_numbers():
    """One generator fills the layers in order, the third as the convolution that it is."""
    model = build(parts.model("lenet5"), (1, 28, 28), 10, torch.Generator().manual_seed(0))
    assert {name: tuple(p.shape) for name, p in model.named_parameters() if "third" in name} == {
        "third.weight": (120, 16, 5, 5),
        "third.bias": (120,),
    }
    generator = torch.Generator().manual_seed(0)
    for name, fan_in in (("first", 25), ("second", 150), ("third", 400), ("dense", 120), ("head", 84)):
        for parameter in model.get_submodule(name).parameters():
            bound = 1 / math.sqrt(fan_in)
            assert torch.equal(parameter, torch.empty_like(parameter).uniform_(-bound, bound, generator=generator))


@pytest.mark.parametrize("channels", [1, 3])
def test_channels_last_keeps_the_images(channels):
    x = torch.randn(2, channels, 6, 4, generator=torch.Generator().manual_seed(0))
    found = channels_last(x)
    assert torch.equal(found, x)
    assert found.stride() == (24 * channels, 1, 4 * channels, channels)
    assert (found.data_ptr() == x.data_ptr()) == (channels == 1)


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_resnet_9_has_as_many_parameters_as_its_layers_say(norm):
    w, convolutions = 64, [(3, 1), (1, 2), (2, 2), (2, 2), (2, 4), (4, 8), (8, 8), (8, 8)]
    convolutions = [(3, w), *((a * w, b * w) for a, b in convolutions[1:])]
    expected = sum(9 * a * b + b + 2 * b for a, b in convolutions) + (512 + 1) * 10
    assert count("resnet9", (3, 32, 32), 10, norm=norm) == expected == 6_575_370
    assert count("resnet9", (3, 96, 96), 10) == expected + (4608 - 512) * 10


def test_resnet_9_by_its_blocks():
    """Torch's own layers, in the order of the docstring, give the same output."""
    model = build(parts.model("resnet9"), (3, 32, 32), 10, torch.Generator().manual_seed(0), width=4, norm="group")
    pool, relu = torch.nn.functional.max_pool2d, torch.relu

    def block(z, layer):
        return relu(layer.norm(layer.convolution(z)))

    x = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    z = pool(block(block(x, model.first), model.second), 2)
    z = z + block(block(z, model.third[0]), model.third[1])
    z = pool(block(pool(block(z, model.fourth), 2), model.fifth), 2)
    z = z + block(block(z, model.sixth[0]), model.sixth[1])
    torch.testing.assert_close(model(x), model.head(pool(z, 4).flatten(1)))


@pytest.mark.parametrize(
    ("inputs", "hyper", "named"),
    [((3, 32, 32), {"norm": "layer"}, "norm = 'layer'"), ((3, 28, 28), {}, "28×28 pixels")],
)
def test_a_resnet_9_that_cannot_be_is_named(inputs, hyper, named):
    with pytest.raises(UserError, match=named):
        parts.model("resnet9")(inputs, 10, **hyper)


# --- convolutions and an LSTM -----------------------------------------------------------------------------------------


def test_the_cnn_has_two_convolutions_and_two_dense_layers():
    model = build(CNN, (1, 28, 28), 10, torch.Generator().manual_seed(0))
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters() if name.endswith("weight")}
    assert list(shapes.values()) == [(10, 1, 5, 5), (20, 10, 5, 5), (50, 320), (10, 50)]
    assert flat(model).numel() == 21_840


def test_the_lstm_has_two_layers_and_the_widths_of_leaf():
    model = build(CharLSTM, (80,), 80, torch.Generator().manual_seed(0))
    lstm = 4 * 256 * (8 + 256 + 2) + 4 * 256 * (256 + 256 + 2)
    assert flat(model).numel() == 80 * 8 + lstm + 80 * 256 + 80
    assert model(torch.zeros(2, 80, dtype=torch.uint8)).shape == (2, 80)


def test_the_lstm_is_torchs_and_reads_the_weights_it_is_given():
    model = build(CharLSTM, (7,), 5, torch.Generator().manual_seed(0), embedding=3, hidden=4)
    x = torch.tensor([[0, 1, 2, 3, 4, 1, 2], [4, 4, 0, 0, 1, 2, 3]], dtype=torch.uint8)
    plain = torch.nn.LSTM(3, 4, 2, batch_first=True)
    plain.load_state_dict(model.lstm.state_dict())
    expected = model.dense(plain(model.embedding(x.int()))[0][:, -1])
    torch.testing.assert_close(model(x), expected)
    other = build(CharLSTM, (7,), 5, torch.Generator().manual_seed(1), embedding=3, hidden=4)
    replaced = functional_call(model, dict(other.named_parameters()), (x,))
    torch.testing.assert_close(replaced, other(x))
    assert not torch.allclose(replaced, expected)
