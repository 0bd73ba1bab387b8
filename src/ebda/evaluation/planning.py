"""How many samples: the error to expect with more of them, or with fewer.

The plan starts from what was seen: k of N samples were wrong when they were held out in
folds, by classifiers fitted to ``n_0`` samples per class. With a uniform prior the
error rate at this size has the posterior distribution Beta(k + 1, N - k + 1). Nothing
is taken from what the fitted model believes about itself.

From ``n_0`` to n each rate moves along a learning curve
(:mod:`ebda.theory.learning_curve`). The rate stands for a separation d of equally
distant classes, and

    ``d(n) / d(n_0) = (1 + c / n_0) / (1 + c / n)``.

The square root of this holds for a rule whose weights are plain differences between
sample means: it has half of all that could be had with c samples per class. Rules that
also have to learn which features count and how they are correlated gain more, and here
d, not d^2, has half of its limit at c. What folds of fewer samples say about c made
plans of small studies worse, not better: there rare classes run out of samples. So
``log(c / n_0)`` has a normal distribution with mean log(1/2) and standard deviation
1.5, chosen so that plans hold (`benchmarks/planning.py`). From ``n_0`` to ``2 n_0`` the
separation d grows by 4 to 63 % then, in 80 % of all cases, and by 20 % in the middle.
The interval has both uncertainties, of the present error and of the curve.

Where the held-out separation is not two standard errors above zero, no gain is
promised: the upper end stays, and only the lower end follows the curve. The expected
error is then at most that of always saying the largest class, which a rule that finds
nothing comes to do.

No error is believed that N samples cannot show: an expected error is never below
1 / (N + 2), which is the mean of the posterior distribution when no sample is wrong,
and a lower end below it is zero.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import beta, binom

from ebda.estimators.annotated import resolved
from ebda.evaluation.folds import dealt_folds, predict_folds
from ebda.evaluation.held_out import Evaluation
from ebda.evaluation.planned import Plan, is_separated
from ebda.selection.folds import HeldOut
from ebda.selection.separation import separation
from ebda.theory.learning_curve import gain, grown_error
from ebda.typing import FloatArray

# Median of c / n_0, and the standard deviation of its logarithm.
_HALF, _SPREAD = 0.5, 1.5
# Quantiles by which the distributions of the present error and of c are represented.
_ERRORS, _CURVES = 400, 15
# Samples of a class that must be left when others are held out: with a single one a
# class has no variance, and a fit to it says nothing about larger studies.
_LEFT = 2
# Default sizes: from half of the samples at hand to four times as many.
_FACTORS = 2.0 ** np.arange(-1, 2.5, 0.5)


def plan(
    model: Any,
    X: Any,
    y: npt.ArrayLike,
    n: npt.ArrayLike | None = None,
    *,
    level: float = 0.8,
    n_test: int | None = None,
    n_folds: int = 10,
    seed: int = 0,
    after_fold: Callable[[], None] | None = None,
) -> Plan:
    """The error to expect of a classifier with n samples per class.

    Costs a cross-validation: as many fits as there are folds, ten by default.

    Parameters
    ----------
    model : classifier
        An estimator with ``predict_proba``; it is cloned.
    X, y
        The samples at hand, as for ``fit``. Classes of which fewer than two samples
        would be left are in every fit, and never held out.
    n : float or array-like, optional
        Samples per class, on average; by default from half of those at hand to four
        times as many.
    level : float
        Probability of the intervals.
    n_test : int, optional
        Number of new samples among which the errors will be counted. The interval is
        then for their share, which is wider; without it for the error rate.
    n_folds : int
        Number of folds. A class with fewer samples is in as many folds as it has
        samples.
    seed : int
        Determines the folds.
    after_fold : callable, optional
        Called after each fold, to show progress.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(
    ...     n_per_class=20, n_features=500, n_signals=50, effect=0.6, random_state=0
    ... )
    >>> few = plan(EBClassifier(covariance="diagonal"), sim.data, sim.target, [20, 60])
    >>> few.separated
    True
    >>> bool(few.low[1] < few.error[1] < few.error[0] < few.high[0])
    True
    """
    if n_folds < 2:
        raise ValueError(f"n_folds must be at least 2, got {n_folds!r}")
    sizes = _checked(n, level, n_test)
    y = resolved(X, y)[0]
    classes, codes = np.unique(np.asarray(y), return_inverse=True)
    fold = dealt_folds(codes, n_folds, seed, _LEFT)
    if len(np.unique(codes[fold >= 0])) < 2:
        raise ValueError(
            "a plan needs two classes with three or more samples each, so that two "
            "are left when others are held out; there are "
            + ", ".join(
                f"{count} of {label!r}"
                for label, count in zip(
                    classes.tolist(), np.bincount(codes), strict=True
                )
            )
        )
    held_out = predict_folds(model, X, y, fold, after_fold)
    current = len(codes) / len(classes)
    start = current - len(held_out.codes) / held_out.n_folds / len(classes)
    return _planned(held_out, current, start, sizes, level, n_test)


def plan_from_evaluation(
    evaluation: Evaluation,
    n: npt.ArrayLike | None = None,
    *,
    level: float = 0.8,
    n_test: int | None = None,
) -> Plan:
    """The error to expect with n samples per class, from a cross-validation.

    Parameters
    ----------
    evaluation : Evaluation
        Of :func:`ebda.evaluation.cross_validate`.
    n, level, n_test
        As for :func:`plan`.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from ebda.evaluation import Evaluation
    >>> p = np.tile([[0.9, 0.1], [0.2, 0.8]], (20, 1))
    >>> held_out = Evaluation(np.array(["a", "b"]), np.tile([0, 1], 20), p, 10)
    >>> plan_from_evaluation(held_out, [20, 40]).error.round(4)
    array([0.0238, 0.0238])
    """
    if evaluation.n_folds < 2:
        raise ValueError(
            "a plan starts from a cross-validation, which says how many samples the "
            "classifiers were fitted to; these are predictions of independent samples"
        )
    if len(np.unique(evaluation.codes)) < 2:
        raise ValueError("a plan needs held-out samples of two or more classes")
    sizes = _checked(n, level, n_test)
    current = len(evaluation.codes) / len(evaluation.classes)
    start = current * (1 - 1 / evaluation.n_folds)
    return _planned(evaluation, current, start, sizes, level, n_test)


def _planned(
    evaluation: Evaluation,
    current: float,
    start: float,
    sizes: FloatArray | None,
    level: float,
    n_test: int | None,
) -> Plan:
    """The plan, from held-out predictions after fits to `start` samples per class."""
    if sizes is None:
        sizes = np.unique(np.ceil(np.maximum(current * _FACTORS, 2)))
    d, d_error = held_out_separation(evaluation)
    N, k = len(evaluation.codes), evaluation.n_errors
    # Of d^2; that of plain differences is the square root of it.
    factor = gain(sizes[:, None], start, start * _half()) ** 2
    present = beta.ppf(_middles(_ERRORS), k + 1, N - k + 1)
    chance, n_classes = evaluation.chance_error, len(evaluation.classes)
    best = expected = worst = _rates(present, factor, n_classes)
    if not is_separated(d, d_error):
        # More samples may do nothing. But then the rule comes to say the largest class,
        # and errors above that were the folds' bad luck.
        capped, flat = np.minimum(present, chance), np.minimum(factor, 1.0)
        best = _rates(capped, factor, n_classes)
        expected = _rates(capped, flat, n_classes)
        worst = _rates(present, flat, n_classes)
    tail = (1 - level) / 2
    low = np.array([_quantile(rates, tail, n_test) for rates in best])
    high = np.array([_quantile(rates, 1 - tail, n_test) for rates in worst])
    least = 1 / (N + 2)
    error = np.maximum(expected.mean(axis=1), least)
    return Plan(
        sizes,
        error,
        np.where(low < least, 0.0, low),
        np.maximum(high, error) if n_test is None else high,
        level,
        n_test,
        current,
        start,
        k,
        N,
        evaluation.n_folds,
        d,
        d_error,
        chance,
    )


def held_out_separation(evaluation: Evaluation) -> tuple[float, float]:
    """The separation of held-out log-odds, and its standard error.

    As in :mod:`ebda.selection.separation`. Probabilities are held to be no closer to
    zero than 1 / (N + 2): so many samples cannot tell them apart, and single ones that
    are would decide.

    Parameters
    ----------
    evaluation : Evaluation
        Held-out predictions.
    """
    N = len(evaluation.codes)
    log_p = np.log(np.maximum(evaluation.probabilities, 1 / (N + 2)))
    two = log_p.shape[1] == 2
    scores = log_p[:, 1:] - log_p[:, :1] if two else log_p
    same = np.zeros(N, dtype=np.intp)
    held_out = HeldOut(scores[None], evaluation.codes, np.ones(N), same)
    d, _, influence = separation(held_out)
    return float(d[0]), float(np.sqrt((influence**2).sum()))


def _checked(
    n: npt.ArrayLike | None, level: float, n_test: int | None
) -> FloatArray | None:
    """The sizes as a vector, if they and the rest make sense."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    if n_test is not None and n_test < 1:
        raise ValueError(f"n_test must be at least 1 sample, got {n_test!r}")
    if n is None:
        return None
    sizes = np.atleast_1d(np.asarray(n, dtype=np.float64))
    if sizes.ndim > 1 or not (np.isfinite(sizes).all() and (sizes >= 1).all()):
        raise ValueError("n must be numbers of samples per class, each at least 1")
    return sizes


def _rates(present: FloatArray, factor: FloatArray, n_classes: int) -> FloatArray:
    """Equally probable error rates of each size, of shape (n_sizes, n_rates)."""
    rates = grown_error(present[:, None], factor[:, None, :], n_classes)
    return rates.reshape(len(factor), -1)


def _middles(size: int) -> FloatArray:
    """Probabilities of the middles of equally probable parts."""
    return (np.arange(size) + 0.5) / size


def _half() -> FloatArray:
    """Quantiles of c / n_0."""
    return np.asarray(_HALF * np.exp(_SPREAD * ndtri(_middles(_CURVES))))


def _quantile(rates: FloatArray, q: float, n_test: int | None) -> float:
    """Quantile of the rates, or of the share of errors in a test of so many samples.

    The latter is rounded outwards, to a number of errors.
    """
    if n_test is None:
        return float(np.quantile(rates, q))
    rates = np.quantile(rates, _middles(_ERRORS))

    def below(errors: int) -> float:
        """P(at most so many errors)."""
        return float(binom.cdf(errors, n_test, rates).mean())

    cut = bisect_right if q < 0.5 else bisect_left
    return cut(range(n_test), q, key=below) / n_test
