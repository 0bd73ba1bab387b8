"""What a fit says of single features: the prior, the posterior and the ranking.

What the rule can do without is computed when it is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.cached import Later, deferred
from ebda.estimators.moment_classifier import squeeze
from ebda.estimators.scaled import ScaledClassifier
from ebda.moments import VARIANCES
from ebda.priors import PriorEstimator
from ebda.priors.posterior import Posterior, Prior
from ebda.rule.conditional import statistics_beyond
from ebda.rule.effects import Effects
from ebda.rule.marginal import moderated_t, most_df
from ebda.rule.ranking import BETWEEN_CLASSES, BEYOND_FACTORS, Ranking, feature_list
from ebda.selection.candidates import Name, reported
from ebda.sizes import sizes
from ebda.typing import FloatArray


class PosteriorClassifier(ScaledClassifier):
    """A classifier that knows a prior and a posterior of the differences."""

    # A rule whose shrinkage needs no prior has none yet.
    prior_estimator_ = deferred[PriorEstimator]()
    posterior_ = deferred[Posterior]()
    n_factors_: int
    common_difference_: FloatArray | None
    random_state: Any
    squared_correlation_: float | None

    def _keep_effects(self, effects: dict[str, Effects], best: Name) -> None:
        """The prior and the posterior that are shown."""
        self.n_factors_ = max(e.covariance.n_factors for e in effects.values())
        shown = effects[reported(effects, best)]
        # The effects stay in memory until then, and a random state may be used later.
        n_kept = max(shown.covariance.n_factors, 1) * shown.z.size
        is_light = shown.covariance.n_factors or shown.covariance.is_diagonal
        if is_light and n_kept <= sizes.deferred_values and self.random_state is None:
            self.prior_estimator_ = Later(lambda: shown.prior_estimator)
            self.posterior_ = Later(lambda: shown.posterior)
        else:
            self.prior_estimator_ = shown.prior_estimator
            self.posterior_ = shown.posterior
        self.z_ = squeeze(shown.z)
        self.common_difference_ = shown.values.common

    def _fitted_posterior(self) -> Posterior:
        if "posterior_" not in vars(self):
            raise AttributeError("fit first: there is no posterior yet")
        return self.posterior_

    @property
    def prior_(self) -> Prior:
        """The estimated prior."""
        if "prior_estimator_" not in vars(self):
            raise AttributeError("fit first: there is no prior yet")
        prior: Prior = self.prior_estimator_.prior_
        return prior

    @property
    def posterior_mean_(self) -> FloatArray:
        """Posterior mean of each difference."""
        return squeeze(self._fitted_posterior().mean)

    @property
    def prob_zero_(self) -> FloatArray:
        """Probability of each difference to be zero."""
        return squeeze(self._fitted_posterior().prob_zero)

    @property
    def ranking_(self) -> Ranking:
        """Two lists of the features: that differ, and beyond the common factors."""
        self._fitted_posterior()
        known = self.wild_values_
        moments = self.moments_ if known is None else known.moments
        correlation = self.squared_correlation_
        plain, contrasts = moderated_t(moments)
        marginal = feature_list(BETWEEN_CLASSES, plain, contrasts.constant, correlation)
        constant = self.contrasts_.constant
        beyond = statistics_beyond(
            np.atleast_2d(self.z_),
            constant,
            self.common_difference_,
            self.n_factors_,
            moments,
            VARIANCES[self.variance].estimate(moments),
            plain,
            most_df(moments, contrasts),
        )
        conditional = feature_list(BEYOND_FACTORS, beyond, constant, correlation)
        difference = squeeze((contrasts.positive - contrasts.negative) @ moments.means)
        return Ranking(marginal, conditional, difference, self._names(), self.classes_)
