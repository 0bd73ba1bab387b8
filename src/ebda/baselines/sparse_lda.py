"""Sparse linear discriminant analysis (Shao, Wang, Deng and Wang 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.baselines.base import SampleClassifier, midpoint_rule
from ebda.baselines.held_out import amounts, fewest, sum_over_folds
from ebda.baselines.kept_pairs import Thresholded, keep_pairs
from ebda.baselines.scaled_samples import ScaledSamples
from ebda.baselines.sparse_covariance import PRECISE, SparseCovariance
from ebda.baselines.thresholded_covariance import Threshold, rate
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.kernels.rows import any_nonzero
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.sizes import sizes
from ebda.storage.fields import COUNT, Array, Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray

# Constants that are compared; little is left beyond the largest. Of the pairs without a
# covariance about p**(-M1**2 / 2) are kept: below 1 they are most of all, and cost the
# most time.
COVARIANCE = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
DIFFERENCE = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
# Precision of the weights that held-out samples are classified by.
_ROUGH = 1e-5


class SparseLDA(SampleClassifier):
    """LDA with thresholds for the covariances and for the differences of the means.

    Covariances of size ``M1 sqrt(log p / n)`` or less, and differences of size
    ``M2 (log p / n)**a`` or less, are set to zero (Shao, Wang, Deng and Wang 2011,
    section 3). The constants are chosen by cross-validation: the fewest errors, and of
    equal ones the largest M1, then the largest M2.

    The covariance is a sparse matrix, which is made positive definite where it is not,
    as in :class:`ThresholdedLDA`.

    Parameters
    ----------
    covariance_constant : None, float or array-like
        M1, or the constants to choose from; 1 for the bare rate of the paper. None for
        1, 1.5, 2, 2.5, 3 and 4.
    difference_constant : None, float or array-like
        M2, or the constants to choose from; 1 for the bare rate of the paper.
    exponent : float
        a, between 0 and 1/2; the paper takes 0.3.
    scaled : bool
        Whether correlations, and differences in units of the standard deviations, are
        thresholded, so that units do not matter, or X as it is, as in the paper.
    cv : int, cross-validation splitter or iterable
        Number of stratified folds, no more than the smallest class has samples; or
        what makes the splits, or the splits.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.
    random_state : int, RandomState or None
        Determines the folds if `cv` is a number.

    Attributes
    ----------
    covariance_constant_, difference_constant_ : float
        M1 and M2. An M1 that would keep more pairs than memory should hold
        (:class:`ebda.sizes.Sizes`) is not chosen.
    errors_ : ndarray of shape (n_covariance_constants, n_difference_constants)
        Number of errors of held-out samples; zero where there is one choice only.
    n_pairs_ : int
        Number of pairs of features whose covariance is not zero.
    n_differences_ : int
        Number of features with a difference that is not zero.
    lift_ : float
        As in :class:`ThresholdedLDA`.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`. A feature without a difference has a weight
        where it is correlated with one that has.

    References
    ----------
    Shao, Wang, Deng and Wang (2011), Annals of Statistics 39, 1241-1265.

    Examples
    --------
    >>> from ebda.baselines import SparseLDA
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=200, n_signals=5, effect=2, random_state=0)
    >>> model = SparseLDA(random_state=0).fit(sim.data, sim.target)
    >>> model.selected_[:5].sum().item()
    5
    """

    def __init__(
        self,
        covariance_constant: Any = None,
        difference_constant: Any = None,
        exponent: float = 0.3,
        scaled: bool = True,
        cv: Any = 10,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.covariance_constant = covariance_constant
        self.difference_constant = difference_constant
        self.exponent = exponent
        self.scaled = scaled
        self.cv = cv
        self.priors = priors
        self.random_state = random_state

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        if not 0 < self.exponent < 0.5:
            raise ValueError(
                f"exponent must lie between 0 and 0.5, got {self.exponent!r}"
            )
        prior = validation.class_prior(self.priors, moments.counts)
        samples = ScaledSamples.of(X, codes, self.scaled, moments)
        first = amounts("covariance_constant", self.covariance_constant, COVARIANCE)
        second = amounts("difference_constant", self.difference_constant, DIFFERENCE)
        whole, lowest = self._pairs(samples, first, sizes.covariance_pairs)
        first = first[lowest:]

        def errors(train: IntArray, test: IntArray) -> FloatArray:
            part = ScaledSamples.of(X[train], codes[train], self.scaled)
            pairs, _ = self._pairs(part, first)
            found = np.empty((len(first), len(second)))
            for row, constant in enumerate(first):
                covariance = self._covariance(part, pairs, constant)
                rules = self._rules(part, covariance, second, prior, _ROUGH)
                for column, rule in enumerate(rules):
                    wrong = winners(X[test], rule) != codes[test]
                    found[row, column] = wrong.sum()
            return found

        self.errors_ = np.zeros((len(first), len(second)))
        if self.errors_.size > 1:
            self.errors_ = sum_over_folds(X, codes, self.cv, self.random_state, errors)
        row, column = fewest(self.errors_)
        self.covariance_constant_ = float(first[row])
        self.difference_constant_ = float(second[column])
        covariance = self._covariance(samples, whole, first[row])
        (rule,) = self._rules(samples, covariance, second[[column]], prior, PRECISE)
        self.n_pairs_, self.lift_ = covariance.n_pairs, covariance.lift
        kept = self._kept_differences(samples, second[column])
        self.n_differences_ = int(any_nonzero(kept).sum())
        self.selected_, self.class_prior_ = any_nonzero(rule.coef), prior
        return rule

    def _kept_differences(self, samples: ScaledSamples, constant: float) -> FloatArray:
        """Differences beyond their threshold, and zero for the others."""
        size = rate(len(samples.unit), len(samples.residual)) ** (2 * self.exponent)
        d = samples.differences
        return np.where(np.abs(d) > constant * size, d, 0.0)

    def _pairs(
        self, samples: ScaledSamples, first: FloatArray, most: float = np.inf
    ) -> tuple[Thresholded, int]:
        """Covariances for all M1 that keep few enough, and the place of the first."""
        steps = first * rate(len(samples.unit), len(samples.residual))
        return keep_pairs(samples.residual, samples.df, Threshold(), steps, most)

    def _covariance(
        self, samples: ScaledSamples, pairs: Thresholded, constant: float
    ) -> SparseCovariance:
        """The covariance with one M1."""
        return pairs.covariance(
            constant * rate(len(samples.unit), len(samples.residual))
        )

    def _rules(
        self,
        samples: ScaledSamples,
        covariance: SparseCovariance,
        second: FloatArray,
        prior: FloatArray,
        tolerance: float,
    ) -> list[LinearRule]:
        """The rules with one covariance and several M2."""
        kept = np.vstack([self._kept_differences(samples, m) for m in second])
        weights = np.split(covariance.solve(kept, tolerance), len(second))
        coefs = [samples.coefficients(rows) for rows in weights]
        return [midpoint_rule(c, samples.moments, prior) for c in coefs]


def winners(X: Any, rule: LinearRule) -> IntArray:
    """Place of the class with the largest score; the first of those that tie."""
    score = X @ rule.coef.T + rule.intercept
    if score.shape[1] == 1:
        score = np.hstack([np.zeros_like(score), score])
    best: IntArray = score.argmax(axis=1)
    return best


_SIZE = Scalar((float,), least=0)
register(
    linear_schema(
        SparseLDA,
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        covariance_constant_=_SIZE,
        difference_constant_=_SIZE,
        errors_=Array(("rows", "columns"), ("zero or more",)),
        n_pairs_=COUNT,
        n_differences_=COUNT,
        lift_=_SIZE,
    )
)
