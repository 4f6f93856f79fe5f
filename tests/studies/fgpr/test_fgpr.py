"""FGPR: a step by hand, one device as plain training, the biased gradient, the server, and newcomers."""

from __future__ import annotations

import itertools

import gpytorch
import numpy as np
import pytest
import torch

from fedrepro.algorithms.fedavg_transfer import FedAvgTransfer
from fedrepro.core.federation import Federation, LocalWork
from fedrepro.core.params import Params
from fedrepro.errors import UserError
from fedrepro.studies.fgpr.algorithms.fgpr import FGPR
from fedrepro.studies.fgpr.algorithms.gp_maximum import GPMaximum
from fedrepro.studies.fgpr.algorithms.gp_separate import GPSeparate
from fedrepro.studies.fgpr.gp.device_errors import gradient_norm
from fedrepro.studies.fgpr.gp.exact import Theta, likelihood, predict
from tests.builders import federate, make_plan, make_problem, make_task, run

ONE_STEP, TEN_STEPS = LocalWork(steps=1), LocalWork(steps=10)


def device(n: int, seed: int, frequency: float = 5.0, dimensions: int = 1):
    rng = np.random.default_rng(seed)
    x = rng.random((n, dimensions))
    return x, np.sin(frequency * x).sum(1) + 0.2 * rng.normal(size=n)


def theta_of(w: Params) -> Theta:
    return Theta(w["lengthscale"][0], w["signal"][0], w["noise"][0])


def final(data, algorithm, rounds=1, work=TEN_STEPS, model=(), **options) -> Params:
    task = make_task("gaussian_process", data[0][0].shape[1], **dict(model))
    return run(task, federate(*data), make_plan(rounds, work, **options), algorithm).w


def test_a_step_of_algorithm_4_2_by_hand():
    """η times the gradient of L over the size of the batch, and the server's Σ p_k θ_k with p_k = n_k/N."""
    data = [device(12, 0), device(4, 1)]
    task = make_task("gaussian_process", 1)
    expected = {name: 0.0 for name in task.start}
    for (x, y), p in zip(data, (0.75, 0.25), strict=True):
        at = likelihood("rbf", theta_of(task.start), torch.from_numpy(x), torch.from_numpy(y))
        for name, g in zip(expected, at.gradient, strict=True):
            expected[name] += p * (task.start[name][0] - 0.1 * g / len(y))
    w = final(data, FGPR(lr=0.1, optimiser="sgd", scale="natural"), work=ONE_STEP)
    for name, value in expected.items():
        torch.testing.assert_close(w[name][0], value)


def test_the_least_values_bound_a_step_on_the_natural_scale():
    w = final([device(12, 0)], FGPR(lr=1e6, optimiser="sgd", scale="natural"), work=ONE_STEP)
    assert w["noise"].item() >= 1e-4
    assert w["lengthscale"].item() >= 1e-6


class PlainGP(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        constraint = gpytorch.constraints.GreaterThan(1e-6)
        base = gpytorch.kernels.RBFKernel(lengthscale_constraint=constraint)
        self.covar_module = gpytorch.kernels.ScaleKernel(base, outputscale_constraint=constraint)

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def test_one_device_is_plain_training_of_a_gpytorch_model():
    """Thirty steps of torch's Adam on gpytorch's own marginal likelihood, in one round."""
    x, y = device(25, 3)
    w = final([(x, y)], FGPR(lr=0.05), work=LocalWork(steps=30))
    x, y = torch.from_numpy(x), torch.from_numpy(y)
    gaussian = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-4))
    model = PlainGP(x, y, gaussian).double()
    raw = (lambda task: task.model.to_raw(task.start))(make_task("gaussian_process", 1))
    kernel = model.covar_module
    kernel.base_kernel.raw_lengthscale.data.fill_(raw["lengthscale"].item())
    kernel.raw_outputscale.data.fill_(raw["signal"].item())
    gaussian.raw_noise.data.fill_(raw["noise"].item())
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(gaussian, model)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05)
    with gpytorch.settings.fast_computations(covar_root_decomposition=False, log_prob=False, solves=False):
        for _ in range(30):
            optimiser.zero_grad()
            (-objective(model(x), y)).backward()
            optimiser.step()
    expected = kernel.base_kernel.lengthscale.item(), kernel.outputscale.item(), gaussian.noise.item()
    assert [w[name].item() for name in w] == pytest.approx(expected, abs=1e-9)


