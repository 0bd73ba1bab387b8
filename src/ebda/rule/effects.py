"""The effects of the features: prior and posterior of contrasts made independent.

The middle of the way of the data, for one covariance: the contrasts are freed of the
correlation, a prior is fitted to them, and each gets its posterior. Every shrinkage of
the same effects is then a rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from ebda.covariance.base import Covariance, Decorrelated, Diagonal
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts
from ebda.priors.base import PriorEstimator
from ebda.priors.null import Null
from ebda.priors.posterior import DiscretePosterior, Posterior
from ebda.rule.linear_rule import LinearRule, WriteBlock, linear_rule
from ebda.rule.shrinkage import SHRINKAGES
from ebda.typing import FloatArray

# Half the step of the difference quotient that stands for the derivative of a
# shrinkage: wide enough that a jump at a threshold meets values on both sides.
_STEP = 0.1


@dataclass(frozen=True, eq=False)
class Effects:
    """Prior and posterior of the contrasts under one covariance.

    Parameters
    ----------
    contrasts : Contrasts
        What was estimated from the moments.
    covariance : Covariance
        The correlation that was taken out.
    values : Decorrelated
        The contrasts without it.
    null : Null
        What a value without a difference looks like.
    prior_estimator : PriorEstimator
        Fitted to the values in units of the null.
    """

    contrasts: Contrasts
    covariance: Covariance
    values: Decorrelated
    null: Null
    prior_estimator: PriorEstimator

    @cached_property
    def z(self) -> FloatArray:
        """The values in units of the null: what prior and posterior are of."""
        return self.null.standardise(self.values.z)

    @cached_property
    def posterior(self) -> Posterior:
        """Posterior of the mean of each z."""
        return self.prior_estimator.prior_.posterior(self.z)

    def shrunken(self, shrinkage: str, kappa: float) -> FloatArray:
        """The estimate of the mean of each z."""
        return SHRINKAGES[shrinkage](self.z, self.posterior, kappa)

    def _write(
        self,
        posterior: DiscretePosterior,
        shrinkage: str,
        kappa: float,
        cols: slice,
        out: FloatArray,
    ) -> None:
        """Write the estimates of some of the features; this is the posterior of all."""
        part = posterior.part(cols)
        out[:] = SHRINKAGES[shrinkage](self.z[:, cols], part, kappa)

    def slope(self, shrinkage: str, kappa: float) -> FloatArray:
        """Derivative of that estimate by z.

        That of the posterior mean is the posterior variance; a rule with jumps is
        differenced.
        """
        if shrinkage == "mean":
            return np.where(self.contrasts.constant, 0.0, self.posterior.sd**2)
        prior, z = self.prior_estimator.prior_, self.z
        above, below = (
            SHRINKAGES[shrinkage](x, prior.posterior(x), kappa)
            for x in (z + _STEP, z - _STEP)
        )
        above = (above - below) / (2 * _STEP)
        above[:, self.contrasts.constant] = 0.0
        return above

    def rule(
        self,
        moments: ClassMoments,
        class_prior: FloatArray,
        shrinkage: str,
        kappa: float,
        unbiased: bool = True,
        spread: bool = True,
    ) -> LinearRule:
        """The linear rule of one shrinkage.

        Parameters
        ----------
        moments : ClassMoments
            The class means.
        class_prior : ndarray of shape (n_classes,)
            Class probabilities.
        shrinkage, kappa
            Name in `SHRINKAGES`, and its threshold.
        unbiased : bool
            Whether to take the bias out of the midpoint; False is the paper's.
        spread : bool
            Whether the spread of the scores is asked for.
        """
        eta: FloatArray | WriteBlock
        posterior = self.posterior
        if (
            isinstance(self.covariance, Diagonal)
            and self.null.is_standard
            and isinstance(posterior, DiscretePosterior)
            and posterior.is_tabulated
        ):
            # Very many, that do not depend on each other: they need not be kept.
            eta = (
                posterior.mean_writer()  # without a temporary
                if shrinkage == "mean"
                else partial(self._write, posterior, shrinkage, kappa)
            )
        else:
            e = self.shrunken(shrinkage, kappa)
            if not self.null.is_standard:
                e = e * self.null.scale
            eta = self.covariance.restore(e, self.values)
        divergence: FloatArray | float = 0.0
        if unbiased and not _balanced(self.contrasts, moments):
            divergence = self.values.divergence(self.slope(shrinkage, kappa))
        return linear_rule(
            moments,
            self.contrasts,
            eta,
            self.covariance,
            class_prior,
            divergence,
            spread,
        )


def _balanced(contrasts: Contrasts, moments: ClassMoments) -> bool:
    """Whether the midpoints need no correction: two classes of one size."""
    weight = (contrasts.positive**2 - contrasts.negative**2) / moments.counts
    return bool(np.allclose(weight.sum(axis=1), 0.0, atol=1e-15))


def fit_effects(
    contrasts: Contrasts,
    covariance: Covariance,
    values: Decorrelated,
    null: Null,
    prior: PriorEstimator,
) -> Effects:
    """Fit the prior to the contrasts under a covariance.

    Parameters
    ----------
    contrasts, covariance, values, null
        What the earlier steps returned.
    prior : PriorEstimator
        Unfitted; it is fitted here.
    """
    z = values.z
    if contrasts.any_constant:
        z = z[:, ~contrasts.constant]
    fitted = prior.fit(null.standardise(z))
    return Effects(contrasts, covariance, values, null, fitted)
