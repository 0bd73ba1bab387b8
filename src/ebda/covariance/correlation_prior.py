"""The prior of the correlations of all pairs of features.

A correlation r with f degrees of freedom becomes a z-score by Wallace's (1959)
approximation to the t distribution with ``v = f - 1`` degrees of freedom,

    z = sign(r) c sqrt(-v log(1 - r^2)),    c = (8 v + 1) / (8 v + 3),

which is standard normal where features are independent. So is Fisher's transformation
``sqrt(f - 2) atanh(r)`` in the middle, but its tails are too light for few samples: of
millions of pairs too many would stand out.

The z-scores of all pairs have a prior as the differences have: a point mass at zero and
a scale mixture of normal distributions (:class:`ebda.priors.NormalMixture`), by maximum
likelihood. It sees them as counts in narrow cells. Components no wider than the noise
are chance, as the point mass is: no single correlation can be told to be one of them.
Pairs are kept where the probability of chance is at most `_CHANCE`, and their
correlation is the posterior mean, transformed back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.kernels.correlations import count_correlations
from ebda.priors.normal_mixture import NormalMixture, NormalMixturePrior
from ebda.sizes import sizes
from ebda.typing import FloatArray

# Pairs that are more probably chance than this are not kept.
_CHANCE = 0.2
# Cells of the correlations, and steps of tables, in units of the noise.
_WIDTH = 0.02
_MOST_CELLS = 1 << 16
# Kept pairs for each feature, on average, where there are many.
_PAIRS_PER_FEATURE = 32
# The duality gap of the prior, in average log-likelihood, times the number of pairs.
_GAP = 0.01
_LEAST_GAP = 1e-11
_SQUARE_OF_ONE = 1 - 1e-15


def to_z(r: FloatArray, df: float) -> FloatArray:
    """Correlations as z-scores.

    Parameters
    ----------
    r : ndarray
        Correlations.
    df : float
        Their degrees of freedom f, above 2.

    >>> to_z(np.array([0.0, 0.5, -0.5]), df=50).round(2).tolist()
    [0.0, 3.74, -3.74]
    """
    v = df - 1
    square = np.minimum(r * r, _SQUARE_OF_ONE)
    z: FloatArray = np.sign(r) * np.sqrt(-v * np.log1p(-square)) * _unit(v)
    return z


def from_z(z: FloatArray, df: float) -> FloatArray:
    """Correlations of z-scores.

    >>> from_z(to_z(np.array([-0.9, 0.1]), df=20), df=20).round(12).tolist()
    [-0.9, 0.1]
    """
    v = df - 1
    r: FloatArray = np.sign(z) * np.sqrt(-np.expm1(-((z / _unit(v)) ** 2) / v))
    return r


def _unit(v: float) -> float:
    return (8 * v + 1) / (8 * v + 3)


@dataclass(frozen=True, eq=False)
class CorrelationPrior:
    """The prior of the correlations, as z-scores, and which pairs are kept.

    Parameters
    ----------
    prior : NormalMixturePrior
        Of the means of the z-scores.
    df : float
        Degrees of freedom of the correlations.
    bound : float
        Absolute correlations beyond this are kept; 1 if there are none.
    """

    prior: NormalMixturePrior
    df: float
    bound: float

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray]:
        """z-scores up to that of a correlation of 1, and their posterior means."""
        z = _scores(self.df)
        return z, self.prior.posterior(z).mean

    def shrink(self, r: FloatArray) -> FloatArray:
        """Posterior means of correlations, on the scale of the z-scores.

        Parameters
        ----------
        r : ndarray
            Sample correlations.
        """
        z = to_z(r, self.df)
        mean = np.interp(np.abs(z), *self._table)
        return from_z(np.sign(z) * mean, self.df)


def _scores(df: float) -> FloatArray:
    """z-scores from zero to that of a correlation of 1."""
    largest = float(to_z(np.ones(1), df)[0])
    count = min(int(np.ceil(largest / _WIDTH)), _MOST_CELLS) + 1
    return np.linspace(0.0, largest, count)


def fit_correlations(unit: npt.NDArray[np.float32], df: float) -> CorrelationPrior:
    """The prior of the correlations of all pairs of features.

    Parameters
    ----------
    unit : ndarray of float32 of shape (n_features, n_samples)
        Residuals of each feature, of length one, or zero for one that is left out.
    df : float
        Degrees of freedom of the residuals.
    """
    unit = unit[unit.any(axis=1)]
    p = len(unit)
    n_cells = min(int(np.ceil(np.sqrt(df) / _WIDTH)), _MOST_CELLS)
    count = count_correlations(unit, n_cells)
    used = np.flatnonzero(count)
    middle = to_z((used + 0.5) / n_cells, df)
    number = count[used].astype(np.float64)
    estimator = NormalMixture(tol=max(_GAP / number.sum(), _LEAST_GAP))
    prior = estimator.fit_counted(middle, number).prior_
    assert isinstance(prior, NormalMixturePrior)
    # No more pairs than memory should hold: those of the largest correlations.
    most = min(sizes.covariance_pairs, _PAIRS_PER_FEATURE * p)
    beyond = np.append(np.cumsum(count[::-1])[::-1], 0)
    fits = int(np.argmax(beyond <= most))
    bound = max(_bound(prior, df), fits / n_cells)
    return CorrelationPrior(prior, df, min(bound, 1.0))


def _bound(prior: NormalMixturePrior, df: float) -> float:
    """The correlation from which the probability of chance is low enough."""
    wide = prior.sds > 1
    if not wide.any():
        return 1.0
    z = _scores(df)
    log_joint = prior.components(z, np.ones_like(z)).log_density
    log_joint = log_joint + prior.log_weights[:, None]
    log_total = np.logaddexp.reduce(log_joint, axis=0)
    log_wide = np.logaddexp.reduce(log_joint[wide], axis=0)
    kept = log_wide - log_total >= np.log1p(-_CHANCE)
    # The larger z is, the more probable is a wide component.
    return float(from_z(z[[np.argmax(kept)]], df)[0]) if kept.any() else 1.0