def test_adam_forgets_its_moments_after_every_round():
    """In ten rounds of one step, each step is ±lr on the raw scale; in one round of ten steps it is not."""
    rounds = final([device(25, 3)], FGPR(lr=0.1), rounds=2, work=ONE_STEP)
    task = make_task("gaussian_process", 1)
    raw = task.model.to_raw(rounds)
    for value in raw.values():
        assert min(abs(value.item() - end) for end in (-0.2, 0.0, 0.2)) < 1e-6


def test_one_device_goes_the_same_way_under_fgpr_and_separate():
    data = [device(20, 5)]
    torch.testing.assert_close(dict(final(data, FGPR(lr=0.05), 3)), dict(final(data, GPSeparate(lr=0.05), 3)))


def test_kept_moments_are_one_run_of_adam():
    data = [device(20, 5)]
    rounds = final(data, GPSeparate(lr=0.05, moments="keep"), rounds=4, work=LocalWork(steps=3))
    once = final(data, GPSeparate(lr=0.05), work=LocalWork(steps=12))
    torch.testing.assert_close(dict(rounds), dict(once))
    reset = final(data, GPSeparate(lr=0.05), rounds=4, work=LocalWork(steps=3))
    assert not torch.allclose(rounds["noise"], reset["noise"])


def test_the_rate_falls_like_one_over_t():
    algorithm = FGPR(lr=0.4, schedule="inverse", delay=10.0)
    assert [algorithm.rate(t) for t in (0, 10, 30)] == pytest.approx([0.4, 0.2, 0.1])
    assert FGPR(lr=0.4).rate(99) == 0.4


def test_a_mini_batch_gradient_is_biased():
    """The mean gradient over all batches of a size, each over its size, is not that of the whole data over its size;
    where samples are independent (l → 0) it is."""
    x, y = (torch.from_numpy(v) for v in device(8, 2))
    batches = torch.tensor(list(itertools.combinations(range(8), 4)))

    def gradients(lengthscale: float) -> tuple[torch.Tensor, torch.Tensor]:
        theta = Theta(torch.tensor([lengthscale], dtype=torch.float64), torch.tensor(1.0), torch.tensor(0.1))
        theta = Theta(*(t.double() for t in theta))
        parts = likelihood("rbf", theta, x[batches], y[batches]).gradient
        whole = likelihood("rbf", theta, x, y).gradient
        return torch.stack([parts.variance.mean() / 4, parts.noise.mean() / 4]), torch.stack(whole[1:]) / 8

    mean, whole = gradients(0.3)
    assert (mean - whole).abs().max() > 0.05 * whole.abs().max()
    mean, whole = gradients(1e-5)
    torch.testing.assert_close(mean, whole)


def test_a_long_period_is_one_shot_communication():
    """The average of devices that train on their own; with a period of 1 nothing is kept between rounds."""
    data = [device(12, 0), device(4, 1)]
    sgd = {"lr": 0.3, "optimiser": "sgd", "schedule": "inverse"}
    shot = final(data, FGPR(**sgd, period=9), rounds=4, work=ONE_STEP)
    each = [final([one], FGPR(**sgd), rounds=4, work=ONE_STEP) for one in data]
    for name, value in shot.items():
        torch.testing.assert_close(value, 0.75 * each[0][name] + 0.25 * each[1][name])
    two = final(data, FGPR(**sgd, period=2), rounds=2, work=ONE_STEP)
    steps = final(data, FGPR(**sgd), rounds=1, work=LocalWork(steps=2))
    torch.testing.assert_close(dict(two), dict(steps))


def test_all_weight_on_the_last_device_leaves_it_on_its_own():
    data = [device(12, 0), device(12, 1), device(6, 2)]
    shared, alone = final(data, FGPR(lr=0.05, last_weight=1.0), 4), final(data[2:], FGPR(lr=0.05), 4)
    torch.testing.assert_close(dict(shared), dict(alone))


def test_a_last_weight_equal_to_its_share_changes_nothing_and_the_others_keep_their_proportion():
    data = [device(12, 0), device(4, 1), device(4, 2)]
    torch.testing.assert_close(dict(final(data, FGPR(last_weight=0.2))), dict(final(data, FGPR())))
    half = final(data, FGPR(last_weight=0.5))
    each = [final([one], FGPR()) for one in data]
    for name, value in half.items():
        torch.testing.assert_close(value, 0.375 * each[0][name] + 0.125 * each[1][name] + 0.5 * each[2][name])


