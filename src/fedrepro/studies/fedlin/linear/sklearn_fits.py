"""Penalised regression by scikit-learn, imported at the first fit: x [n, d], y [n] → (θ [d], which predictors are
included [d]). There is no intercept, as in the thesis; targets that are all 0 give 0.
"""

from __future__ import annotations

import numpy as np

FOLDS = 5
HALF_WIDTH = 1.6448536269514722  # of a normal law's 90 % interval, in sds


def lasso(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lasso (Tibshirani 1996) with the penalty of least error in 5 folds, from scikit-learn's path of 100; included are
    the coefficients that are not 0."""
    if len(y) < FOLDS or not y.any():
        return np.zeros(x.shape[1]), np.zeros(x.shape[1], dtype=bool)
    from sklearn.linear_model import LassoCV

    # rows go to the folds in turn, so that every fold has samples of every device
    number = np.arange(len(y)) % FOLDS
    folds = [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in range(FOLDS)]
    theta = LassoCV(cv=folds, fit_intercept=False, max_iter=20000).fit(x, y).coef_
    return theta, theta != 0


def ridge(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`BayesianRidge`: y ~ N(Xθ, σ²I), θ ~ N(0, λ⁻¹I), with the σ² and λ of largest evidence; included are the
    coefficients whose 90 % interval, given these, excludes 0."""
    if not y.any():
        return np.zeros(x.shape[1]), np.zeros(x.shape[1], dtype=bool)
    from sklearn.linear_model import BayesianRidge

    found = BayesianRidge(fit_intercept=False, max_iter=1000).fit(x, y)
    return found.coef_, np.abs(found.coef_) > HALF_WIDTH * np.sqrt(np.diag(found.sigma_))
