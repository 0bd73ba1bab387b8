"""The linear rule: coefficients and intercept from shrunken contrasts, and scores.

For a contrast between two weighted means ``P m`` and ``Q m`` with estimate
``d = scale * eta`` the score is (the paper's equation 4, in units of X)

    (x - (P + Q) m / 2)' D^-1 d + log(prior of P / prior of Q).

With two classes that is the log-odds of the second class, about the midpoint of the
class means. With K classes each class has such a score against the centre of all
samples, and the largest wins.

The midpoint of the sample means is biased where the classes are unequal, and with many
features badly so: the rule is made of the same noise as the means, the more of it the
smaller the class, and the boundary moves into the smaller one. Stein's lemma gives
the expectation of that from the divergence of eta as a function of z, and it is taken
out (with two classes of one size there is none):

    E noise of d . (P + Q) m / 2 = div eta * sum_k (P_k^2 - Q_k^2) / (2 n_k).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.covariance.base import Covariance, Diagonal
from ebda.kernels import compiled, loops
from ebda.kernels.threads import one_blas_thread, over_blocks
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts
from ebda.typing import FloatArray

# Writes the estimates of some of the features, a row a contrast.
WriteBlock = Callable[[slice, FloatArray], None]

# Features of a block of the sums over them.
_SUM_BLOCK = 1 << 18


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Scores are ``X @ coef.T + intercept``.

    Parameters
    ----------
    coef : ndarray of shape (n_contrasts, n_features)
    intercept : ndarray of shape (n_contrasts,)
    spread : float
        Spread of the scores within a class, as the covariance of the rule has it; over
        all contrasts, and 1 for a rule without weights.
    """

    coef: FloatArray
    intercept: FloatArray
    spread: float = 1.0


def linear_rule(
    moments: ClassMoments,
    contrasts: Contrasts,
    eta: FloatArray | WriteBlock,
    covariance: Covariance,
    class_prior: FloatArray,
    divergence: FloatArray | float = 0.0,
    spread: bool = True,
) -> LinearRule:
    """Build the rule from the estimate of eta, one row a contrast.

    Parameters
    ----------
    moments, contrasts, covariance
        What the earlier steps returned.
    eta : ndarray of shape (n_contrasts, n_features), or callable
        The estimates; with a diagonal covariance also a function that writes those of
        a slice of the features to an array, where they need not be kept.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities.
    divergence : ndarray of shape (n_contrasts,) or float
        Sum over the features of d eta / d z, for the unbiased midpoint; 0 cuts at
        the midpoint of the sample means, as the paper does.
    spread : bool
        Whether the spread of the scores is asked for.
    """
    P, Q = contrasts.positive, contrasts.negative
    middle = (P + Q) / 2
    any_constant = contrasts.any_constant
    p = len(contrasts.variance)
    coef = np.empty((len(P), p))
    own = covariance.variance if isinstance(covariance, Diagonal) else None
    fast = contrasts.unit.shape[1] == 1 and compiled.suit_vectors(p)

    def write(cols: slice) -> None:
        """d = scale eta, and D^-1 d with a diagonal covariance, as the coefficients."""
        w = coef[:, cols]
        if callable(eta):
            eta(cols, w)
        else:
            w[:] = eta[:, cols]
        if fast and own is not None:
            loop, unit = compiled.loop(loops.scale_and_divide), contrasts.unit[:, 0]
            loop(contrasts.variance, unit, own, cols.start, cols.stop, coef)
        else:
            w *= contrasts.scale_at(cols)
            if own is not None:
                w /= own[cols]
        if any_constant:
            w[:, contrasts.constant[cols]] = 0.0

    over_blocks(write, p, long=fast)
    if own is None:
        coef = covariance.solve(coef)
        if any_constant:
            coef[:, contrasts.constant] = 0.0

    def sums(cols: slice) -> tuple[float, FloatArray]:
        """coef' S coef, with S coef = d, and coef . (P + Q) m / 2, of some features."""
        w, variance = coef[:, cols], 0.0
        if spread and own is not None:
            variance = float(np.einsum("cj,cj,j->", w, w, own[cols]))
        elif spread and not callable(eta):
            d = contrasts.scale_at(cols) * eta[:, cols]
            variance = float(np.einsum("cj,cj->", w, d))
        # Without forming the midpoints.
        at_middle = w @ moments.means[:, cols].T
        return variance, np.einsum("ck,ck->c", at_middle, middle)

    # In blocks that are the same on one thread and on several; threads of BLAS would
    # add in another order.
    with one_blas_thread():
        parts = over_blocks(sums, p, _SUM_BLOCK, long=True)
    variance = max(sum(v for v, _ in parts), 0.0)
    at_middle = np.sum([m for _, m in parts], axis=0)
    at_middle -= divergence * ((P**2 - Q**2) / (2 * moments.counts)).sum(axis=1)
    intercept = log_odds(class_prior) - at_middle
    return LinearRule(coef, intercept, np.sqrt(variance) or 1.0)


def log_odds(class_prior: FloatArray) -> FloatArray:
    """What the class probabilities add to the scores: one entry a contrast."""
    log_prior: FloatArray = np.log(class_prior)
    return log_prior[1:] - log_prior[:1] if len(log_prior) == 2 else log_prior
