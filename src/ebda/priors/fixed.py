"""A prior that is given, not estimated: the oracle, or knowledge from elsewhere."""

from __future__ import annotations

import numpy.typing as npt
from sklearn.base import BaseEstimator

from ebda.posterior import Prior
from ebda.priors.contract import check_values
from ebda.priors.discrete import DiscretePrior


class FixedPrior(BaseEstimator):
    """Use a given prior; `fit` only checks the values.

    Parameters
    ----------
    prior : Prior, optional
        The distribution of eta; by default all mass at zero.

    Attributes
    ----------
    prior_ : Prior
        The same.

    Examples
    --------
    >>> from ebda.priors import DiscretePrior, FixedPrior
    >>> FixedPrior(DiscretePrior([0, 2], [0.9, 0.1])).fit([0.3, 2.2]).prior_.pi0
    0.9
    """

    def __init__(self, prior: Prior | None = None) -> None:
        self.prior = prior

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> FixedPrior:
        """Check the values and pass the prior on.

        Parameters
        ----------
        z : array-like
            Values; they do not change the prior.
        scale : float or array-like
            Their noise scale.
        """
        check_values(z, scale)
        given = DiscretePrior([0.0], [1.0]) if self.prior is None else self.prior
        if not callable(getattr(given, "posterior", None)):
            raise TypeError(
                f"FixedPrior needs an object with posterior(z) and logpdf(z), "
                f"such as DiscretePrior; got {given!r}"
            )
        self.prior_ = given
        return self
