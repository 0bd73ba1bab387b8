"""The effects of the features: prior and posterior under one covariance.

The contrasts are decorrelated, a prior is fitted to them, and each gets its posterior.
Every shrinkage of the same effects is then a rule.

Where values are missing, contrasts have standard errors s_j times as large as with all
values. What features have in common are the effects, and not how many of their values
are missing: the prior is fitted to ``s_j z_j``, whose noise is s_j, and the posterior
is of these. Rules are made for values as they come, zero where they are missing: their
correlation is that of the contrasts, and so s_j stands outside of its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ebda.cached import cached_property
from ebda.covariance import Covariance, Decorrelated
from ebda.moments import ClassMoments, Contrasts
from ebda.priors import PriorEstimator
from ebda.priors.posterior import Posterior, Prior, RescaledPosterior
from ebda.rule.linear_rule import LinearRule, rule_of_weights
from ebda.rule.shrinkage import Shrinkage
from ebda.typing import FloatArray

# Half the step of the difference quotient of a shrinkage: wide enough that a jump at a
# threshold has values on both sides.
_STEP = 0.1
# Of the signs of these steps.
_SEED = 0


@dataclass(frozen=True, eq=False)
class Effects:
    """Prior and posterior of the contrasts under one covariance.

    Parameters
    ----------
    contrasts : Contrasts
        What was estimated from the moments.
    covariance : Covariance
        The correlation.
    values : Decorrelated
        The contrasts without it.
    estimator : PriorEstimator
        Estimates the prior when a posterior is asked for: some shrinkages need none.
    has_missing : bool
        Whether values are missing, in the samples and in those to come.
    """

    contrasts: Contrasts
    covariance: Covariance
    values: Decorrelated
    estimator: PriorEstimator
    has_missing: bool = field(default=False, kw_only=True)

    @cached_property
    def z(self) -> FloatArray:
        """The values, which prior and posterior are for."""
        return self.values.z

    @cached_property
    def prior_estimator(self) -> PriorEstimator:
        """The prior, fitted to the values of features that are not constant."""
        z, scale = self.z, self.noise
        if self.contrasts.any_constant:
            varying = ~self.contrasts.constant
            z = z[:, varying]
            scale = None if scale is None else scale[:, varying]
        if scale is None:
            return self.estimator.fit(z)
        return self.estimator.fit(z * scale, scale)

    @property
    def noise(self) -> FloatArray | None:
        """Noise of the effects that have the prior; None where it is 1."""
        return None if self.covariance.orders_effects else self.contrasts.noise

    @cached_property
    def prior(self) -> Prior:
        """The prior of the means of z."""
        return self.covariance.prior(self.z, lambda: self.prior_estimator.prior_)

    @cached_property
    def posterior(self) -> Posterior:
        """Posterior of the mean of each z."""
        return self.posterior_of(self.z)

    def posterior_of(self, z: FloatArray) -> Posterior:
        """The posterior of such values."""
        return posterior_with_noise(self.prior, z, self.noise)

    def _posterior_for(self, shrinkage: Shrinkage) -> Posterior:
        """The posterior, or nothing for a shrinkage that does not look at it."""
        return self.posterior if shrinkage.needs_prior else cast(Posterior, None)

    def slope(self, shrinkage: Shrinkage, kappa: float) -> FloatArray:
        """Derivative of the estimate by z.

        For a rule with jumps it is a difference quotient. All values move at once, each
        up or down by chance: what one does to the estimate of another averages out.
        """
        if shrinkage.slope is not None:
            return np.where(
                self.contrasts.constant,
                0.0,
                shrinkage.slope(self.z, self._posterior_for(shrinkage)),
            )
        sign = np.random.RandomState(_SEED).choice([-1.0, 1.0], self.z.shape[1])
        step = _STEP * sign
        shifted = np.stack([self.z + step, self.z - step])
        posterior = self.posterior_of(shifted)
        above, below = shrinkage.estimate(shifted, posterior, kappa)
        slope: FloatArray = (above - below) / (2 * step)
        slope[:, self.contrasts.constant] = 0.0
        return slope

    def weights(
        self, shrinkage: Shrinkage, kappa: float
    ) -> tuple[FloatArray, FloatArray]:
        """Weights of the rule in units of the standard deviations.

        Parameters
        ----------
        shrinkage, kappa
            An entry of `SHRINKAGES`, and its threshold.

        Returns
        -------
        weights : ndarray of shape (n_contrasts, n_features)
        variance : ndarray of shape (n_contrasts,)
            Variance of each score within a class, as the covariance has it.
        """
        e = shrinkage.estimate(self.z, self._posterior_for(shrinkage), kappa)
        if self.contrasts.any_constant:
            e = np.where(self.contrasts.constant, 0.0, e)
        unit = np.sqrt(self.contrasts.variance_factor)
        if not self.has_missing:
            return self.covariance.weigh(e, self.values, unit)
        # In units of the standard deviations of values that are zero where missing,
        # standard errors are about the same for all features.
        varying = ~self.contrasts.constant
        usual = np.sqrt(np.mean(unit[:, varying] ** 2, axis=1, keepdims=True))
        weights, variance = self.covariance.weigh(e, self.values, usual)
        return weights * (unit / usual), variance

    def divergence(self, shrinkage: Shrinkage, kappa: float) -> FloatArray:
        """``d eta_j / d z_j`` of every feature (:func:`~ebda.rule.linear_rule`)."""
        return self.values.divergence(self.slope(shrinkage, kappa))

    def rule(
        self,
        moments: ClassMoments,
        class_prior: FloatArray,
        shrinkage: Shrinkage,
        kappa: float,
        unbiased: bool = True,
    ) -> LinearRule:
        """The linear rule of one shrinkage.

        Parameters
        ----------
        moments : ClassMoments
            The class means.
        class_prior : ndarray of shape (n_classes,)
            Class probabilities.
        shrinkage, kappa
            An entry of `SHRINKAGES`, and its threshold.
        unbiased : bool
            Whether to correct the bias of the midpoint; False is the paper's rule.
        """
        divergence = None
        balanced = is_balanced(self.contrasts, moments.counts)
        plain = moments.observed is None and moments.design is None
        if unbiased and not (balanced and plain):
            divergence = self.divergence(shrinkage, kappa)
        weights, variance = self.weights(shrinkage, kappa)
        return rule_of_weights(
            moments, self.contrasts, weights, variance, class_prior, divergence
        )


def posterior_with_noise(
    prior: Prior, z: FloatArray, noise: FloatArray | None
) -> Posterior:
    """Posterior of z in units of its noise, under a prior of ``noise * z``."""
    if noise is None:
        return prior.posterior(z)
    unit = np.broadcast_to(noise, z.shape)
    return RescaledPosterior(prior.posterior(z * unit, unit), unit)


def is_balanced(contrasts: Contrasts, counts: FloatArray) -> bool:
    """Whether the midpoints need no correction: two classes of one size."""
    weight = (contrasts.positive**2 - contrasts.negative**2) / counts
    return bool(np.allclose(weight.sum(axis=1), 0.0, atol=1e-15))
