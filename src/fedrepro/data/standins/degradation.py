"""Degradation signals in the columns of C-MAPSS FD001: engines that wear out, each at its own rate.

Engine k lives L_k cycles, 128 to 362 as in the real file. Its damage grows from the initial wear w_k to 1:

    D_k(t) = w_k + (1 − w_k) (exp(r_k t / L_k) − 1) / (exp(r_k) − 1)

A sensor reads level + change · D_k(t) + noise, rounded as in the file. Two speeds (sensors 9 and 14) change by a
different amount in each engine, up or down. Levels, changes and noise are assumed, of the size seen in the real file.
Sensors 1, 5, 10, 16, 18, 19 and setting 3 are constant, as in the file.
"""

import numpy as np

#: sensor → level of a new engine, change until it fails, its spread over engines, noise, decimals
SENSORS = {
    1: (518.67, 0, 0, 0, 2),
    2: (642.2, 1.4, 0, 0.3, 2),
    3: (1586.0, 16.0, 0, 4.0, 2),
    4: (1400.0, 27.0, 0, 4.0, 2),
    5: (14.62, 0, 0, 0, 2),
    6: (21.609, 0, 0, 0.002, 2),
    7: (554.2, -2.6, 0, 0.4, 2),
    8: (2388.04, 0.18, 0, 0.03, 2),
    9: (9056.0, 40.0, 50.0, 4.2, 2),
    10: (1.3, 0, 0, 0, 2),
    11: (47.3, 0.8, 0, 0.1, 2),
    12: (522.1, -2.2, 0, 0.3, 2),
    13: (2388.04, 0.18, 0, 0.03, 2),
    14: (8137.0, 28.0, 45.0, 3.1, 2),
    15: (8.41, 0.105, 0, 0.02, 4),
    16: (0.03, 0, 0, 0, 2),
    17: (391.9, 4.1, 0, 0.9, 0),
    18: (2388.0, 0, 0, 0, 0),
    19: (100.0, 0, 0, 0, 2),
    20: (38.97, -0.5, 0, 0.1, 2),
    21: (23.38, -0.3, 0, 0.06, 4),
}


def degradation(rng: np.random.Generator, engines: int) -> np.ndarray:
    """[n, 26]: engine, cycle, three settings, 21 sensors; engine after engine in the order of time."""
    # assumed: a gamma law with the mean and spread of the real lives (206 and 46)
    lives = np.minimum(128 + rng.gamma(2.9, 27.0, engines).astype(int), 362)
    rates = rng.uniform(3.0, 6.0, engines)
    wear = rng.beta(2.0, 8.0, engines)
    of = np.repeat(np.arange(engines), lives)
    cycle = np.concatenate([np.arange(1, life + 1) for life in lives])
    grown = np.expm1(rates[of] * cycle / lives[of]) / np.expm1(rates[of])
    damage = wear[of] + (1 - wear[of]) * grown
    settings = [
        np.round(rng.normal(0, 0.0022, len(of)), 4),
        rng.integers(-6, 7, len(of)) / 1e4,
        np.full(len(of), 100.0),
    ]
    sensors = []
    for level, change, spread, noise, decimals in SENSORS.values():
        change_of = change + spread * rng.standard_normal(engines)
        signal = level + change_of[of] * damage + noise * rng.standard_normal(len(of))
        sensors.append(np.round(signal, decimals))
    return np.column_stack([of + 1, cycle, *settings, *sensors])