@pytest.mark.parametrize("make", [FGPR, FedAvgTransfer])
def test_newcomers_take_no_part(make):
    data = [device(12, 0), device(8, 1), device(9, 2, frequency=20.0)]
    model = "gaussian_process" if make is FGPR else "linear"
    with_them, without = (
        run(make_task(model, 1), federate(*data[:k]), make_plan(3, TEN_STEPS), make(lr=0.05, newcomers=k - 2)).w
        for k in (3, 2)
    )
    torch.testing.assert_close(dict(with_them), dict(without))


def test_more_newcomers_than_devices_is_an_error():
    with pytest.raises(UserError, match="newcomers = 2: there are 2 devices"):
        final([device(3, 0), device(3, 1)], FGPR(newcomers=2))


def test_other_models_are_refused():
    with pytest.raises(UserError, match="must be a Gaussian process"):
        run(make_task("linear", 1), federate(device(4, 0)), make_plan(1), FGPR())


@pytest.mark.parametrize(
    ("key", "value"), [("optimiser", "lbfgs"), ("scale", "log"), ("last_weight", 1.5), ("delay", 0.0)]
)
def test_a_wrong_setting_is_an_error_by_name(key, value):
    with pytest.raises(UserError, match=f"FGPR: {key} = "):
        FGPR(**{key: value})


def with_truth(data, **facts) -> Federation:
    federation = federate(*data)
    return Federation(federation.train, facts={k: np.asarray(v) for k, v in facts.items()})


def test_a_known_lengthscale_stays_and_the_errors_are_those_of_standard_deviations():
    federation = with_truth([device(20, 0, dimensions=2)], signal=1.5, noise=0.3, lengthscale=[0.25, np.inf])
    task = make_task("gaussian_process", 2, ard=True, deviations=True, start=[1.0, 1.0, 1.0])
    found = run(task, federation, make_plan(2, TEN_STEPS), FGPR(lr=0.05, known="lengthscale"))
    assert found.w["lengthscale"].tolist() == [[0.25, 1.0]]
    assert found.values("error_signal")[0] == pytest.approx(0.25)
    assert found.values("error_noise")[0] == pytest.approx(0.49)
    assert found.values("error")[-1] == pytest.approx(
        (found.w["signal"].item() - 1.5) ** 2 + (found.w["noise"].item() - 0.3) ** 2
    )
    assert found.values("error_lengthscale").tolist() == [0.0] * 3
    assert found.values("uploaded").tolist() == [0, 4, 8]


def test_parameters_as_deviations_follow_the_chain_rule():
    x, y = device(15, 1)
    tasks = [
        make_task("gaussian_process", 1, start=s, deviations=d)
        for s, d in (([0.5, 4, 0.25], False), ([0.5, 2, 0.5], True))
    ]
    batch = federate((x, y)).train.full_batch(0)
    variances, deviations = (task.gradient(task.start, batch) for task in tasks)
    assert tasks[0].loss(tasks[0].start, batch) == pytest.approx(tasks[1].loss(tasks[1].start, batch).item())
    torch.testing.assert_close(deviations["signal"], 2 * 2.0 * variances["signal"])
    torch.testing.assert_close(deviations["noise"], 2 * 0.5 * variances["noise"])
    torch.testing.assert_close(deviations["lengthscale"], variances["lengthscale"])


def test_the_maximum_is_where_long_training_ends():
    data = [device(20, 0), device(30, 1)]
    task = make_task("gaussian_process", 1)
    plan = make_plan(200, LocalWork(steps=1))
    trained = run(task, federate(*data), plan, FGPR(lr=0.3, optimiser="sgd")).values("loss", split="train", client=-1)
    fits = {
        shared: run(task, federate(*data), plan, GPMaximum(shared=shared)).values("loss", split="train", client=-1)
        for shared in (True, False)
    }
    # the loss of a round is a mean over devices of the likelihood over their size; the objective weighs by p_k
    assert fits[True][0] < trained[-1] + 1e-3 < trained[0]
    assert fits[False][0] <= fits[True][0]


def test_with_one_device_both_maxima_are_one():
    data = [device(20, 0)]
    task = make_task("gaussian_process", 1)
    both = [
        run(task, federate(*data), make_plan(1), GPMaximum(shared=s)).only.state["models"][0] for s in (True, False)
    ]
    torch.testing.assert_close(dict(both[0]), dict(both[1]))


