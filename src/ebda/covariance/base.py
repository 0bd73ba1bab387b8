"""The within-class covariance ``S R S``: S from the variances, R from a component.

The standard deviations S are those of :mod:`ebda.moments.variance`. A component is an
estimate of the correlation R, a p x p matrix that is never formed. It can do two
things. ``decorrelate`` turns the normalised contrasts, whose noise has the correlation
R, into values whose noise is independent with unit variance; the prior is fitted to
these, and ``restore`` turns an estimate of their means into one of the contrasts'.
Where the order of the features means something the values are the contrasts
themselves, and ``prior`` makes a prior that knows the order and the noise. ``solve``
multiplies rows by the inverse of R, for the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from ebda.covariance.summary import Summary
from ebda.kernels.rows import inner_products
from ebda.priors.posterior import Prior
from ebda.registry import Entry
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Decorrelated:
    """Contrasts with independent noise, and what is needed to restore them.

    Parameters
    ----------
    z : ndarray of shape (n_contrasts, n_features)
        Values with unit noise; their means are the e that the prior shrinks.
    common : ndarray of shape (n_contrasts, n_factors), optional
        Differences of common factors, after shrinkage.
    share : ndarray of shape (n_features,) or float
        ``(d eta_j / d z_j) / (d e_j / d value_j)``: how much of the derivative of an
        estimate is left when it is restored.
    common_df : ndarray of shape (n_contrasts,) or float
        The part of the sum of ``d eta_j / d z_j`` that does not go through e; features
        have it in proportion to what they lose, ``1 - share``.
    """

    z: FloatArray
    common: FloatArray | None = None
    share: FloatArray | float = 1.0
    common_df: FloatArray | float = 0.0

    def divergence(self, slope: FloatArray) -> FloatArray:
        """``d eta_j / d z_j`` of every feature, given ``d e_j / d value_j``."""
        if self.common is None:
            return slope
        lost = 1 - self.share
        own: FloatArray = slope * self.share
        own += np.multiply.outer(self.common_df, lost / np.sum(lost))
        return own


class Covariance(Protocol):
    """An estimated correlation R; components are subclasses."""

    @property
    def is_diagonal(self) -> bool:
        """Whether R is the identity, and features can be treated one by one."""

    @property
    def n_factors(self) -> int:
        """Number of common factors in R."""

    @property
    def orders_effects(self) -> bool:
        """Whether its prior looks at the order of the values, which have unit noise."""
        return False

    @property
    def is_contradicted(self) -> bool:
        """Whether the data say that R is not of this kind.

        It is not compared with others then, but used where it was asked for by name.
        """
        return False

    @property
    def low_rank(self) -> tuple[FloatArray, FloatArray] | None:
        """L, of shape (n_features, k), and psi, if R is ``L L' + diag(psi)``."""
        return None

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        """Values with independent noise, from contrasts with correlation R."""

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        """eta, from an estimate of the means of decorrelated values."""

    def prior(self, z: FloatArray, fit: Callable[[], Prior]) -> Prior:
        """The prior of the means of decorrelated values; see `priors`."""
        return self.priors([self], [z], [fit])[0]

    @classmethod
    def priors(
        cls,
        parts: Sequence[Self],
        z: Sequence[FloatArray],
        fits: Sequence[Callable[[], Prior]],
        rough: bool = False,
    ) -> list[Prior]:
        """The priors of the means of decorrelated values, of several folds.

        Parameters
        ----------
        parts : list of Covariance
            The covariances of the folds, all of this class.
        z : list of ndarray of shape (n_contrasts, n_features)
            The values of each.
        fits : list of callable
            Each fits a prior to these, without regard to their order.
        rough : bool
            Whether it serves a comparison, and need not be as good as can be.
        """
        return [fit() for fit in fits]

    def solve(self, rows: FloatArray) -> FloatArray:
        """R^-1 times each row; `rows` is not changed, and may be returned."""

    def weigh(
        self, e: FloatArray, values: Decorrelated, unit: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The weights of a rule, ``w = R^-1 (unit eta)``, and ``w' R w`` of each row.

        Parameters
        ----------
        e : ndarray of shape (n_contrasts, n_features)
            An estimate of the means of decorrelated values.
        values : Decorrelated
            These values.
        unit : ndarray of shape (n_contrasts, 1) or (n_contrasts, n_features)
            Standard errors in units of the standard deviations.
        """
        # For all that have no shorter way.
        rows = self.restore(e, values) * unit
        solved = self.solve(rows)
        return solved, inner_products(rows, solved)


@dataclass(frozen=True)
class CovarianceEstimator(Entry):
    """A way to estimate the correlation, and the facts that others ask for.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`.
    estimate : callable
        From a summary of the data to a component. The summary has no samples where
        `needs_samples` is False.
    needs_samples : bool
        Whether it looks at the samples again, after their moments.
    needs_order : bool
        Whether the order of the features means something to it.
    compared : tuple of str
        Names of the shrinkages that ``shrinkage="auto"`` compares with it.
    in_auto : bool
        Whether ``covariance="auto"`` compares it.
    beside_others : tuple of str, optional
        Those of `compared` that ``covariance="auto"`` compares; None for all of them.
    and_others : tuple of (covariance, shrinkage)
        Rules under other covariances that ``shrinkage="auto"`` compares with those
        under this one where it is asked for by name.
    is_usual : bool
        Whether it is taken where no samples can be held out.
    tells_missing : bool
        Whether its rules expect missing values from the others of a sample, by its
        `low_rank`; else a missing value adds nothing to a score.
    """

    estimate: Callable[[Summary], Covariance]
    needs_samples: bool = False
    needs_order: bool = False
    compared: tuple[str, ...] = ("mean", "sparse")
    in_auto: bool = True
    beside_others: tuple[str, ...] | None = None
    and_others: tuple[tuple[str, str], ...] = ()
    is_usual: bool = False
    tells_missing: bool = False

    def __call__(self, data: Summary) -> Covariance:
        """Estimate it."""
        if self.needs_samples and data.samples is None:
            raise ValueError(
                f"covariance={self.name!r} needs the samples, not moments alone"
            )
        return self.estimate(data)
