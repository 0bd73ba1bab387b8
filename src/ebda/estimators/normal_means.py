"""NormalMeans: denoise a vector of estimates with an estimated prior."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ebda.estimators.estimates import Estimates
from ebda.priors import family_of, make_prior
from ebda.priors.mode import most_likely_mode
from ebda.priors.posterior import Posterior, Prior, as_values, has_density
from ebda.priors.reporting import NULLS, report
from ebda.priors.student import se_of_t, z_of_t
from ebda.rule.ranking import tail_average
from ebda.storage.fields import LIKELIHOOD, Array, Scalar
from ebda.storage.objects import Nested, Schema, register
from ebda.tables import data_frame
from ebda.typing import FloatArray


class NormalMeans(BaseEstimator):
    """Posterior of the means ``eta`` behind estimates ``x ~ N(eta, scale**2)``.

    Three questions have three answers. The mean of each estimate comes from the prior
    that is asked for. Intervals come from a smooth prior, because atoms leave intervals
    that are too short. And whether an estimate differs from most others, and in which
    direction, is judged by a null that is an interval around the bulk of the values
    (:func:`ebda.priors.null.beyond_null`).

    Parameters
    ----------
    prior : str, prior estimator or prior
        As in :class:`~ebda.EBClassifier`. By default the atoms of a Dirichlet process
        and a scale mixture of normal distributions, with the shares that predict
        held-out values best (:class:`~ebda.priors.Stacked`).
    null : {"auto", "empirical", "point"}
        What `prob_zero_`, `lfsr_`, `q_value_` and `s_value_` compare with. "empirical":
        the bulk of the values ``x / scale``, a normal distribution whose place and
        width are estimated, and never narrower than N(0, 1). It is N(0, 1) for less
        than 100 values. "point": a mean of exactly zero, or of `mode`. "auto":
        "empirical", but "point" for a prior that is given and not estimated.
    mode : float or "estimate"
        Mode of the prior: what means are shrunken towards, and where its point mass
        lies. "estimate": by maximum likelihood, as in ebnm.
    n_jobs : int, optional
        Parallel jobs, for a prior given by name.
    random_state : int, RandomState or None
        For a prior given by name, where it needs random numbers.

    Attributes
    ----------
    prior_ : Prior
        The estimated distribution of the means, minus the mode.
    mode_ : float
        The mode.
    posterior_mean_, posterior_sd_ : ndarray, as x
        Mean and standard deviation of each mean. These and all others are NaN where x
        or its standard error is.
    prob_zero_ : ndarray, as x
        Probability of belonging to the null: the local false discovery rate.
    lfsr_ : ndarray, as x
        Local false sign rate: the probability of being in the null, or on its other
        side.
    q_value_, s_value_ : ndarray, as x
        Averages of `prob_zero_` and `lfsr_` over all estimates with no larger one: the
        shares of false discoveries and of false signs in a list that ends there.
    null_loc_, null_scale_ : float
        Place and width of the null, in standard errors from the mode; 0 and 1 for the
        null of theory.
    log_likelihood_ : float or None
        Log marginal density of all estimates; None under a prior that has none
        (:class:`~ebda.priors.MartinWalker`).
    x_, scale_ : ndarray
        Estimates and standard errors, adjusted for their degrees of freedom.
    posterior_ : Posterior
        Of the means minus the mode, of estimates that are not NaN.

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
    >>> int(means.selected().sum())
    14
    """

    def __init__(
        self,
        prior: Any = "stacked",
        null: str = "auto",
        mode: float | str = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.prior = prior
        self.null = null
        self.mode = mode
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        x: npt.ArrayLike,
        scale: npt.ArrayLike | None = None,
        df: npt.ArrayLike | None = None,
    ) -> NormalMeans:
        """Estimate the prior, and the posterior of each mean.

        Parameters
        ----------
        x : array-like of shape (n,)
            Estimates; NaN where there is none.
        scale : float or array-like of shape (n,), optional
            Their standard errors, one for all or one for each; by default 1, which
            suits z-scores.
        df : float or array-like of shape (n,), optional
            Degrees of freedom of the standard errors where they were estimated from few
            data. Signs are judged by the z with the same tail probability as
            ``t = x / scale``, and means and intervals get the standard error that leads
            to it, ``x / z``.
        """
        self._check_parameters()
        given = Estimates.of(x, scale, df)
        values, errors = given.x[given.there], given.scale[given.there]
        df = None if given.df is None else given.df[given.there]
        mode = self._mode_of(values, errors, df)
        values, z = values - mode, None
        if df is not None:
            t = values / errors
            z, errors = z_of_t(t, df), errors * se_of_t(t, df)
        estimator = make_prior(
            self.prior, n_jobs=self.n_jobs, random_state=self.random_state
        )
        prior = estimator.fit(values, errors).prior_
        posterior = prior.posterior(values, errors)
        found = report(values, errors, z, posterior, family_of(estimator), self.null)
        log_likelihood = None
        if has_density(prior):
            log_likelihood = float(np.sum(prior.logpdf(values, errors)))
        # Nothing is set before all is done: a fit that fails changes nothing.
        self.prior_estimator_ = estimator
        self.posterior_, self.log_likelihood_ = posterior, log_likelihood
        self.signs_, self.intervals_ = found.signs, found.intervals
        self.null_loc_, self.null_scale_ = found.loc, found.scale
        self.mode_, self.x_ = mode, given.x
        self.scale_ = np.where(given.there, given.scale, np.nan)
        self.scale_[given.there] = errors
        return self

    def _mode_of(
        self, values: FloatArray, errors: FloatArray, df: FloatArray | None
    ) -> float:
        """The mode, with the standard errors that t statistics about it lead to."""
        if not isinstance(self.mode, str):
            return float(self.mode)
        if df is not None:
            about = values - np.median(values)
            errors = errors * se_of_t(about / errors, df)
        return most_likely_mode(values, errors)

    def _check_parameters(self) -> None:
        if self.null not in NULLS:
            raise ValueError(f"null must be one of {list(NULLS)}, got {self.null!r}")
        is_number = isinstance(self.mode, Real) and np.isfinite(float(self.mode))
        if not (is_number or self.mode == "estimate"):
            raise ValueError(
                f"mode must be a finite number or 'estimate', got {self.mode!r}"
            )

    @property
    def prior_(self) -> Prior:
        if "prior_estimator_" not in self.__dict__:
            raise AttributeError("fit first: NormalMeans has no prior yet")
        prior: Prior = self.prior_estimator_.prior_
        return prior

    @property
    def posterior_mean_(self) -> FloatArray:
        return self._rows(self._fitted().mean + self.mode_)

    @property
    def posterior_sd_(self) -> FloatArray:
        return self._rows(self._fitted().sd)

    @property
    def prob_zero_(self) -> FloatArray:
        return self._rows(self._fitted("signs_").prob_zero)

    @property
    def lfsr_(self) -> FloatArray:
        return self._rows(self._fitted("signs_").lfsr)

    @property
    def q_value_(self) -> FloatArray:
        return self._rows(tail_average(self._fitted("signs_").prob_zero))

    @property
    def s_value_(self) -> FloatArray:
        return self._rows(tail_average(self._fitted("signs_").lfsr))

    def selected(self, level: float = 0.05) -> npt.NDArray[np.bool_]:
        """Estimates that differ from the null: their s-value is at most `level`.

        Parameters
        ----------
        level : float
            Expected share of false signs among them; the share that belongs to the null
            is no larger.
        """
        chosen: npt.NDArray[np.bool_] = self.s_value_ <= level  # NaN is not
        return chosen

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Ends of the credible interval of each mean.

        Parameters
        ----------
        level : float
            Probability inside, between 0 and 1.
        """
        lower, upper = self._fitted("intervals_").interval(level)
        return self._rows(lower + self.mode_), self._rows(upper + self.mode_)

    def to_frame(self, level: float = 0.95, index: Any = None) -> Any:
        """A pandas table with one row per estimate, in the order of x.

        Parameters
        ----------
        level : float
            Probability inside the intervals.
        index : array-like, optional
            Names of the rows.
        """
        lower, upper = self.interval(level)
        columns = {
            "estimate": self.x_,
            "scale": self.scale_,
            "posterior_mean": self.posterior_mean_,
            "posterior_sd": self.posterior_sd_,
            "lower": lower,
            "upper": upper,
            "lfdr": self.prob_zero_,
            "lfsr": self.lfsr_,
            "q_value": self.q_value_,
            "s_value": self.s_value_,
        }
        return data_frame(columns, index)

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
        distance = as_values(x) - self.mode_
        posterior = self.prior_.posterior(distance, 1.0 if scale is None else scale)
        return posterior.mean + self.mode_

    def _fitted(self, name: str = "posterior_") -> Posterior:
        if name not in self.__dict__:
            # hasattr() must say no before fit: properties may only raise this.
            raise AttributeError("fit first: NormalMeans has no posterior yet")
        posterior: Posterior = self.__dict__[name]
        return posterior

    def _rows(self, found: FloatArray) -> FloatArray:
        """Results of the estimates that are there, and NaN for the others."""
        there = ~(np.isnan(self.x_) | np.isnan(self.scale_))
        if there.all():
            return found
        rows = np.full(len(there), np.nan)
        rows[there] = found
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        return tags


