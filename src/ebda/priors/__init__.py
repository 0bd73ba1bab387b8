"""Prior families: each estimates the prior of eta from z.

`PRIORS` has one entry per family, a :class:`PriorFamily`; the parameter `prior` of the
estimators names them. To add a family, write one file with a class that honours
:mod:`ebda.priors.base` and its entry, and add the entry here. :func:`check_prior` tests
whether it keeps the contract.
"""

from __future__ import annotations

from typing import Any

from ebda.priors import (
    exponential,
    fixed,
    horseshoe,
    kernel,
    laplace,
    martin_walker,
    normal,
    normal_mixture,
    npmle,
    stacked,
    unimodal,
)
from ebda.priors.base import BasePriorEstimator, PriorEstimator, PriorFamily
from ebda.priors.check import check_prior
from ebda.priors.discrete import DiscretePrior
from ebda.priors.dp import dirichlet_process
from ebda.priors.dp.dirichlet_process import DirichletProcess
from ebda.priors.exponential import PointExponential, PointExponentialPrior
from ebda.priors.fixed import FixedPrior
from ebda.priors.horseshoe import Horseshoe, HorseshoePrior
from ebda.priors.kernel import Kernel
from ebda.priors.laplace import PointLaplace, PointLaplacePrior
from ebda.priors.martin_walker import MartinWalker, MartinWalkerPrior
from ebda.priors.normal import PointNormal, PointNormalPrior
from ebda.priors.normal_mixture import NormalMixture, NormalMixturePrior
from ebda.priors.npmle import NPMLE
from ebda.priors.stacked import Stacked
from ebda.priors.unimodal import Unimodal, UnimodalPrior
from ebda.registry import Registry
from ebda.storage.objects import register

__all__ = [
    "NPMLE",
    "PRIORS",
    "BasePriorEstimator",
    "DirichletProcess",
    "DiscretePrior",
    "FixedPrior",
    "Horseshoe",
    "HorseshoePrior",
    "Kernel",
    "MartinWalker",
    "MartinWalkerPrior",
    "NormalMixture",
    "NormalMixturePrior",
    "PointExponential",
    "PointExponentialPrior",
    "PointLaplace",
    "PointLaplacePrior",
    "PointNormal",
    "PointNormalPrior",
    "PriorEstimator",
    "PriorFamily",
    "Stacked",
    "Unimodal",
    "UnimodalPrior",
    "check_prior",
    "family_of",
    "make_prior",
]

PRIORS: Registry[PriorFamily] = Registry(
    "prior",
    dirichlet_process.FAMILY,
    fixed.FAMILY,
    laplace.FAMILY,
    normal.FAMILY,
    kernel.FAMILY,
    npmle.FAMILY,
    normal_mixture.FAMILY,
    unimodal.FAMILY,
    exponential.FAMILY,
    horseshoe.FAMILY,
    martin_walker.FAMILY,
    stacked.FAMILY,
)

register(*(family.schema for family in PRIORS.values()))


def make_prior(
    prior: Any, for_classifier: bool = False, **defaults: Any
) -> PriorEstimator:
    """A prior estimator from what a user gives: a name, an estimator, or a prior.

    Parameters
    ----------
    prior : str, prior estimator or prior
        A name makes the estimator of that family, with those of the `defaults` that
        it has parameters for. An estimator is cloned, so that the given one is not
        changed. A prior, such as `DiscretePrior`, is used as it is.
    for_classifier : bool
        Whether a family given by name gets its settings for a classifier, which
        `defaults` override.
    **defaults
        Parameters such as ``random_state``, for names only.

    Examples
    --------
    >>> make_prior("dp", n_jobs=2, random_state=0)
    DirichletProcess(n_jobs=2, random_state=0)
    >>> make_prior("dp", for_classifier=True)
    DirichletProcess(tol=1e-07, unseen=True)
    >>> make_prior(DiscretePrior([0, 1], [0.5, 0.5]))
    FixedPrior(prior=DiscretePrior(atoms=[0, 1], weights=[0.5, 0.5]))
    """
    from sklearn.base import clone

    if isinstance(prior, str):
        if prior not in PRIORS:
            raise ValueError(
                f"prior must be one of {sorted(PRIORS)}, a prior estimator or a "
                f"prior; got {prior!r}"
            )
        family = PRIORS[prior]
        settings = family.classifier_settings if for_classifier else {}
        return family.make({**settings, **defaults})
    if callable(getattr(prior, "fit", None)):
        return clone(prior)  # type: ignore[no-any-return]
    return FixedPrior(prior)


def family_of(estimator: Any) -> PriorFamily | None:
    """The entry of an estimator's class; None for a class of one's own.

    >>> family_of(DirichletProcess(sigma=3.0)).name
    'dp'
    """
    found = (f for f in PRIORS.values() if f.estimator is type(estimator))
    return next(found, None)
