"""The linear rule: coefficients and intercept from shrunken contrasts.

For a contrast between two weighted means ``P m`` and ``Q m`` with estimate
``d = scale * eta`` the score is (the paper's equation 4, in units of X)

    (x - (P + Q) m / 2)' D^-1 d + log(prior of P / prior of Q).

With two classes that is the log-odds of the second class, about the midpoint of the
class means. With K classes each class has such a score against the centre of all
samples, and the largest wins. With correlation, D is replaced by the covariance
``S R S`` (:mod:`ebda.covariance.base`).

The midpoint of the sample means is biased where the classes are unequal, and with many
features badly so: the rule is made of the same noise as the means, the more of it the
smaller the class, and the boundary moves into the smaller one. Stein's lemma gives
the expectation of that from the divergence of eta as a function of z, and it is
subtracted (with two classes of one size there is none):

    E noise of d . (P + Q) m / 2 = div eta * sum_k (P_k^2 - Q_k^2) / (2 n_k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ebda.covariance import Covariance
from ebda.kernels.rows import divide_by_root, inner_products, row_products
from ebda.moments import ClassMoments, Contrasts
from ebda.moments.contrasts import error_factor, variance_of
from ebda.moments.design import Design
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Scores are ``X @ coef.T + intercept``.

    Parameters
    ----------
    coef : ndarray of shape (n_contrasts, n_features)
    intercept : ndarray of shape (n_contrasts,)
    score_sd : float
        Standard deviation of the scores within a class, as the covariance of the rule
        has it; over all contrasts, and 1 for a rule without weights.
    correction : ndarray of shape (n_contrasts, n_features), optional
        What each feature adds to the intercept to correct the bias of the midpoint.
        None where nothing is corrected.
    divergence : ndarray of shape (n_contrasts, n_features), optional
        ``d eta_j / d z_j`` of every feature, where it was computed.
    """

    coef: FloatArray
    intercept: FloatArray
    score_sd: float = 1.0
    correction: FloatArray | None = None
    divergence: FloatArray | None = None


def linear_rule(
    moments: ClassMoments,
    contrasts: Contrasts,
    eta: FloatArray,
    covariance: Covariance,
    class_prior: FloatArray,
    divergence: FloatArray | None = None,
) -> LinearRule:
    """Build the rule from the estimate of eta, one row per contrast.

    Parameters
    ----------
    moments, contrasts, covariance
        What the earlier steps returned.
    eta : ndarray of shape (n_contrasts, n_features)
        The estimates.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities.
    divergence : ndarray of shape (n_contrasts, n_features), optional
        ``d eta_j / d z_j`` of every feature, for the unbiased midpoint. None cuts at
        the midpoint of the sample means, as the paper does.
    """
    # In units of S the difference is sqrt(factor) eta, and the covariance is R.
    d = eta * np.sqrt(contrasts.variance_factor)
    if contrasts.any_constant:
        d[:, contrasts.constant] = 0.0
    weights = covariance.solve(d)
    variance = inner_products(d, weights)
    return rule_of_weights(
        moments, contrasts, weights, variance, class_prior, divergence
    )


def rule_of_weights(
    moments: ClassMoments,
    contrasts: Contrasts,
    weights: FloatArray,
    variance: FloatArray,
    class_prior: FloatArray,
    divergence: FloatArray | None = None,
) -> LinearRule:
    """Build the rule from its weights in units of the standard deviations.

    Parameters
    ----------
    moments, contrasts
        What the earlier steps returned.
    weights : ndarray of shape (n_contrasts, n_features)
        ``R^-1`` times the differences; overwritten by the coefficients.
    variance : ndarray of shape (n_contrasts,)
        Variance of each score within a class.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities.
    divergence : ndarray of shape (n_contrasts, n_features), optional
        As in `linear_rule`.
    """
    P, Q = contrasts.positive, contrasts.negative
    coef = weights
    divide_by_root(coef, contrasts.variance)
    if contrasts.any_constant:
        coef[:, contrasts.constant] = 0.0

    at_means = row_products(coef, moments.means)
    at_middle = np.einsum("ck,ck->c", at_means, (P + Q) / 2)
    intercept = log_odds(class_prior) - at_middle
    correction = None
    if divergence is not None:
        if moments.design is not None:
            bias = variance_of(P - Q, P + Q, moments) / 2
        elif moments.observed is None:
            bias = midpoint_bias(contrasts, moments.counts)[:, None]
        else:
            sides = contrasts.positive**2 - contrasts.negative**2
            bias = error_factor(sides, moments.n_values) / 2
        correction = divergence * bias
        intercept += correction.sum(axis=1)
    return LinearRule(coef, intercept, root_of_sum(variance), correction, divergence)


def root_of_sum(variance: FloatArray) -> float:
    """Standard deviation over all contrasts, and 1 where nothing varies."""
    return float(np.sqrt(max(float(variance.sum()), 0.0))) or 1.0


def midpoint_bias(contrasts: Contrasts, counts: FloatArray) -> FloatArray:
    """Bias of the midpoint of each contrast for each unit of the divergence."""
    P, Q = contrasts.positive, contrasts.negative
    bias: FloatArray = ((P**2 - Q**2) / (2 * counts)).sum(axis=1)
    return bias


def slope_covariance(contrasts: Contrasts, design: Design) -> FloatArray | None:
    """Covariance of the contrasts with the slopes on covariates, for a variance of 1.

    The slopes B and the class means m are estimated from the same noise. So the score
    of ``x - c B`` has the bias ``- div eta * (P - Q) cov(m, B) c``, by Stein's lemma as
    that of the midpoint, and would tell the class from the covariates c. This times the
    divergence is to be added to the scores for a unit of each covariate.

    Parameters
    ----------
    contrasts : Contrasts
        P and Q.
    design : Design
        That of the samples.

    Returns
    -------
    ndarray of shape (n_contrasts, n_columns, 1) or (n_contrasts, n_columns, n_features)
        ``(P - Q) cov(m, B)``, for each feature where values are missing; None without
        covariates.
    """
    sides = contrasts.positive - contrasts.negative
    if design.slope_covariance is None:
        return None
    if design.values is not None:
        return design.values.of_slopes(sides)
    return np.asarray((sides @ design.slope_covariance)[..., None])


def log_odds(class_prior: FloatArray) -> FloatArray:
    """What the class probabilities add to the scores: one entry per contrast."""
    log_prior: FloatArray = np.log(class_prior)
    return log_prior[1:] - log_prior[:1] if len(log_prior) == 2 else log_prior
