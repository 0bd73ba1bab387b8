"""The rules that are compared: every covariance with every shrinkage.

A :class:`Recipe` says how a rule is made from moments and samples, with one or several
covariances and shrinkages; it is applied to all samples, and to the training samples
of each fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ebda.covariance.base import (
    COVARIANCES,
    NEEDS_SAMPLES,
    Covariance,
    Decorrelated,
    Diagonal,
)
from ebda.data.samples import Samples
from ebda.moments.classwise import ClassMoments
from ebda.moments.contrasts import Contrasts, class_contrasts
from ebda.moments.variance import VARIANCES
from ebda.priors.base import PriorEstimator
from ebda.priors.null import Null, empirical_null
from ebda.priors.posterior import Prior
from ebda.rule.effects import Effects, fit_effects
from ebda.rule.linear_rule import LinearRule
from ebda.typing import FloatArray

Name = tuple[str, str]
# Makes an unfitted estimator, which may start at a prior fitted to similar values.
MakePrior = Callable[[Prior | None], PriorEstimator]


@dataclass(frozen=True)
class Shrinkage:
    """One way from the posterior to the estimate.

    Parameters
    ----------
    name : str
        Name in `SHRINKAGES`.
    kappa : float
        Its threshold.
    empirical_null : bool
        Whether the null is where the centre of the values is, or at N(0, 1).
    prior : str
        Which of the recipe's priors.
    """

    name: str
    kappa: float
    empirical_null: bool = False
    prior: str = "main"


# How much smaller kappa is for the candidate "strict".
_STRICTER = 5.0


def shrinkages_for(
    covariance: str, shrinkage: str, kappa: float
) -> dict[str, Shrinkage]:
    """The shrinkages that are tried with a covariance, by the name of the candidate.

    Beside common factors a threshold needs to know where the null really is, and no
    theory says that the posterior mean is best; so there is more to choose from.

    Parameters
    ----------
    covariance : str
        Name in `COVARIANCES`.
    shrinkage : str
        Name in `SHRINKAGES`, or "auto".
    kappa : float
        The threshold.

    >>> list(shrinkages_for("diagonal", "auto", 0.5))
    ['mean', 'sparse']
    """
    factors = covariance == "factor"
    if shrinkage != "auto":
        return {shrinkage: Shrinkage(shrinkage, kappa, factors and shrinkage != "mean")}
    if not factors:
        return {"mean": Shrinkage("mean", kappa), "sparse": Shrinkage("sparse", kappa)}
    return {
        "mean": Shrinkage("mean", kappa),
        "centred": Shrinkage("mean", kappa, empirical_null=True),
        "sparse": Shrinkage("sparse", kappa, empirical_null=True),
        "strict": Shrinkage("sparse", kappa / _STRICTER, empirical_null=True),
        "smooth": Shrinkage("mean", kappa, prior="kernel"),
    }


@dataclass(frozen=True)
class Recipe:
    """How candidates are made.

    Parameters
    ----------
    variance : str
        Name in `VARIANCES`.
    candidates : dict
        The shrinkage of each candidate, by covariance (a name in `COVARIANCES`) and
        the candidate's own name.
    priors : dict
        Makers of unfitted prior estimators, by the name that shrinkages use.
    unbiased : bool
        Whether the bias is taken out of the midpoint.
    starts : dict
        A prior that that of a candidate will be close to, where one is known.
    """

    variance: str
    candidates: dict[Name, Shrinkage]
    priors: dict[str, MakePrior]
    unbiased: bool = True
    starts: dict[Name, Prior] = field(default_factory=dict)

    @property
    def names(self) -> list[Name]:
        """The candidates: covariance, and name of the shrinkage."""
        return list(self.candidates)

    def only(self, names: list[Name]) -> Recipe:
        """The same with these candidates alone."""
        return replace(self, candidates={name: self.candidates[name] for name in names})

    def without_order(self) -> Recipe:
        """The same without what rests on the order of the features."""
        names = [name for name in self.names if name[0] != "neighbours"]
        return self.only(names or self.names)

    def starting_at(self, effects: dict[Name, Effects]) -> Recipe:
        """The same candidates for similar data: their priors start at these."""
        starts = {name: e.prior_estimator.prior_ for name, e in effects.items()}
        return replace(self.only(list(effects)), starts=starts)

    @property
    def covariances(self) -> list[str]:
        """The covariances that are used."""
        return list(dict.fromkeys(covariance for covariance, _ in self.candidates))

    @property
    def needs_samples(self) -> bool:
        """Whether moments alone do not do."""
        return len(self.names) > 1 or not NEEDS_SAMPLES.isdisjoint(self.covariances)

    def contrasts(self, moments: ClassMoments) -> Contrasts:
        """Normalised contrasts of the class means."""
        return class_contrasts(moments, VARIANCES[self.variance](moments))

    def effects(
        self, moments: ClassMoments, contrasts: Contrasts, samples: Samples | None
    ) -> dict[Name, Effects]:
        """Prior and posterior of each candidate.

        A covariance that finds nothing to take out is the diagonal, and a null that
        is no different from N(0, 1) is that of theory: what is the same is fitted
        once.
        """
        plain: _Values | None = None
        values = {}
        for name in self.covariances:
            covariance = COVARIANCES[name](moments, contrasts, samples)
            if isinstance(covariance, Diagonal):
                plain = plain or _Values(contrasts, covariance, self.priors)
                values[name] = plain
            else:
                values[name] = _Values(contrasts, covariance, self.priors)
        found = {}
        for candidate, shrinkage in self.candidates.items():
            mine = values[candidate[0]]
            if mine is plain and candidate[0] == "factor":
                # Without factors there is no correlation to be wary of.
                shrinkage = replace(shrinkage, prior="main", empirical_null=False)
            found[candidate] = mine.effects(shrinkage, self.starts.get(candidate))
        return found

    def rules(
        self, effects: dict[Name, Effects], moments: ClassMoments, prior: FloatArray
    ) -> dict[Name, LinearRule]:
        """The linear rule of each candidate, with these class probabilities.

        Candidates that are the same share one object.
        """
        made: dict[tuple[int, str, float], LinearRule] = {}
        rules = {}
        for name, shrinkage in self.candidates.items():
            key = (id(effects[name]), shrinkage.name, shrinkage.kappa)
            if key not in made:
                made[key] = self.rule(name, effects, moments, prior)
            rules[name] = made[key]
        return rules

    def rule(
        self,
        name: Name,
        effects: dict[Name, Effects],
        moments: ClassMoments,
        prior: FloatArray,
    ) -> LinearRule:
        """The linear rule of one candidate.

        Its spread is for a comparison: a rule alone goes without.
        """
        s, several = self.candidates[name], len(self.names) > 1
        return effects[name].rule(
            moments, prior, s.name, s.kappa, self.unbiased, several
        )


def drop_redundant(effects: dict[Name, Effects]) -> dict[Name, Effects]:
    """Leave out covariances that found nothing and are the diagonal over again."""
    plain = {name for name in effects if name[0] == "diagonal"}
    busy = {
        name
        for name, effect in effects.items()
        if not isinstance(effect.covariance, Diagonal)
    }
    return {
        name: effect
        for name, effect in effects.items()
        if not plain or name in plain or name in busy
    }


class _Values:
    """Contrasts under one covariance, and the effects fitted to them so far."""

    def __init__(
        self,
        contrasts: Contrasts,
        covariance: Covariance,
        priors: dict[str, MakePrior],
    ) -> None:
        self.contrasts, self.covariance, self.priors = contrasts, covariance, priors
        self.values: Decorrelated = covariance.decorrelate(contrasts.z)
        self.fitted: dict[tuple[bool, str], Effects] = {}

    def effects(self, shrinkage: Shrinkage, start: Prior | None) -> Effects:
        null = None
        if shrinkage.empirical_null:
            null = empirical_null(self.values.z[:, ~self.contrasts.constant])
        key = (null is not None, shrinkage.prior)
        if key not in self.fitted:
            self.fitted[key] = fit_effects(
                self.contrasts,
                self.covariance,
                self.values,
                null or Null(),
                self.priors[shrinkage.prior](start),
            )
        return self.fitted[key]
