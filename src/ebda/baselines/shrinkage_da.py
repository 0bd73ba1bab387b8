"""Shrinkage discriminant analysis (Ahdesmaki and Strimmer 2010), R's ``sda``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ebda.baselines.base import SampleClassifier
from ebda.baselines.local_fdr import local_fdr, mode
from ebda.baselines.nonlinear import between_classes
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import Array, Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class ShrinkageDA(SampleClassifier):
    """Discriminant analysis with James-Stein shrinkage of all that is estimated.

    Correlations are shrunken to zero, variances to their median and class
    probabilities to equal ones, each by the amount that Opgen-Rhein and Strimmer
    (2007) estimate from the spread of the summands. The covariance
    ``V^1/2 ((1 - a) R + a I) V^1/2`` is inverted in the space of the samples and never
    formed: O(n^2 p) with n samples and p features.

    All features are used, as by R's ``sda(Xtrain, L)``, or those whose differences are
    not most likely of the null: with `max_local_fdr` the correlation-adjusted t-scores
    ``((1 - a) R + a I)^-1/2 t_k``, t_k of class k against the mean of all, have local
    false discovery rates (:mod:`ebda.baselines.local_fdr`), and the rule is that of the
    features with smaller ones, estimated anew. With more than two classes the rates are
    those of the cube root of ``sum_k (1 - f_k) cat_k^2`` about its mode, with the
    shares f_k of the classes (R's ``sda.ranking``).

    A feature without variance after shrinkage, which can only be where half of all
    features have none, has no weight here; R divides by zero there.

    Parameters
    ----------
    diagonal : bool
        Whether to leave correlations out.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities. None for the shrunken shares.
    max_local_fdr : float, optional
        Features with a local false discovery rate below it are used, and none are if
        there is no such. The authors take 0.8, for false nondiscoveries then have the
        rate 0.2 at most. By default all features are used.

    Attributes
    ----------
    correlation_shrinkage_, variance_shrinkage_, frequency_shrinkage_ : float
        The three amounts, between 0 and 1; that of the correlations is 1 where they
        are left out. Of the features in use.
    cat_scores_ : ndarray of shape (n_classes, n_features)
        Correlation-adjusted t-scores, where features are selected.
    local_fdr_ : ndarray of shape (n_features,)
        Local false discovery rates, where features are selected.
    classes_, coef_, intercept_, selected_, class_prior_
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
    >>> few = ShrinkageDA(max_local_fdr=0.8).fit(khan.data[train], khan.target[train])
    >>> few.selected_.sum().item(), few.score(khan.data[~train], khan.target[~train])
    (95, 1.0)
    """

    def __init__(
        self,
        diagonal: bool = False,
        priors: Any = None,
        max_local_fdr: float | None = None,
    ) -> None:
        self.diagonal = diagonal
        self.priors = priors
        self.max_local_fdr = max_local_fdr

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        shrunken, self.frequency_shrinkage_ = shrink_frequencies(moments.counts)
        self.class_prior_ = shrunken
        if self.priors is not None:
            self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        residual = X.astype(np.float64) - moments.means[codes]
        squares = moments.centred_squares.sum(axis=0)
        used = np.full(len(squares), True)
        for name in _OF_SELECTION:
            self.__dict__.pop(name, None)
        if self.max_local_fdr is not None:
            if not 0 < self.max_local_fdr <= 1:
                raise ValueError(
                    "max_local_fdr must be None or lie between 0 and 1, got "
                    f"{self.max_local_fdr!r}"
                )
            everything = self._shrunken(residual, squares, moments)
            self.cat_scores_ = everything.cat_scores(moments, shrunken)
            self.local_fdr_ = local_fdr_of_scores(self.cat_scores_, shrunken)
            used = self.local_fdr_ < self.max_local_fdr
        self.selected_ = used
        means = moments.means[:, used]
        part = self._shrunken(residual[:, used], squares[used], moments)
        self.variance_shrinkage_ = part.variance_shrinkage
        self.correlation_shrinkage_ = part.correlation_shrinkage
        weights = part.weights(means - self.class_prior_ @ means)
        rule = between_classes(weights, means, self.class_prior_)
        coef = np.zeros((len(rule.coef), len(used)))
        coef[:, used] = rule.coef
        return LinearRule(coef, rule.intercept)

    def _shrunken(
        self, residual: FloatArray, squares: FloatArray, moments: ClassMoments
    ) -> ShrunkenCovariance:
        """Variances and correlations of some features."""
        n = len(residual)
        if not residual.shape[1]:
            return ShrunkenCovariance(residual, np.zeros(0), 1.0, 1.0)
        variance, amount = shrink_variances(residual, squares)
        # The residuals have K means to be centred by, not one.
        variance *= (n - 1) / (n - len(moments.counts))
        sd = np.sqrt(variance)
        inverse = np.divide(1.0, sd, out=np.zeros_like(sd), where=sd > 0)
        root = np.sqrt(squares / (n - 1))
        scaled = np.divide(residual, root, out=np.zeros_like(residual), where=root > 0)
        of_correlations = 1.0 if self.diagonal else shrinkage_of_correlations(scaled)
        return ShrunkenCovariance(scaled, inverse, of_correlations, amount)


@dataclass(frozen=True, eq=False)
class ShrunkenCovariance:
    """``V^1/2 ((1 - a) R + a I) V^1/2`` of some features.

    Parameters
    ----------
    scaled : ndarray of shape (n_samples, n_features)
        Residuals in units of their standard deviations.
    inverse_sd : ndarray of shape (n_features,)
        Inverse roots of the shrunken variances; 0 for a feature without any.
    correlation_shrinkage, variance_shrinkage : float
        The amounts.
    """

    scaled: FloatArray
    inverse_sd: FloatArray
    correlation_shrinkage: float
    variance_shrinkage: float

    def weights(self, differences: FloatArray) -> FloatArray:
        """The inverse times each row."""
        scaled = differences * self.inverse_sd
        solved = solve(self.scaled, scaled, self.correlation_shrinkage)
        return solved * self.inverse_sd

    def cat_scores(self, moments: ClassMoments, shares: FloatArray) -> FloatArray:
        """Correlation-adjusted t-scores of each class against the mean of all.

        Parameters
        ----------
        moments : ClassMoments
            Of the same features.
        shares : ndarray of shape (n_classes,)
            Shares of the classes.
        """
        error = np.sqrt((1 / shares - 1) / moments.counts.sum())
        deviations = moments.means - shares @ moments.means
        t = deviations * self.inverse_sd / error[:, None]
        return solve(self.scaled, t, self.correlation_shrinkage, exponent=0.5)


def local_fdr_of_scores(scores: FloatArray, shares: FloatArray) -> FloatArray:
    """Local false discovery rates of the features.

    Parameters
    ----------
    scores : ndarray of shape (n_classes, n_features)
        Correlation-adjusted t-scores. Those of two classes are opposite.
    shares : ndarray of shape (n_classes,)
        Shares of the classes.
    """
    if len(shares) == 2:
        return local_fdr(scores[0])
    # Wilson and Hilferty: the cube root of a chi-square variable is nearly normal.
    z = np.cbrt((1 - shares) @ scores**2)
    return local_fdr(z - mode(z))


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


def solve(
    scaled: FloatArray, rows: FloatArray, amount: float, exponent: float = 1.0
) -> FloatArray:
    """``((1 - a) R + a I)^-e`` times each row; of R its pseudo-inverse.

    Parameters
    ----------
    scaled : ndarray of shape (n_samples, n_features)
        Centred data in units of their standard deviations; features without any are
        zero, and their correlation matrix is the identity.
    rows : ndarray of shape (n_rows, n_features)
        What to multiply.
    amount : float
        a.
    exponent : float
        e.
    """
    if amount == 1:
        return rows
    axes, eigenvalues = _principal_axes(scaled)
    kept = ((1 - amount) * eigenvalues + amount) ** -exponent
    inside = rows @ axes.T
    outside = 0.0 if amount == 0 else amount**-exponent
    solved = outside * rows + inside * (kept - outside) @ axes
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


_OF_SELECTION = {
    "cat_scores_": Array(("k", "p")),
    "local_fdr_": Array(("p",), ("zero or more",)),
}
_AMOUNT = Scalar((float,), least=0, most=1)
register(
    linear_schema(
        ShrinkageDA,
        None,
        tuple(_OF_SELECTION),
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        correlation_shrinkage_=_AMOUNT,
        variance_shrinkage_=_AMOUNT,
        frequency_shrinkage_=_AMOUNT,
        **_OF_SELECTION,
    )
)
