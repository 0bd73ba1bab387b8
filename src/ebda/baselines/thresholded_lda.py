"""Linear discriminant analysis with a thresholded covariance."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ebda.baselines.base import SampleClassifier, midpoint_rule
from ebda.baselines.held_out import amounts
from ebda.baselines.kept_pairs import keep_pairs
from ebda.baselines.scaled_samples import ScaledSamples
from ebda.baselines.thresholded_covariance import (
    CONSTANTS,
    Threshold,
    rate,
    split_risks,
)
from ebda.estimators import validation
from ebda.estimators.linear_classifier import CLASS_PRIOR, linear_schema
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import choose_features
from ebda.rule.linear_rule import LinearRule
from ebda.sizes import sizes
from ebda.storage.fields import COUNT, Array, Scalar
from ebda.storage.objects import register
from ebda.typing import FloatArray, IntArray


class ThresholdedLDA(SampleClassifier):
    """LDA with a covariance whose small entries are set to zero.

    Covariances below ``M w_ij sqrt(log p / n)`` are zero, with w_ij = 1 (Bickel and
    Levina 2008) or the standard deviation of the summands of the covariance (adaptive:
    Cai and Liu 2011); variances stay as they are. The constant M minimises the squared
    distance between the thresholded covariance of one part of the samples and the plain
    one of the other, over random splits into ``n - n / log n`` and ``n / log n``.

    The covariance is a sparse matrix: blocks of the p x p products are formed and
    forgotten. Where it is not positive definite, as is usual for p > n unless the
    threshold is high, the identity times `lift_`, in units of the standard deviations,
    is added, so that the smallest eigenvalue is 0.1.

    Parameters
    ----------
    kind : {"hard", "soft"}
        Whether covariances beyond the threshold are kept, or moved towards zero by it.
    adaptive : bool
        Whether each covariance has a threshold of its own.
    constant : None, float or array-like
        M, or the constants to choose from. None for 0, 0.1, ..., 4.
    scaled : bool
        Whether correlations are thresholded, so that units do not matter, or
        covariances as in the papers. Adaptive thresholds are the same for both.
    n_splits : int
        Number of random splits.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.
    random_state : int, RandomState or None
        Determines the splits.

    Attributes
    ----------
    constant_ : float
        M. Constants that would keep more pairs than memory should hold
        (:class:`ebda.sizes.Sizes`) are left out of the choice.
    constants_, risks_ : ndarray of shape (n_constants,)
        The constants and the mean squared distance of each, above the diagonal and up
        to what is common to all; zero where there is one constant only.
    n_pairs_ : int
        Number of pairs of features whose covariance is not zero.
    lift_ : float
        What was added to the correlations' diagonal; 0 if they are positive definite.
    classes_, coef_, intercept_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    References
    ----------
    Bickel and Levina (2008), Annals of Statistics 36, 2577-2604.
    Cai and Liu (2011), Journal of the American Statistical Association 106, 672-684.

    Examples
    --------
    >>> from ebda.baselines import ThresholdedLDA
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=200, effect=0.7, rho=0.8, random_state=0)
    >>> model = ThresholdedLDA(random_state=0).fit(sim.data, sim.target)
    >>> 199 < model.n_pairs_ < 1000
    True
    """

    def __init__(
        self,
        kind: str = "hard",
        adaptive: bool = False,
        constant: Any = None,
        scaled: bool = True,
        n_splits: int = 50,
        priors: Any = None,
        random_state: Any = None,
    ) -> None:
        self.kind = kind
        self.adaptive = adaptive
        self.constant = constant
        self.scaled = scaled
        self.n_splits = n_splits
        self.priors = priors
        self.random_state = random_state

    def _learn(self, X: Any, codes: IntArray, moments: ClassMoments) -> LinearRule:
        validation.one_of("kind", self.kind, ["hard", "soft"])
        constants = amounts("constant", self.constant, CONSTANTS)
        self.class_prior_ = validation.class_prior(self.priors, moments.counts)
        threshold = Threshold(self.kind == "soft", bool(self.adaptive))
        samples = ScaledSamples.of(X, codes, self.scaled, moments)
        step = rate(samples.residual.shape[1], len(codes))
        kept, lowest = keep_pairs(
            samples.residual,
            samples.df,
            threshold,
            constants * step,
            sizes.covariance_pairs,
        )
        self.constants_ = constants[lowest:]
        self.risks_ = np.zeros(len(self.constants_))
        if len(self.constants_) > 1:
            chosen = choose_features(
                moments.features(np.flatnonzero(samples.used)),
                min(len(samples.unit), sizes.split_features),
            )
            part = samples.residual[:, chosen]
            self.risks_ = self._risks(part, codes, threshold, step)
        self.constant_ = float(self.constants_[-1 - self.risks_[::-1].argmin()])
        covariance = kept.covariance(self.constant_ * step)
        self.n_pairs_, self.lift_ = covariance.n_pairs, covariance.lift
        coef = samples.coefficients(covariance.solve(samples.differences))
        return midpoint_rule(coef, moments, self.class_prior_)

    def _risks(
        self, residual: FloatArray, codes: IntArray, threshold: Threshold, step: float
    ) -> FloatArray:
        """Mean squared distance of the parts of random splits, for each constant."""
        rng = check_random_state(self.random_state)
        total = np.zeros(len(self.constants_))
        if not self.n_splits >= 1:
            raise ValueError(f"n_splits must be at least 1, got {self.n_splits!r}")
        for _ in range(self.n_splits):
            second = part_of_each_class(codes, rng)
            parts = [centred(residual[part], codes[part]) for part in (~second, second)]
            (A1, df1), (A2, df2) = parts
            steps = self.constants_ * step
            if threshold.adaptive:  # its rate is that of the part
                steps *= np.sqrt(len(codes) / len(A1))
            total += split_risks(A1, df1, A2, df2, threshold, steps)
        return total / self.n_splits


def part_of_each_class(codes: IntArray, rng: np.random.RandomState) -> Any:
    """Samples of the second part: 1 / log n of each class, one at least.

    >>> part_of_each_class(np.repeat([0, 1], 10), np.random.RandomState(0)).sum().item()
    6
    """
    second = np.zeros(len(codes), dtype=bool)
    counts = np.bincount(codes)
    for k, count in enumerate(counts):
        size = min(max(1, round(count / np.log(len(codes)))), count - 1)
        second[rng.permutation(np.flatnonzero(codes == k))[:size]] = True
    for part in (second, ~second):
        if part.sum() <= len(counts):
            raise ValueError(
                f"{len(codes)} samples are too few to be split in two parts with a "
                "covariance each; give the constant as a number"
            )
    return second


def centred(rows: FloatArray, codes: IntArray) -> tuple[FloatArray, int]:
    """Rows less the mean of their class, and the degrees of freedom that are left."""
    left, found = rows.copy(), np.unique(codes)
    for k in found:
        left[codes == k] -= rows[codes == k].mean(axis=0)
    return left, len(rows) - len(found)


register(
    linear_schema(
        ThresholdedLDA,
        class_prior_=CLASS_PRIOR,
        constant_=Scalar((float,), least=0),
        constants_=Array(("m",), ("finite", "zero or more", "ascending")),
        risks_=Array(("m",)),
        n_pairs_=COUNT,
        lift_=Scalar((float,), least=0),
    )
)
