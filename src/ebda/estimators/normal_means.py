"""NormalMeans: denoise a vector of estimates with an estimated prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ebda.priors import make_prior
from ebda.priors.base import check_values
from ebda.priors.posterior import Posterior, Prior, as_values
from ebda.storage.fields import LIKELIHOOD
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray


class NormalMeans(BaseEstimator):
    """Posterior of the means ``eta`` behind estimates ``x ~ N(eta, scale**2)``.

    Parameters
    ----------
    prior : str, prior estimator or prior
        As in :class:`~ebda.EBClassifier`: by default a Dirichlet process mixture
        with a point mass at zero.
    n_jobs : int, optional
        Parallel jobs, for a prior given by name.
    random_state : int, RandomState or None
        For a prior given by name, where it needs random numbers.

    Attributes
    ----------
    prior_ : DiscretePrior
        The estimated distribution of the means.
    posterior_mean_, posterior_sd_ : ndarray, as x
        Mean and standard deviation of each mean.
    prob_zero_ : ndarray, as x
        Probability of being zero.
    lfsr_ : ndarray, as x
        Local false sign rate: the probability that the sign is not that of the
        posterior's larger side.
    log_likelihood_ : float
        Log marginal density of all estimates.

    Examples
    --------
    A sequence of 900 means at 0, 90 at 2 and 10 at 10, with unit noise:

    >>> import numpy as np
    >>> from ebda import NormalMeans
    >>> rng = np.random.default_rng(0)
    >>> eta = np.repeat([0.0, 2.0, 10.0], [900, 90, 10])
    >>> x = eta + rng.normal(size=1000)
    >>> means = NormalMeans().fit(x)
    >>> round(float(np.mean((x - eta) ** 2)), 2)  # the raw data
    0.96
    >>> round(float(np.mean((means.posterior_mean_ - eta) ** 2)), 2)
    0.23
    >>> means.prior_.atoms.round(1)
    array([0. , 1.7, 9.8])
    """

    def __init__(
        self, prior: Any = "dp", n_jobs: int | None = None, random_state: Any = None
    ) -> None:
        self.prior = prior
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, x: npt.ArrayLike, scale: npt.ArrayLike | None = None) -> NormalMeans:
        """Estimate the prior, and the posterior of each mean.

        Parameters
        ----------
        x : array-like of shape (n,)
            Estimates.
        scale : float or array-like of shape (n,), optional
            Their standard errors, one for all or one for each; by default 1, which
            suits z-scores.
        """
        values = as_values(x)
        if values.ndim != 1:
            raise ValueError(
                f"x must be a vector of estimates, got shape {values.shape}; "
                "use ravel() if they belong to one population"
            )
        errors = 1.0 if scale is None else scale
        check_values(values, errors)
        estimator = make_prior(
            self.prior, n_jobs=self.n_jobs, random_state=self.random_state
        )
        prior = estimator.fit(values, errors).prior_
        posterior = prior.posterior(values, errors)
        log_likelihood = float(np.sum(prior.logpdf(values, errors)))
        # Nothing is set before all is done: a fit that fails changes nothing.
        self.prior_estimator_ = estimator
        self.posterior_, self.log_likelihood_ = posterior, log_likelihood
        return self

    @property
    def prior_(self) -> Prior:
        if "prior_estimator_" not in self.__dict__:
            raise AttributeError("fit first: NormalMeans has no prior yet")
        prior: Prior = self.prior_estimator_.prior_
        return prior

    @property
    def posterior_mean_(self) -> FloatArray:
        return self._fitted().mean

    @property
    def posterior_sd_(self) -> FloatArray:
        return self._fitted().sd

    @property
    def prob_zero_(self) -> FloatArray:
        return self._fitted().prob_zero

    @property
    def lfsr_(self) -> FloatArray:
        return self._fitted().lfsr

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the credible interval of each mean.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        return self._fitted().interval(level)

    def predict(
        self, x: npt.ArrayLike, scale: npt.ArrayLike | None = None
    ) -> FloatArray:
        """Posterior means of new estimates under the fitted prior.

        Parameters
        ----------
        x : array-like
            New estimates.
        scale : float or array-like, optional
            Their standard errors, by default 1.
        """
        check_is_fitted(self, "prior_")
        return self.prior_.posterior(x, 1.0 if scale is None else scale).mean

    def _fitted(self) -> Posterior:
        if "posterior_" not in self.__dict__:
            # hasattr() must say no before fit: properties may only raise this.
            raise AttributeError("fit first: NormalMeans has no posterior yet")
        return self.posterior_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


register(
    Schema(
        NormalMeans,
        {
            "prior_estimator_": Nested("family"),
            "posterior_": Nested("posterior"),
            "log_likelihood_": LIKELIHOOD,
        },
        role="model",
    )
)
