"""Whether new samples are like those of the fit: scale, location, missing features.

A linear rule takes any numbers. Raw intensities in place of logarithms, another
platform or another normalisation give predictions that look like all others, so the
values are compared before anybody believes them. A feature of the new samples is
compared with its own range, mean and standard deviation in the fit; over all features
these tell whether the samples as a whole have moved, which no class difference does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from ebda.inputs.logarithms import LOGARITHMS
from ebda.inputs.training_values import TrainingValues
from ebda.listing import counted
from ebda.typing import FloatArray

# More than this share of values outside of their range is a warning, beyond the share
# 2 / (n + 1) of exchangeable samples.
_OUTSIDE = 0.15
# So is a median shift of so many standard deviations, beyond what the means of so few
# samples vary by chance (twice that median for normal values).
_SHIFT, _NORMAL_MEDIAN = 0.75, 0.6745
# And samples that vary this much more or less among themselves, if there are enough.
_SPREAD, _ENOUGH = 3.0, 5
# Shares of the rule's weight that is missing: for a warning, and to refuse.
_LITTLE, MOST = 0.2, 0.5
# A logarithm is proposed if it takes away most of the shift.
_BETTER = 0.3
# Values that a proposal makes are cut off here.
_LARGEST = 1e100
# Features that a proposal is tried on.
_TRIED = 2000


@dataclass(frozen=True, eq=False)
class DataShift:
    """How new samples differ from the data of the fit.

    Parameters
    ----------
    n_samples : int
        New samples.
    n_training : int
        Samples of the fit.
    n_features, n_missing : int
        Features of the model, and how many of them no new sample has.
    missing_weight : float
        Share of the rule that these carry: of the sum of ``|coef|`` times the standard
        deviation.
    sample_weights : ndarray of shape (n_samples,)
        The same share for each sample, single missing values included.
    outside : float
        Share of the values that lie outside of the range of their feature in the fit.
    shift : float
        Median over the features of ``|mean - mean in the fit|``, in standard deviations
        of the fit.
    spread : float or None
        Median over the features of the standard deviation, divided by that of the fit;
        None for fewer than five samples.
    proposal : str or None
        What would bring the values closer to those of the fit.
    """

    n_samples: int
    n_training: int
    n_features: int
    n_missing: int
    missing_weight: float
    sample_weights: FloatArray
    outside: float
    shift: float
    spread: float | None
    proposal: str | None = None

    @property
    def expected_outside(self) -> float:
        """Share of values outside of the range for samples like those of the fit."""
        return 2 / (self.n_training + 1)

    @property
    def expected_shift(self) -> float:
        """Median shift that the means of so few samples have by chance."""
        return _NORMAL_MEDIAN * float(np.sqrt(1 / self.n_samples + 1 / self.n_training))

    @property
    def is_far(self) -> bool:
        """Whether the values are on another scale, or from elsewhere."""
        return (
            self.outside > _OUTSIDE + 2 * self.expected_outside
            or self.shift > _SHIFT + 2 * self.expected_shift
            or (self.spread is not None and not 1 / _SPREAD <= self.spread <= _SPREAD)
        )

    @property
    def lacks_most(self) -> bool:
        """Whether most of the rule rests on features that are missing."""
        return self.missing_weight > MOST

    def warnings(self) -> list[str]:
        """What there is to be warned of, in sentences; empty if nothing."""
        found = []
        if self.is_far:
            numbers = [
                f"{self.outside:.0%} of the values lie outside of the range of their "
                f"feature in the fit ({self.expected_outside:.0%} would by chance)",
                f"the features have moved by {self.shift:.3g} standard deviations in "
                f"the median ({self.expected_shift:.2g} would be chance)",
            ]
            if self.spread is not None:
                numbers.append(
                    f"they vary {self.spread:.3g} times as much as in the fit"
                )
            found.append(
                "The new values are not like those of the fit: "
                f"{'; '.join(numbers)}. Are they from another platform, or on another "
                "scale? The predictions are of little worth then."
                + (f" {self.proposal}" if self.proposal else "")
            )
        if self.missing_weight > _LITTLE:
            found.append(
                f"{counted(self.n_missing, 'feature')} of {self.n_features} "
                f"{'is' if self.n_missing == 1 else 'are'} missing, with "
                f"{self.missing_weight:.0%} of the rule's weight."
            )
        poor = int(np.count_nonzero(self.sample_weights > MOST))
        if poor and not self.lacks_most:
            found.append(
                f"{counted(poor, 'sample')} of {self.n_samples} "
                f"{'lacks' if poor == 1 else 'lack'} values with more than "
                f"{MOST:.0%} of the rule's weight."
            )
        return found


def compare_with_training(
    model: Any, X: Any, known: TrainingValues, log_taken: bool = False
) -> DataShift:
    """Compare new samples with the data of a fit.

    Parameters
    ----------
    model : classifier
        Fitted, with ``coef_``.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        New samples, in the columns of the model; NaN where a value is missing.
    known : TrainingValues
        Of the data of the fit.
    log_taken : bool
        Whether a logarithm was taken of the new samples just now, so that none can have
        been forgotten.

    Returns
    -------
    DataShift

    Examples
    --------
    >>> from ebda import EBClassifier
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> raw = golub.data[:, :1000]
    >>> X = LOGARITHMS["log2"].of(raw)
    >>> train, test = golub.split == "train", golub.split == "test"
    >>> model = EBClassifier(covariance="diagonal").fit(X[train], golub.target[train])
    >>> known = TrainingValues.of(X[train])
    >>> compare_with_training(model, X[test], known).is_far
    False
    >>> forgotten = compare_with_training(model, raw[test], known)
    >>> forgotten.is_far, forgotten.proposal
    (True, 'Was sign(x) log2(1 + |x|) forgotten? It would bring them closer.')
    """
    n, p = X.shape
    share = rule_shares(model, known.sd)
    missing = _is_missing(X)
    absent = missing.all(axis=0) if missing is not None else np.zeros(p, bool)
    lacking = np.zeros(n) if missing is None else missing @ share
    columns = np.flatnonzero((known.sd > 0) & ~absent)
    outside, shift, spread = _distance(_columns(X, columns), _part(known, columns))
    found = DataShift(
        n,
        known.n_samples,
        p,
        int(absent.sum()),
        float(share[absent].sum()),
        np.asarray(lacking),
        outside,
        shift,
        spread,
    )
    if not found.is_far:
        return found
    step = max(1, len(columns) // _TRIED)
    some = columns[::step]
    words = _proposal(_columns(X, some), _part(known, some), log_taken)
    return DataShift(**vars(found) | {"proposal": words})


def rule_shares(model: Any, sd: FloatArray) -> FloatArray:
    """What share of the rule's weight each feature has: of the sum of ``|coef| sd``.

    >>> from types import SimpleNamespace
    >>> rule_shares(SimpleNamespace(coef_=np.array([[1.0, -3.0]])), np.ones(2))
    array([0.25, 0.75])
    """
    weight = np.abs(np.atleast_2d(model.coef_)).sum(axis=0) * sd
    total = weight.sum()
    return np.asarray(weight / total if total > 0 else np.full_like(weight, 0.0))


def _is_missing(X: Any) -> Any:
    """Which values are missing; None where none is."""
    if sparse.issparse(X):
        return np.isnan(X.toarray()) if np.isnan(X.data).any() else None
    found = np.isnan(X)
    return found if found.any() else None


def _columns(X: Any, columns: Any) -> FloatArray:
    part = X[:, columns]
    dense = part.toarray() if sparse.issparse(part) else part
    return np.asarray(dense, dtype=np.float64)


def _part(known: TrainingValues, columns: Any) -> TrainingValues:
    vectors = (known.low, known.high, known.mean, known.sd)
    return TrainingValues(known.n_samples, *(v[columns] for v in vectors))


def _distance(
    X: FloatArray, known: TrainingValues
) -> tuple[float, float, float | None]:
    """Share outside, median shift and median ratio of the spreads."""
    there = ~np.isnan(X)
    if not there.any():
        return 0.0, 0.0, None
    own = TrainingValues.of(X)
    values = np.where(there, X, known.mean)
    beyond = (values < known.low) | (values > known.high)
    outside = float(np.count_nonzero(beyond) / np.count_nonzero(there))
    seen = there.any(axis=0)
    moved = np.abs(own.mean - known.mean)[seen] / known.sd[seen]
    spread = None
    if len(X) >= _ENOUGH:
        spread = float(np.median(own.sd[seen] / known.sd[seen]))
    return outside, float(np.median(moved)), spread


def _proposal(X: FloatArray, known: TrainingValues, log_taken: bool) -> str | None:
    """The logarithm that was forgotten, or taken twice, if it explains most of it."""
    ways = {}
    for log in LOGARITHMS.values():
        if not log_taken:
            ways[log.of] = f"Was {log.line} forgotten? It would bring them closer."
        ways[log.undone] = (
            f"They look as if {log.line} had been taken of them once more than of the "
            "data of the fit: give them as they were before."
        )
        ways[partial(np.multiply, np.log(log.base))] = (
            f"They look like {log.name} logarithms where the fit had natural ones."
        )
        ways[partial(np.multiply, 1 / np.log(log.base))] = (
            f"They look like natural logarithms where the fit had {log.name} ones."
        )
    before = _size(X, known)
    after = {words: _size(way(X), known) for way, words in ways.items()}
    best = min(after, key=lambda words: after[words])
    return best if after[best] < _BETTER * before else None


def _size(X: FloatArray, known: TrainingValues) -> float:
    """Median over the features of the shift."""
    mean = np.nanmean(np.clip(X, -_LARGEST, _LARGEST), axis=0)
    return float(np.median(np.abs(mean - known.mean) / known.sd))
