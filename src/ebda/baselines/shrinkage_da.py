"""Shrinkage discriminant analysis (Ahdesmaki and Strimmer 2010), R's ``sda``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.baselines.base import SampleClassifier
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class ShrinkageDA(SampleClassifier):
    """Discriminant analysis with James-Stein shrinkage of all that is estimated.

    Correlations are shrunken to zero, variances to their median and class
    probabilities to equal ones, each by the amount that Opgen-Rhein and Strimmer
    (2007) estimate from the spread of the summands. The covariance
    ``V^1/2 ((1 - a) R + a I) V^1/2`` is inverted in the space of the samples and never
    formed: O(n^2 p) with n samples and p features. All features are used, as by R's
    ``sda(Xtrain, L)``, whose weights of a feature are its correlation-adjusted
    t-scores times the root of the same matrix.

    A feature without variance after shrinkage, which can only be where half of all
    features have none, has no weight here; R divides by zero there.

    Parameters
    ----------
    diagonal : bool
        Whether to leave correlations out.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities. None for the shrunken shares.

    Attributes
    ----------
    correlation_shrinkage_, variance_shrinkage_, frequency_shrinkage_ : float
        The three amounts, between 0 and 1; that of the correlations is 1 where they
        are left out.
    classes_, coef_, intercept_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import ShrinkageDA
    >>> from ebda.datasets import load_khan
    >>> khan = load_khan()
    >>> train = khan.split == "train"
    >>> model = ShrinkageDA().fit(khan.data[train], khan.target[train])
    >>> model.score(khan.data[~train], khan.target[~train])
    1.0
    """

    def __init__(self, diagonal: bool = False, priors: Any = None) -> None:
        self.diagonal = diagonal
        self.priors = priors

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        counts = moments.counts
        shrunken, self.frequency_shrinkage_ = shrink_frequencies(counts)
        given = self.priors is not None
        prior = validation.class_prior(self.priors, counts) if given else shrunken
        residual = X.astype(np.float64) - moments.means[codes]
        squares = moments.centred_squares.sum(axis=0)
        variance, self.variance_shrinkage_ = shrink_variances(residual, squares)
        # The residuals have K means to be centred by, not one.
        variance *= (len(codes) - 1) / (len(codes) - len(counts))
        sd = np.sqrt(variance)
        inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)

        weights = (moments.means - prior @ moments.means) * inverse
        self.correlation_shrinkage_ = 1.0
        if not self.diagonal:
            root = np.sqrt(squares / (len(codes) - 1))
            scaled = np.divide(
                residual, root, out=np.zeros_like(residual), where=root > 0
            )
            self.correlation_shrinkage_ = shrinkage_of_correlations(scaled)
            weights = solve(scaled, weights, self.correlation_shrinkage_)
        weights *= inverse
        middle = (moments.means + prior @ moments.means) / 2
        constant = np.log(prior) - np.einsum("kj,kj->k", weights, middle)
        self.class_prior_ = prior
        if len(prior) == 2:
            weights, constant = np.diff(weights, axis=0), np.diff(constant)
        return LinearRule(weights, constant)


def shrink_frequencies(counts: FloatArray) -> tuple[FloatArray, float]:
    """Class shares moved towards equal ones, and by how much.

    >>> shrink_frequencies(np.array([5.0, 5.0]))
    (array([0.5, 0.5]), 1.0)
    """
    n, equal = counts.sum(), 1 / len(counts)
    share = counts / n
    noise = (share * (1 - share)).sum() / (n - 1)
    amount = _amount(noise, ((share - equal) ** 2).sum())
    return amount * equal + (1 - amount) * share, amount


def shrink_variances(
    residual: FloatArray, squares: FloatArray
) -> tuple[FloatArray, float]:
    """Variances of centred data moved towards their median, and by how much.

    Parameters
    ----------
    residual : ndarray of shape (n_samples, n_features)
        Data with mean zero.
    squares : ndarray of shape (n_features,)
        Their sums of squares.
    """
    n = len(residual)
    fourth = np.einsum("ij,ij->j", residual**2, residual**2) / n
    noise = (fourth - (squares / n) ** 2).sum() / (n - 1)
    target = np.median(squares)
    amount = _amount(noise, (((squares - target) / n) ** 2).sum())
    return (amount * target + (1 - amount) * squares) / (n - 1), amount


def shrinkage_of_correlations(scaled: FloatArray) -> float:
    """The amount by which to shrink correlations to zero.

    Sums over all pairs of features are had from those over all pairs of samples, less
    the pairs of a feature with itself.

    Parameters
    ----------
    scaled : ndarray of shape (n_samples, n_features)
        Centred data in units of their standard deviations.
    """
    n, p = scaled.shape
    if p == 1:
        return 1.0
    squares = scaled**2
    own = (squares.sum(axis=0) ** 2).sum() / n**2
    gram = scaled @ scaled.T if n < p else scaled.T @ scaled
    of_means = (gram**2).sum() / n**2 - own
    means_of = ((squares.sum(axis=1) ** 2).sum() - (squares**2).sum()) / n
    return _amount((means_of - of_means) / (n - 1), of_means)


def _amount(noise: float, distance: float) -> float:
    """Variance of the estimates over their squared distance to the target, cut at 1."""
    return 1.0 if distance <= 0 else float(np.clip(noise / distance, 0.0, 1.0))


def solve(scaled: FloatArray, rows: FloatArray, amount: float) -> FloatArray:
    """The inverse of ``(1 - a) R + a I`` times each row; of R its pseudo-inverse.

    Parameters
    ----------
    scaled : ndarray of shape (n_samples, n_features)
        Centred data in units of their standard deviations; features without any are
        zero, and their correlation matrix is the identity.
    rows : ndarray of shape (n_rows, n_features)
        What to multiply.
    amount : float
        a.
    """
    if amount == 1:
        return rows
    axes, eigenvalues = _principal_axes(scaled)
    kept = (1 - amount) * eigenvalues + amount
    inside = rows @ axes.T
    outside = 0.0 if amount == 0 else 1 / amount
    solved = outside * rows + inside * (1 / kept - outside) @ axes
    return np.where(scaled.any(axis=0), solved, rows)


def _principal_axes(scaled: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvectors of R, as rows, and its eigenvalues that are not zero."""
    n, p = scaled.shape
    wide = n < p
    gram = scaled @ scaled.T if wide else scaled.T @ scaled
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    values, vectors = values[kept], vectors[:, kept]
    axes = (vectors / np.sqrt(values)).T @ scaled if wide else vectors.T
    return axes, values / (n - 1)


_AMOUNT = Scalar((float,), least=0, most=1)
register(
    linear_schema(
        ShrinkageDA,
        class_prior_=CLASS_PRIOR,
        correlation_shrinkage_=_AMOUNT,
        variance_shrinkage_=_AMOUNT,
        frequency_shrinkage_=_AMOUNT,
    )
)
