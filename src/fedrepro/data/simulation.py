"""Shared by the simulated data sets: named choices, two readings of a noise level, devices with linear models."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from fedrepro.data.dataset import Split
from fedrepro.errors import UserError, nearest


def check_name(dataset: str, parameter: str, value: str, valid: Iterable[str]) -> None:
    """UserError with the nearest valid name, unless `value` is one."""
    valid = list(valid)
    if value not in valid:
        raise UserError(f"{dataset}: {parameter} = '{value}' is unknown{nearest(value, valid)}")


def check_least(dataset: str, least: float, **values: float | None) -> None:
    """UserError for the first value that is below `least` or not finite (None is not checked)."""
    for parameter, value in values.items():
        if value is not None and not (value >= least and math.isfinite(value)):
            rule = "must not be negative" if least == 0 else f"must be at least {least}"
            raise UserError(f"{dataset}: {parameter} = {value}: {rule}")


def noise_sd(dataset: str, noise: float, noise_is: str) -> float:
    """The standard deviation of a noise that a paper gives as a number, read as `sd` or as `variance`."""
    check_name(dataset, "noise_is", noise_is, ("sd", "variance"))
    check_least(dataset, 0, noise=noise)
    return noise if noise_is == "sd" else math.sqrt(noise)


def linear_devices(
    streams: Sequence[np.random.Generator], theta: np.ndarray, counts: Sequence[int], tests: int, sigma: float
) -> tuple[Split, Split, np.ndarray]:
    """y = xᵀθ_k + N(0, σ²) with x ~ N(0, I) on K devices: training samples, test samples, means of the test samples.

    theta [K, d]; counts [K] and tests: samples per device. Inputs do not depend on other devices or splits.
    """
    d, made = theta.shape[1], []
    for stream, mine, n in zip(streams, theta, counts, strict=True):
        inputs, noise, test_inputs, test_noise = stream.spawn(4)
        x, test_x = inputs.standard_normal((n, d)), test_inputs.standard_normal((tests, d))
        y, mean = x @ mine + sigma * noise.standard_normal(n), test_x @ mine
        made.append((x, y, test_x, mean + sigma * test_noise.standard_normal(tests), mean))
    x, y, test_x, test_y, mean = map(np.concatenate, zip(*made, strict=True))
    clients = np.arange(len(theta))
    train = Split(x, y, client=np.repeat(clients, counts))
    return train, Split(test_x, test_y, client=np.repeat(clients, tests)), mean
