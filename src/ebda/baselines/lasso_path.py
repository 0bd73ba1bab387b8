"""The lasso path of logistic regression, as R's glmnet has it.

The path is solved by celer (Massias, Gramfort and Salmon 2018), for the features that
the strong rule keeps. celer does not fit an intercept; a column with a large constant,
whose penalty is negligible, stands in for it. adelie, by the authors of glmnet, would
be the obvious choice but requires NumPy 1, to which it would bind all users of the
extra.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit
from sklearn.exceptions import ConvergenceWarning

from ebda.typing import FloatArray, IntArray

# Value of the column that stands in for the intercept: 1e-6 of the usual penalty.
_INTERCEPT_SCALE = 1e6
# Where glmnet ends a path, after five lambdas at least: at this share of the deviance
# explained, or at a lambda that adds less than this to it.
_MOST_EXPLAINED, _LEAST_GAIN, _LEAST_LAMBDAS = 0.999, 1e-5, 5
# Lambdas that are solved together, with the features that the strong rule keeps, and
# by how much of lambda a feature that it left out may exceed it.
_CHUNK, _SLACK = 5, 1e-6
# A correlation with the classes that is rounding.
_NO_PULL = 1e-12


@dataclass(frozen=True)
class Path:
    """Lasso fits at a descending sequence of lambdas.

    Parameters
    ----------
    lambdas : ndarray of shape (n_lambdas,)
        The penalties.
    coef, intercept : ndarray of shape (n_features, n_lambdas) and (n_lambdas,)
        The fits to standardised data.
    centre, scale : ndarray of shape (n_features,)
        What the data were standardised by; a constant feature has scale 1.
    """

    lambdas: FloatArray
    coef: FloatArray
    intercept: FloatArray
    centre: FloatArray
    scale: FloatArray

    def scores(self, X: FloatArray, lambdas: FloatArray) -> FloatArray:
        """Log-odds of the second class at other lambdas, interpolated linearly.

        Beyond its ends a path has the scores of the last lambda.
        """
        used = self.coef.any(axis=1)
        data = (X[:, used] - self.centre[used]) / self.scale[used]
        scores = data @ self.coef[used] + self.intercept
        ascending = self.lambdas[::-1]
        return np.array([np.interp(lambdas, ascending, row[::-1]) for row in scores])


def fit_path(X: FloatArray, codes: IntArray, n_lambdas: int, tol: float) -> Path:
    """The path of some samples, standardised by themselves.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data.
    codes : ndarray of shape (n_samples,)
        Classes, 0 or 1.
    n_lambdas : int
        Largest number of lambdas.
    tol : float
        Duality gap at which the solver stops.
    """
    centre, scale = X.mean(axis=0), X.std(axis=0)
    varies = X.max(axis=0) > X.min(axis=0)
    scale = np.where(varies, scale, 1.0)
    data = np.asfortranarray(np.where(varies, X - centre, 0.0) / scale)
    sign, share = np.where(codes == 1, 1.0, -1.0), codes.mean()
    pull = _pull(data, codes - share)
    largest = pull.max()
    ratio = 0.01 if data.shape[0] < data.shape[1] else 1e-4
    lambdas = largest * np.geomspace(1, ratio, n_lambdas)
    if largest <= _NO_PULL:
        none = np.zeros((data.shape[1], n_lambdas))
        return Path(lambdas, none, np.full(n_lambdas, logit(share)), centre, scale)

    null = -2 * (share * np.log(share) + (1 - share) * np.log1p(-share))
    coef, intercept = np.zeros((data.shape[1], n_lambdas)), np.zeros(n_lambdas)
    explained = np.empty(0)
    last, start = largest, (np.zeros(data.shape[1]), logit(share))
    for first in range(0, n_lambdas, _CHUNK):
        part = slice(first, first + _CHUNK)
        # The strong rule (Tibshirani et al. 2012).
        kept = (pull >= 2 * lambdas[part][-1] - last) | (start[0] != 0)
        coef[:, part], intercept[part], score, pull = _solve(
            data, sign, lambdas[part], tol, start, kept
        )
        last, start = lambdas[part][-1], (coef[:, part][:, -1], intercept[part][-1])
        deviance = 2 * np.logaddexp(0, -sign[:, None] * score).mean(axis=0)
        explained = np.append(explained, 1 - deviance / null)
        end = _end(explained)
        if end < len(explained):
            break
    return Path(lambdas[:end], coef[:, :end], intercept[:end], centre, scale)


def _solve(
    data: FloatArray,
    sign: FloatArray,
    lambdas: FloatArray,
    tol: float,
    start: tuple[FloatArray, float],
    kept: npt.NDArray[np.bool_],
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Fits at a few lambdas with the features that are kept, until no other is missed.

    Returns coefficients, intercepts, scores, and the pull of each feature at the last
    lambda.
    """
    coef = np.zeros((data.shape[1], len(lambdas)))
    while True:
        design = np.asfortranarray(data[:, kept])
        before = start[0][kept], start[1]
        coef[kept], intercept = logistic_path(design, sign, lambdas, tol, before)
        score = design @ coef[kept] + intercept
        pull = _pull(data, sign[:, None] * expit(-sign[:, None] * score))
        missed = (pull > lambdas * (1 + _SLACK)).any(axis=1) & ~kept
        if not missed.any():
            return coef, intercept, score, pull[:, -1]
        kept = kept | missed


def _pull(data: FloatArray, residual: FloatArray) -> FloatArray:
    """Size of the derivative of the deviance by each coefficient, over ``2 n``.

    A feature whose coefficient is zero is pulled by lambda at most.
    """
    size: FloatArray = np.abs(data.T @ residual) / len(data)
    return size


def _end(explained: FloatArray) -> int:
    """How many lambdas glmnet keeps, from the shares of the deviance explained.

    >>> _end(np.array([0.0, 0.2, 0.4, 0.6, 0.9, 0.9995, 0.9999]))
    6
    """
    gain = np.diff(explained, prepend=-np.inf)
    last = (gain < _LEAST_GAIN) | (explained > _MOST_EXPLAINED)
    last[: _LEAST_LAMBDAS - 1] = False
    return int(np.argmax(last)) + 1 if last.any() else len(explained)


def logistic_path(
    X: FloatArray,
    sign: FloatArray,
    lambdas: FloatArray,
    tol: float,
    start: tuple[FloatArray, float] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Coefficients (n_features, n_lambdas) and intercepts along a path of lambdas.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Data in columns, as Fortran has them.
    sign : ndarray of shape (n_samples,)
        Classes, -1 or 1.
    lambdas : ndarray of shape (n_lambdas,)
        Penalties in descending order.
    tol : float
        Duality gap at which the solver stops.
    start : tuple of (n_features,) ndarray and float, optional
        Coefficients and intercept to start from.
    """
    try:
        from celer import celer_path
    except ImportError as error:
        raise ImportError(
            "LassoLogistic needs celer: pip install 'ebda[lasso]'"
        ) from error
    n = len(X)
    design = np.asfortranarray(np.column_stack([X, np.full(n, _INTERCEPT_SCALE)]))
    before = None if start is None else np.append(start[0], start[1] / _INTERCEPT_SCALE)
    with warnings.catch_warnings():
        # Beyond the end of a path the classes are separated and the gap closes slowly.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        _, coef, _ = celer_path(
            design,
            sign,
            pb="logreg",
            alphas=lambdas * n,
            tol=tol,
            max_iter=50,
            use_PN=True,
            coef_init=before,
        )
    return coef[:-1], coef[-1] * _INTERCEPT_SCALE
