"""Linear programming discriminant analysis (Cai and Liu 2012)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ebda.baselines.base import SampleClassifier, midpoint_rule
from ebda.baselines.held_out import amounts, fewest, sum_over_folds
from ebda.baselines.penalised_direction import LowRank, direction, path
from ebda.baselines.scaled_samples import ScaledSamples
from ebda.baselines.sparse_lda import winners
from ebda.baselines.thresholded_covariance import rate
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, SELECTED, linear_schema
from ebda.kernels.rows import any_nonzero
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import NUMBER, Array, Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray

# Penalties that are compared, as parts of the largest difference.
PARTS = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_GAP = 1e-6


class LinearProgrammingDA(SampleClassifier):
    """LDA whose weights are estimated directly, with a penalty for their length.

    The weights b of a contrast d of the class means minimise ``|b|_1`` subject to
    ``|(S + r I) b - d|_inf <= t`` (Cai and Liu 2012), where S is the pooled covariance.
    Neither S nor d has to be sparse, only the weights ``S^-1 d``. The linear program is
    solved exactly by HiGHS, for the rows and columns that matter; S is never formed,
    and `duality_gap_` certifies the solution. Each class of many has a program of its
    own, against the mean of all samples.

    Parameters
    ----------
    penalty : None, float or array-like
        t, or the penalties to choose from by cross-validation: the fewest errors, and
        of equal ones the largest penalty. None for parts of the largest difference,
        from 0.9 to 0.3. In a fold where S is singular, smaller penalties are
        not tried once a solution has more features than half of its samples.
    ridge : None or float
        r. None for ``sqrt(log p / n)`` where S is singular, and 0 elsewhere: without it
        a small penalty may have no solution, since d need not be in the range of S.
    scaled : bool
        Whether X is divided by the standard deviations, so that units do not matter,
        or taken as it is, as in the paper.
    cv : int, cross-validation splitter or iterable
        Number of stratified folds, no more than the smallest class has samples; or
        what makes the splits, or the splits.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.
    random_state : int, RandomState or None
        Determines the folds if `cv` is a number.

    Attributes
    ----------
    penalty_, ridge_ : float
        t and r.
    penalties_ : ndarray of shape (n_penalties,)
        The penalties, ascending.
    errors_ : ndarray of shape (n_penalties,)
        Number of errors of held-out samples; infinite for those that were not tried
        or had no solution, zero where there is one penalty only.
    duality_gap_ : float
        How much smaller ``|b|_1`` could be, at most; the largest of the contrasts.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Warns
    -----
    ConvergenceWarning
        If the duality gap exceeds 1e-6 of the length of the weights.

    References
    ----------
    Cai and Liu (2012), Journal of the American Statistical Association 106, 1566-1577.

    Examples
    --------
    >>> from ebda.baselines import LinearProgrammingDA
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=200, n_signals=5, effect=2, random_state=0)
    >>> model = LinearProgrammingDA(random_state=0).fit(sim.data, sim.target)
    >>> bool(model.selected_[:5].sum() >= 4), model.duality_gap_ < 1e-9
    (True, True)
    """

    def __init__(
        self,
        penalty: Any = None,
        ridge: float | None = None,
        scaled: bool = True,
        cv: Any = 5,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        self.ridge = ridge
        self.scaled = scaled
        self.cv = cv
        self.priors = priors
        self.random_state = random_state

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        samples = ScaledSamples.of(X, codes, self.scaled, moments)
        largest = float(np.abs(samples.differences).max())
        grid = tuple(largest * part for part in PARTS)
        self.penalties_ = amounts("penalty", self.penalty, grid)

        def errors(train: IntArray, test: IntArray) -> FloatArray:
            part = ScaledSamples.of(X[train], codes[train], self.scaled)
            return self._held_out_errors(part, X[test], codes[test])

        self.errors_ = np.zeros(len(self.penalties_))
        if len(self.penalties_) > 1:
            self.errors_ = sum_over_folds(X, codes, self.cv, self.random_state, errors)
        self.penalty_ = float(self.penalties_[fewest(self.errors_[None])[1]])
        matrix = self._matrix(samples)
        self.ridge_ = matrix.ridge
        found = [direction(matrix, d, self.penalty_) for d in samples.differences]
        if any(one is None for one in found):
            raise ValueError(
                f"no weights meet penalty={self.penalty_:g} with ridge={self.ridge_:g};"
                " give a larger one of either"
            )
        solved = [one for one in found if one is not None]
        weights = np.array([one.weights for one in solved])
        self.duality_gap_ = max(one.gap for one in solved)
        if self.duality_gap_ > _GAP * max(1.0, float(np.abs(weights).sum())):
            warnings.warn(
                f"the duality gap of the linear program is {self.duality_gap_:.2g}; "
                "give a larger ridge",
                ConvergenceWarning,
                stacklevel=3,
            )
        rule = midpoint_rule(samples.coefficients(weights), moments, self.class_prior_)
        self.selected_ = any_nonzero(rule.coef)
        return rule

    def _matrix(self, samples: ScaledSamples) -> LowRank:
        """The covariance, and the ridge that was asked for."""
        p, ridge = len(samples.unit), self.ridge
        if ridge is None:
            ridge = rate(p, len(samples.residual)) if samples.df < p else 0.0
            # In the units of X, a part of the mean variance.
            ridge *= float((samples.residual**2).sum() / samples.df / p)
        if not ridge >= 0:
            raise ValueError(f"ridge must be None, zero or more, got {self.ridge!r}")
        return LowRank(samples.residual / np.sqrt(samples.df), float(ridge))

    def _held_out_errors(
        self, samples: ScaledSamples, X: Any, codes: IntArray
    ) -> FloatArray:
        """Errors of held-out samples for each penalty, infinite without a solution."""
        matrix = self._matrix(samples)
        errors = np.full(len(self.penalties_), np.inf)
        descending = self.penalties_[::-1]
        paths = [path(matrix, d, descending) for d in samples.differences]
        for place, weights in enumerate(zip(*paths, strict=True), start=1):
            if any(row is None for row in weights):
                break
            rows = np.array(weights)
            coef = samples.coefficients(rows)
            rule = midpoint_rule(coef, samples.moments, self.class_prior_)
            errors[-place] = (winners(X, rule) != codes).sum()
            n, p = samples.residual.shape
            if samples.df < p and (rows != 0).sum(axis=1).max() > n / 2:
                break
        return errors


register(
    linear_schema(
        LinearProgrammingDA,
        class_prior_=CLASS_PRIOR,
        selected_=SELECTED,
        penalty_=Scalar((float,), least=0),
        ridge_=Scalar((float,), least=0),
        penalties_=Array(("t",), ("finite", "zero or more", "ascending")),
        errors_=Array(("t",), ("zero or more",)),
        duality_gap_=NUMBER,
    )
)
