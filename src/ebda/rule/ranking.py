"""Which features matter, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.priors.posterior import Posterior
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Ranking:
    """Features in order of the evidence that they differ between the classes.

    Arrays have one entry per feature, or one row per class for more than two, in
    the order of the data's columns; `order` sorts them.

    Parameters
    ----------
    order : ndarray of int of shape (n_features,)
        Columns by the smallest local false sign rate, then by the largest posterior
        mean.
    z : ndarray
        Normalised differences, free of common factors where the rule is.
    posterior_mean : ndarray
        Their means after shrinkage.
    prob_zero : ndarray
        Probability that there is no difference.
    lfsr : ndarray
        Local false sign rate: probability that the difference is zero or has the
        other sign.
    q_value : ndarray
        Expected share of false signs among the features with this local false sign
        rate or a smaller one; the expected share of features without a difference is
        no larger.
    names : ndarray, optional
        Names of the features.
    """

    order: IntArray
    z: FloatArray
    posterior_mean: FloatArray
    prob_zero: FloatArray
    lfsr: FloatArray
    q_value: FloatArray
    names: npt.NDArray[Any] | None = None

    def selected(self, level: float = 0.05) -> npt.NDArray[np.bool_]:
        """Differences whose q-value is at most `level`."""
        return self.q_value <= level

    def to_frame(self, contrast: int = 0) -> Any:
        """A pandas table of one contrast, best features first.

        Parameters
        ----------
        contrast : int
            Which class, for more than two.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "to_frame needs pandas: pip install 'ebda[table]'"
            ) from None

        columns = ("z", "posterior_mean", "prob_zero", "lfsr", "q_value")
        row = {name: np.atleast_2d(getattr(self, name))[contrast] for name in columns}
        index = np.arange(len(self.order)) if self.names is None else self.names
        table = pd.DataFrame(row, index=pd.Index(index, name="feature"))
        order = _order(row["lfsr"][None, :], row["posterior_mean"][None, :])
        return table.iloc[order]


def _order(lfsr: FloatArray, mean: FloatArray) -> IntArray:
    """Smallest lfsr first, ties by the largest mean, over all contrasts."""
    order: IntArray = np.lexsort((-np.abs(mean).max(axis=0), lfsr.min(axis=0)))
    return order


def tail_average(lfsr: FloatArray) -> FloatArray:
    """Mean of all entries that are no larger, for each entry: the q-value.

    >>> tail_average(np.array([0.5, 0.0, 0.1]))
    array([0.2 , 0.  , 0.05])
    """
    flat = lfsr.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    mean = np.cumsum(ordered) / np.arange(1, len(flat) + 1)
    # Equal entries share the average over all of them.
    last = np.searchsorted(ordered, ordered, side="right") - 1
    q = np.empty_like(flat)
    q[order] = mean[last]
    return q.reshape(lfsr.shape)


def rank_features(
    z: FloatArray,
    posterior: Posterior,
    constant: npt.NDArray[np.bool_],
    names: npt.NDArray[Any] | None,
) -> Ranking:
    """Ranking from the posterior of each contrast and feature.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        What the posterior is of.
    posterior : Posterior
        Of the same shape.
    constant : ndarray of bool of shape (n_features,)
        Features that carry nothing: their difference is zero.
    names : ndarray, optional
        Names of the features.
    """

    def shown(values: FloatArray, at_constants: float) -> FloatArray:
        return np.where(constant, at_constants, values)

    lfsr = shown(posterior.lfsr, 1.0)
    mean = shown(posterior.mean, 0.0)
    zero = shown(posterior.prob_zero, 1.0)
    order = _order(lfsr, mean)
    order = order[np.argsort(constant[order], kind="stable")]
    q = np.ones_like(lfsr)
    q[:, ~constant] = tail_average(lfsr[:, ~constant])
    rows = (z, mean, zero, lfsr, q)
    z, mean, zero, flat, q = (row[0] if len(row) == 1 else row for row in rows)
    return Ranking(order, z, mean, zero, flat, q, names)
