"""A prior that is given, not estimated: the oracle, or knowledge from elsewhere."""

from __future__ import annotations

import numpy.typing as npt

from ebda.priors.base import BasePriorEstimator, PriorFamily, check_values
from ebda.priors.posterior import Prior


class FixedPrior(BasePriorEstimator):
    """A prior that is known; `fit` only checks the values.

    Parameters
    ----------
    prior : Prior
        The distribution of eta, such as a `DiscretePrior`.

    Attributes
    ----------
    prior_ : Prior
        The given prior.

    Examples
    --------
    >>> from ebda.priors import DiscretePrior, FixedPrior
    >>> FixedPrior(DiscretePrior([0, 2], [0.75, 0.25])).fit([0.3, 2.2]).prior_.pi0
    0.75
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
        if self.prior is None or not callable(getattr(self.prior, "posterior", None)):
            raise TypeError(
                "a fixed prior must be given as an object with posterior(z) and "
                f"logpdf(z), such as DiscretePrior([0, 2], [0.9, 0.1]); got "
                f"{self.prior!r}"
            )
        self.prior_ = self.prior
        return self


FAMILY = PriorFamily(
    "fixed", "prior that is given, not estimated", FixedPrior, False, is_reported=True
)
