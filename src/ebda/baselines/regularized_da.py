"""Regularised discriminant analysis (Friedman 1989), with shrunken centroids or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.baselines.held_out import amounts, fewest, sum_over_folds
from ebda.baselines.nonlinear import (
    NonlinearClassifier,
    between_classes,
    nonlinear_schema,
)
from ebda.baselines.regularized_centroids import Centroids
from ebda.baselines.regularized_covariance import (
    CentredSamples,
    class_spectra,
    held_out_errors,
    row_space,
    varies_within,
)
from ebda.estimators import validation
from ebda.estimators.linear_classifier import SELECTED
from ebda.kernels.rows import any_nonzero
from ebda.moments.classwise import ClassMoments
from ebda.rule.linear_rule import LinearRule
from ebda.storage.fields import NOT_NEGATIVE, Array, Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray

# Friedman's grid of the amount towards the pooled covariance; that of the other has
# two small amounts more, which matter where there are more features than samples.
POOLING = (0.0, 0.125, 0.354, 0.65, 1.0)
SHRINKAGE = (0.0, 0.01, 0.1, 0.25, 0.5, 0.75, 1.0)
# Thresholds of the centroids as parts of the largest weight.
THRESHOLD = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)


class RegularizedDA(NonlinearClassifier):
    """Discriminant analysis between LDA, QDA and the independence rule.

    The covariance of each class is moved towards the pooled one by the amount a, and
    then towards a target by the amount g (Friedman 1989, equations 18 and 19)::

        S_k(a)    = ((1 - a) f_k S_k + a f S) / ((1 - a) f_k + a f)
        S_k(a, g) = (1 - g) S_k(a) + g T_k(a)

    S_k and S are the sample covariances of the class and within the classes, with
    ``f_k = n_k - 1`` and ``f = N - K`` degrees of freedom. T is the identity times the
    mean variance, or the diagonal. a = 0 is quadratic and a = 1 linear discriminant
    analysis; a = g = 1 with the diagonal is the independence rule. Both amounts are
    chosen by cross-validation: the fewest errors, and of equal ones the largest a,
    then the largest g.

    With ``centroids=True`` the covariance is pooled, and the weights of the classes,
    ``S(1, g)^-1`` times their means less the overall mean, are moved towards zero by a
    soft threshold, which is chosen too (Guo, Hastie and Tibshirani 2007; R's package
    rda). Weights are in units of the root of T, so that the units of X do not change
    the rule; R's are in those of X, and agree where T is the identity.

    No matrix is larger than n x n with n samples, or p x p with p features where
    there are fewer.

    Parameters
    ----------
    pooling : None, float or array-like
        a, or the amounts to choose from. None for Friedman's grid. It is 1 with
        shrunken centroids.
    shrinkage : None, float or array-like
        g, or the amounts to choose from.
    target : {"identity", "diagonal"}
        T. Features that are constant within the classes are left out by "diagonal".
    centroids : bool
        Whether weights are thresholded.
    threshold : None, float or array-like
        The threshold of the weights, or those to choose from. None for parts of the
        largest weight.
    cv : int, cross-validation splitter or iterable
        Number of stratified folds, no more than the smallest class has samples; or
        what makes the splits, or the splits.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.
    random_state : int, RandomState or None
        Determines the folds if `cv` is a number.

    Attributes
    ----------
    pooling_, shrinkage_ : float
        The amounts a and g.
    threshold_ : float
        The threshold; 0 without `centroids`.
    errors_ : ndarray of shape (n_poolings, n_shrinkages)
        Number of errors of held-out samples, infinite where a covariance is singular;
        of shape (n_shrinkages, n_thresholds) for `centroids`. Zero where there is one
        choice only, and nothing is held out.
    means_ : ndarray of shape (n_classes, n_features)
        Class means.
    inverse_diagonal_, axes_, axis_weights_, axis_classes_, log_det_ : ndarray
        The inverse covariance of class k is ``diag(inverse_diagonal_[k]) + sum_a
        axis_weights_[a] axes_[a] axes_[a]'`` over its axes, and this is its log
        determinant; absent where the rule is linear.
    classes_, coef_, intercept_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`; ``coef_`` and ``intercept_`` where the rule
        is linear, for a = 1.

    References
    ----------
    Friedman (1989), Journal of the American Statistical Association 84, 165-175.
    Guo, Hastie and Tibshirani (2007), Biostatistics 8, 86-100.

    Examples
    --------
    >>> from ebda.baselines import RegularizedDA
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=500, effect=0.7, random_state=0)
    >>> model = RegularizedDA(random_state=0).fit(sim.data, sim.target)
    >>> model.pooling_, model.score(sim.data, sim.target)
    (1.0, 1.0)
    """

    def __init__(
        self,
        pooling: Any = None,
        shrinkage: Any = None,
        target: str = "identity",
        centroids: bool = False,
        threshold: Any = None,
        cv: Any = 10,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.pooling = pooling
        self.shrinkage = shrinkage
        self.target = target
        self.centroids = centroids
        self.threshold = threshold
        self.cv = cv
        self.priors = priors
        self.random_state = random_state

    def _learn_classes(
        self, X: FloatArray, codes: IntArray, moments: ClassMoments
    ) -> LinearRule | None:
        validation.one_of("target", self.target, ["identity", "diagonal"])
        for name in _QUADRATIC:
            self.__dict__.pop(name, None)
        self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        self.means_ = moments.means
        used = self._used(X, codes)
        if self.centroids:
            return self._thresholded(X[:, used], codes, used)
        self._choose(X[:, used], codes)
        self.selected_ = used
        return self._normal_rule(X[:, used], codes)

    def _used(self, X: FloatArray, codes: IntArray) -> npt.NDArray[np.bool_]:
        """Features that there is a covariance for."""
        if self.target == "diagonal":
            return varies_within(X, codes)
        return np.full(X.shape[1], True)

    def _choose(self, X: FloatArray, codes: IntArray) -> None:
        """The amounts, by cross-validation where there are several."""
        poolings = amounts("pooling", self.pooling, POOLING, most=1)
        shrinkages = amounts("shrinkage", self.shrinkage, SHRINKAGE, most=1)
        self.errors_ = np.zeros((len(poolings), len(shrinkages)))
        diagonal, p = self.target == "diagonal", X.shape[1]
        points = X if diagonal else row_space(X)

        def errors(train: IntArray, test: IntArray) -> FloatArray:
            used = self._used(points[train], codes[train])
            part = points[:, used]
            return held_out_errors(
                CentredSamples.of(
                    part[train],
                    codes[train],
                    len(self.class_prior_),
                    part.shape[1] if diagonal else p,
                ),
                part[test],
                codes[test],
                self.class_prior_,
                poolings,
                shrinkages,
                diagonal,
            )

        if self.errors_.size > 1:
            self.errors_ = sum_over_folds(
                points, codes, self.cv, self.random_state, errors
            )
        row, column = fewest(self.errors_)
        self.pooling_, self.shrinkage_ = float(poolings[row]), float(shrinkages[column])
        self.threshold_ = 0.0

    def _normal_rule(self, X: FloatArray, codes: IntArray) -> LinearRule | None:
        """The rule with the amounts that were chosen, of the features in use."""
        n_classes, g = len(self.class_prior_), self.shrinkage_
        samples = CentredSamples.of(X, codes, n_classes, X.shape[1])
        spectra = class_spectra(samples, self.pooling_, self.target == "diagonal")
        if spectra is None or not all(own.is_regular(g) for own in spectra):
            raise ValueError(
                f"a covariance with pooling={self.pooling_:g} and shrinkage={g:g} is "
                "singular; allow larger amounts"
            )
        if self.pooling_ == 1:
            deviations = samples.means - self.class_prior_ @ samples.means
            weights = self._spread(spectra[0].solve(deviations, g))
            return between_classes(weights, self.means_, self.class_prior_)
        factors = [own.factors(g) for own in spectra]
        self.inverse_diagonal_ = self._spread(
            np.array(
                [
                    outside / own.root**2
                    for (outside, _), own in zip(factors, spectra, strict=True)
                ]
            )
        )
        self.axes_ = self._spread(np.vstack([own.axes / own.root for own in spectra]))
        self.axis_weights_ = np.concatenate([more for _, more in factors])
        sizes = [len(more) for _, more in factors]
        self.axis_classes_ = np.repeat(np.arange(n_classes), sizes)
        self.log_det_ = np.array([own.log_det(g) for own in spectra])
        return None

    def _spread(self, rows: FloatArray) -> FloatArray:
        """Rows of all features from those of the features in use."""
        found = np.zeros((len(rows), len(self.selected_)))
        found[:, self.selected_] = rows
        return found

    def _log_joint(self, X: FloatArray) -> FloatArray:
        distance = np.empty((len(X), len(self.class_prior_)))
        for k, mean in enumerate(self.means_):
            rows, own = X - mean, self.axis_classes_ == k
            distance[:, k] = (rows @ self.axes_[own].T) ** 2 @ self.axis_weights_[own]
            distance[:, k] += rows**2 @ self.inverse_diagonal_[k]
        joint: FloatArray = np.log(self.class_prior_) - (distance + self.log_det_) / 2
        return joint

    def _thresholded(
        self, X: FloatArray, codes: IntArray, used: npt.NDArray[np.bool_]
    ) -> LinearRule:
        """The rule with shrunken centroids, of the features in use."""
        if not (self.pooling is None or np.array_equal(self.pooling, 1)):
            raise ValueError(
                f"shrunken centroids need pooling=1, got {self.pooling!r}; leave it out"
            )
        diagonal, prior = self.target == "diagonal", self.class_prior_
        shrinkages = amounts("shrinkage", self.shrinkage, SHRINKAGE, most=1)
        whole = Centroids.of(X, codes, prior, diagonal)
        if self.threshold is None:
            thresholds = whole.largest(shrinkages)[:, None] * np.array(THRESHOLD)
        else:
            given = amounts("threshold", self.threshold, ())
            thresholds = np.tile(given, (len(shrinkages), 1))

        def errors(train: IntArray, test: IntArray) -> FloatArray:
            kept = self._used(X[train], codes[train])
            part = Centroids.of(X[train][:, kept], codes[train], prior, diagonal)
            return part.errors(X[test][:, kept], codes[test], shrinkages, thresholds)

        self.errors_ = np.zeros(thresholds.shape)
        if self.errors_.size > 1:
            self.errors_ = sum_over_folds(X, codes, self.cv, self.random_state, errors)
        column, row = fewest(self.errors_.T)
        self.pooling_, self.shrinkage_ = 1.0, float(shrinkages[row])
        self.threshold_ = float(thresholds[row, column])
        if not whole.spectrum.is_regular(self.shrinkage_):
            raise ValueError(
                "the pooled covariance is singular; allow a shrinkage larger than 0"
            )
        rule = whole.rule(self.shrinkage_, self.threshold_)
        self.selected_ = used
        coef = self._spread(rule.coef)
        self.selected_ = any_nonzero(coef)
        return LinearRule(coef, rule.intercept)


_QUADRATIC = {
    "inverse_diagonal_": Array(("k", "p"), NOT_NEGATIVE),
    "axes_": Array(("a", "p")),
    "axis_weights_": Array(("a",)),
    "axis_classes_": Array(("a",), ("zero or more",), np.intp),
    "log_det_": Array(("k",)),
}
_AMOUNT = Scalar((float,), least=0, most=1)
register(
    nonlinear_schema(
        RegularizedDA,
        optional=tuple(_QUADRATIC),
        pooling_=_AMOUNT,
        shrinkage_=_AMOUNT,
        threshold_=Scalar((float,), least=0),
        errors_=Array(("rows", "columns"), ("zero or more",)),
        means_=Array(("k", "p")),
        selected_=SELECTED,
        **_QUADRATIC,
    )
)