def _finish(model: NormalMeans) -> None:
    """Files of ebda 0.1 have one posterior for everything, and no mode.

    What was None, a likelihood, is not in a file.
    """
    state = model.__dict__
    posterior = state.get("posterior_")
    if posterior is None:
        raise ValueError("there is no posterior")
    n = np.shape(posterior.mean)
    defaults = {
        "signs_": posterior,
        "intervals_": posterior,
        "log_likelihood_": None,
        "mode_": 0.0,
        "null_loc_": 0.0,
        "null_scale_": 1.0,
        "x_": getattr(posterior, "z", np.zeros(n)),
        "scale_": getattr(posterior, "scale", np.ones(n)),
    }
    for name, value in defaults.items():
        state.setdefault(name, value)


_REPORTED: dict[str, Any] = {
    "signs_": Nested("posterior"),
    "intervals_": Nested("posterior"),
    "mode_": Scalar((float,)),
    "null_loc_": Scalar((float,)),
    "null_scale_": Scalar((float,), least=1.0),
    "x_": Array(("rows",), ()),
    "scale_": Array(("rows",), ()),
}
register(
    Schema(
        NormalMeans,
        {
            "prior_estimator_": Nested("family"),
            "posterior_": Nested("posterior"),
            "log_likelihood_": LIKELIHOOD,
            **_REPORTED,
        },
        optional=frozenset(_REPORTED) | {"log_likelihood_"},
        finish=_finish,
        role="model",
    )
)
