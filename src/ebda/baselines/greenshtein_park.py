"""The classifier of Greenshtein and Park (2009), column EB of the paper's tables."""

from __future__ import annotations

from typing import Any

from ebda.estimators.moment_classifier import MomentClassifier, moment_schema
from ebda.moments.contrasts import Contrasts
from ebda.priors.kernel import Kernel
from ebda.storage.fields import SQUEEZED, Array
from ebda.storage.objects import register
from ebda.typing import FloatArray


class GreenshteinPark(MomentClassifier):
    """Differences shrunk by Tweedie's formula with a kernel density estimate.

    Parameters
    ----------
    bandwidth : float
        Bandwidth of the Gaussian kernel, in units of the standard error.
    method : {"auto", "exact", "fast"}
        As in :class:`~ebda.priors.Kernel`.
    variance : {"pooled", "separate"}
        As in :class:`~ebda.EBClassifier`.
    priors : None, "empirical", "uniform" or array-like of shape (n_classes,)
        Class probabilities.

    Attributes
    ----------
    posterior_mean_ : ndarray of shape (n_features,) or (n_classes, n_features)
        The shrunken differences.
    classes_, coef_, intercept_, z_, selected_, class_prior_
        As in :class:`~ebda.EBClassifier`.

    Examples
    --------
    >>> from ebda.baselines import GreenshteinPark
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=2000, effect=0.8, random_state=0)
    >>> bool(GreenshteinPark().fit(sim.data, sim.target).selected_.all())
    True
    """

    def __init__(
        self,
        bandwidth: float = 0.3,
        method: str = "auto",
        variance: str = "pooled",
        priors: Any = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.method = method
        self.variance = variance
        self.priors = priors

    def _estimate(self, contrasts: Contrasts) -> FloatArray:
        kernel = Kernel(self.bandwidth, self.method)
        prior = kernel.fit(contrasts.z[:, ~contrasts.constant]).prior_
        eta = prior.posterior(contrasts.z).mean
        self.posterior_mean_ = eta[0] if len(eta) == 1 else eta
        return eta


register(moment_schema(GreenshteinPark, posterior_mean_=Array(SQUEEZED)))