def test_prediction_conditions_on_each_devices_own_data():
    """One prior, two devices with opposite functions: the errors are those of each device's own prediction."""
    x = np.linspace(0, 1, 11)[:, None]
    data = [(x, np.sin(6 * x[:, 0])), (x, -np.sin(6 * x[:, 0]))]
    federation = federate(*data)
    federation = Federation(federation.train, test=federation.train)
    task = make_task("gaussian_process", 1, start=[0.3, 1.0, 0.01])
    found = run(task, federation, make_plan(1, ONE_STEP), FGPR(lr=1e-9))
    w = found.w
    for k, (x, y) in enumerate(data):
        mean, variance = predict("rbf", theta_of(w), *map(torch.from_numpy, (x, y, x)), noisy=True)
        expected = np.sqrt(np.mean((mean.numpy() - y) ** 2))
        assert found.values("rmse", client=k, split="test")[-1] == pytest.approx(expected, rel=1e-9)
        assert found.values("rmse", client=k, split="train")[-1] == pytest.approx(expected, rel=1e-6)
        law = torch.distributions.Normal(mean, variance.sqrt())
        assert found.values("nlpd", split="test")[-1] == pytest.approx(-law.log_prob(torch.from_numpy(y)).mean().item())
    assert found.values("a_rmse", split="test")[-1] < 0.05
    assert found.values("a_rmse_trivial", split="test")[-1] == pytest.approx(np.std(np.sin(6 * x)), rel=1e-9)


def test_outputs_that_do_not_meet_train_as_they_would_alone():
    x, first = device(15, 0)
    _, second = device(15, 1, frequency=9.0)
    both = final([(x, np.stack([first, second], 1))], FGPR(lr=0.05), model={"outputs": 2})
    for s, y in enumerate((first, second)):
        alone = final([(x, y)], FGPR(lr=0.05))
        for name, value in alone.items():
            torch.testing.assert_close(both[name][s], value[0])


@pytest.mark.parametrize("strategy", ["loop", "vmap"])
def test_hard_devices_never_give_nan(strategy):
    """Duplicate inputs, one point, constant y."""
    x, y = device(6, 0)
    data = [(np.full((6, 1), 0.5), y), (x[:1], y[:1]), (x, np.zeros(6)), (np.tile(x[:3], (2, 1)), y)]
    task = make_task("gaussian_process", 1, start=[5.0, 100.0, 1.1e-4])
    found = run(task, federate(*data), make_plan(5, TEN_STEPS), FGPR(lr=0.1), strategy=strategy)
    assert np.isfinite(found.frame["value"]).all()
    assert "diverged" not in set(found.frame["metric"])


def test_the_gradient_norm_by_finite_differences():
    """‖∇ Σ p_k L_k/N_k‖² in signal and noise, with p = (0.75, 0.25)."""
    data = [device(12, 0), device(4, 1)]
    task = make_task("gaussian_process", 1)
    problem = make_problem(task, federate(*data), make_plan())

    def objective(signal: float, noise: float) -> float:
        theta = Theta(task.start["lengthscale"][0], *(torch.tensor(v, dtype=torch.float64) for v in (signal, noise)))
        values = [likelihood("rbf", theta, *map(torch.from_numpy, one)).value.item() / len(one[1]) for one in data]
        return 0.75 * values[0] + 0.25 * values[1]

    signal, noise, h = task.start["signal"].item(), task.start["noise"].item(), 1e-5
    slopes = [
        (objective(signal + h * a, noise + h * b) - objective(signal - h * a, noise - h * b)) / (2 * h)
        for a, b in ((1, 0), (0, 1))
    ]
    assert gradient_norm(problem, task.start) == pytest.approx(slopes[0] ** 2 + slopes[1] ** 2, rel=1e-6)


def test_the_smallest_device_alone_is_its_own_maximum_likelihood():
    data = [device(12, 0), device(6, 1)]
    task = make_task("gaussian_process", 1)
    smallest, own = (
        GPMaximum(**options).init(make_problem(task, federate(*devices), make_plan()), task.start)["models"]
        for options, devices in (({"alone": "smallest"}, data), ({}, data[1:]))
    )
    assert len(smallest) == 1
    torch.testing.assert_close(dict(smallest[0]), dict(own[0]))
