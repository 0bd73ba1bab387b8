"""The rules that are compared: every covariance with every way to shrink.

A :class:`Recipe` says how a rule is made from moments and samples, with one or several
covariances and ways to shrink. It is applied to all samples, and to the training
samples of each fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from ebda.covariance import COVARIANCES, Covariance
from ebda.data import Samples
from ebda.moments import (
    VARIANCES,
    ClassMoments,
    Contrasts,
    choose_features,
    class_contrasts,
)
from ebda.priors import PriorEstimator
from ebda.priors.null import Null, empirical_null
from ebda.priors.posterior import Prior
from ebda.registry import Entry, Registry
from ebda.rule.effects import Effects, fit_effects
from ebda.rule.linear_rule import LinearRule
from ebda.rule.shrinkage import SHRINKAGES
from ebda.sizes import sizes

# Names of a covariance and of a candidate.
Name = tuple[str, str]
# Makes an unfitted estimator, which may start at a prior fitted to similar values.
MakePrior = Callable[[Prior | None], PriorEstimator]


@dataclass(frozen=True)
class Candidate(Entry):
    """A way from the values to the estimate that ``shrinkage="auto"`` compares.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`.
    shrinkage : str
        Name in `SHRINKAGES`.
    stricter : float
        What its threshold is divided by.
    centred : bool
        Whether the null is that of the data even without a threshold.
    prior : str
        Which of the recipe's priors.
    adjusted_only : bool
        Whether it is tried only with covariances that adjust the null.
    """

    shrinkage: str
    stricter: float = 1.0
    centred: bool = False
    prior: str = "main"
    adjusted_only: bool = False


# The first is the usual one.
CANDIDATES: Registry[Candidate] = Registry(
    "candidate",
    Candidate("mean", SHRINKAGES["mean"].line, "mean"),
    Candidate(
        "centred",
        "posterior mean, with the null estimated from the data",
        "mean",
        centred=True,
        adjusted_only=True,
    ),
    Candidate("sparse", SHRINKAGES["sparse"].line, "sparse"),
    Candidate(
        "strict",
        "only differences that are nearly certain",
        "sparse",
        stricter=5.0,
        adjusted_only=True,
    ),
    Candidate(
        "smooth",
        "posterior mean under a smooth prior",
        "mean",
        prior="kernel",
        adjusted_only=True,
    ),
)


@dataclass(frozen=True, eq=False)
class Summary:
    """What rules are made from: moments, contrasts, and samples if they were kept."""

    moments: ClassMoments
    contrasts: Contrasts
    samples: Samples | None


@dataclass(frozen=True)
class Settings:
    """How a candidate estimates, beside one covariance.

    Parameters
    ----------
    shrinkage, kappa
        Name in `SHRINKAGES`, and its threshold.
    empirical_null : bool
        Whether the null is where the centre of the values is, or N(0, 1).
    prior : str
        Which of the recipe's priors.
    """

    shrinkage: str
    kappa: float
    empirical_null: bool = False
    prior: str = "main"


def settings_for(covariance: str, shrinkage: str, kappa: float) -> dict[str, Settings]:
    """What is tried with a covariance, by the name of the candidate.

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

    >>> list(settings_for("diagonal", "auto", 0.5))
    ['mean', 'sparse']
    """
    adjusts = COVARIANCES[covariance].adjusts_null
    auto = shrinkage == "auto"
    tried = CANDIDATES.values() if auto else [Candidate(shrinkage, "", shrinkage)]
    return {
        c.name: Settings(
            c.shrinkage,
            kappa / c.stricter,
            adjusts and (c.centred or SHRINKAGES[c.shrinkage].thresholds),
            c.prior,
        )
        for c in tried
        if adjusts or not c.adjusted_only
    }


@dataclass(frozen=True)
class Recipe:
    """How candidates are made.

    Parameters
    ----------
    variance : str
        Name in `VARIANCES`.
    candidates : dict
        The settings of each candidate, by covariance (a name in `COVARIANCES`) and
        the candidate's own name.
    priors : dict
        Makers of unfitted prior estimators, by the name that settings use.
    unbiased : bool
        Whether the bias of the midpoint is corrected.
    starts : dict
        A prior close to that of a candidate, where one is known.
    """

    variance: str
    candidates: dict[Name, Settings]
    priors: dict[str, MakePrior]
    unbiased: bool = True
    starts: dict[Name, Prior] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        variance: str,
        covariance: str,
        shrinkage: str,
        kappa: float,
        priors: dict[str, MakePrior],
        unbiased: bool = True,
    ) -> Recipe:
        """The candidates for these parameters of the classifier."""
        if covariance == "auto":
            tried = [name for name, entry in COVARIANCES.items() if entry.in_auto]
        else:
            tried = [covariance]
        candidates = {
            (name, candidate): settings
            for name in tried
            for candidate, settings in settings_for(name, shrinkage, kappa).items()
        }
        return cls(variance, candidates, priors, unbiased)

    @property
    def names(self) -> list[Name]:
        """The candidates: covariance, and name of the candidate."""
        return list(self.candidates)

    @property
    def usual(self) -> Name:
        """The candidate that is preferred where the samples do not decide."""
        usual = [name for name in self.names if COVARIANCES[name[0]].is_usual]
        return (usual or self.names)[0]

    @property
    def covariances(self) -> list[str]:
        """The covariances that are used."""
        return list(dict.fromkeys(covariance for covariance, _ in self.candidates))

    @property
    def needs_samples(self) -> bool:
        """Whether moments alone are not enough."""
        return len(self.names) > 1 or any(
            COVARIANCES[name].needs_samples for name in self.covariances
        )

    def only(self, names: list[Name]) -> Recipe:
        """The same with these candidates alone."""
        return replace(self, candidates={name: self.candidates[name] for name in names})

    def without_order(self) -> Recipe:
        """The same without covariances that need the order of the features."""
        names = [name for name in self.names if not COVARIANCES[name[0]].needs_order]
        return self.only(names or self.names)

    def starting_at(self, effects: dict[Name, Effects]) -> Recipe:
        """The same candidates for similar data: their priors start at these."""
        starts = {name: e.prior_estimator.prior_ for name, e in effects.items()}
        return replace(self.only(list(effects)), starts=starts)

    def contrasts(self, moments: ClassMoments) -> Contrasts:
        """Normalised contrasts of the class means."""
        return class_contrasts(moments, VARIANCES[self.variance].estimate(moments))

    def part_to_compare(self, data: Summary) -> Summary:
        """The data itself, or some of its features if they are very many.

        A part tells nearly as much about which rule suits the data.
        """
        samples, moments = data.samples, data.moments
        if samples is None or len(self.names) == 1:
            return data
        # A sample of weight 2 counts as two, here as everywhere.
        most = sizes.compared_values // max(int(samples.weight.sum()), 1)
        most = min(max(most, sizes.least_compared), sizes.most_compared)
        if moments.means.shape[1] <= most:
            return data
        chosen = choose_features(moments, most)
        some = moments.features(chosen)
        return Summary(some, self.contrasts(some), samples.features(chosen))

    def effects(self, data: Summary) -> dict[Name, Effects]:
        """Prior and posterior of each candidate.

        A covariance that finds no correlation is the diagonal, and a null that does
        not differ from N(0, 1) is that of theory: what is the same is fitted once.
        """
        plain: _Fits | None = None
        contrasts, fits = data.contrasts, {}
        for name in self.covariances:
            covariance = COVARIANCES[name](data.moments, contrasts, data.samples)
            if covariance.is_diagonal:
                plain = plain or _Fits(contrasts, covariance, self.priors)
                fits[name] = plain
            else:
                fits[name] = _Fits(contrasts, covariance, self.priors)
        found = {}
        for candidate, settings in self.candidates.items():
            mine = fits[candidate[0]]
            if mine is plain and COVARIANCES[candidate[0]].adjusts_null:
                # Without correlation the null is that of theory.
                settings = replace(settings, prior="main", empirical_null=False)
            found[candidate] = mine.effects(settings, self.starts.get(candidate))
        return found

    def rules(
        self, effects: dict[Name, Effects], moments: ClassMoments
    ) -> dict[Name, LinearRule]:
        """The linear rule of each candidate, with equal class probabilities.

        Candidates that are the same share one object.
        """
        made: dict[tuple[int, str, float], LinearRule] = {}
        rules = {}
        for name, settings in self.candidates.items():
            key = (id(effects[name]), settings.shrinkage, settings.kappa)
            if key not in made:
                made[key] = self.rule(name, effects, moments)
            rules[name] = made[key]
        return rules

    def rule(
        self, name: Name, effects: dict[Name, Effects], moments: ClassMoments
    ) -> LinearRule:
        """The linear rule of one candidate, with equal class probabilities.

        The standard deviation of its scores is for comparisons: a single candidate
        goes without.
        """
        s, several = self.candidates[name], len(self.names) > 1
        equal = np.ones(len(moments.counts))
        return effects[name].rule(
            moments, equal, s.shrinkage, s.kappa, self.unbiased, several
        )


def drop_redundant(effects: dict[Name, Effects]) -> dict[Name, Effects]:
    """Leave out covariances that found no correlation, but for the first of them."""
    plain = [name[0] for name, e in effects.items() if e.covariance.is_diagonal]
    return {
        name: e
        for name, e in effects.items()
        if not e.covariance.is_diagonal or name[0] == plain[0]
    }


def beside_factors(effects: dict[Name, Effects]) -> Name | None:
    """The candidate to report where common factors were found.

    The one with the empirical null, if there is a choice: what factors leave behind
    would look like thousands of small differences.
    """
    found = [name for name, e in effects.items() if e.covariance.n_factors]
    centred = [name for name in found if name[1] in CANDIDATES]
    centred = [name for name in centred if CANDIDATES[name[1]].centred]
    return next(iter(centred or found), None)


class _Fits:
    """Contrasts under one covariance, and the effects fitted to them so far."""

    def __init__(
        self,
        contrasts: Contrasts,
        covariance: Covariance,
        priors: dict[str, MakePrior],
    ) -> None:
        self.contrasts, self.covariance, self.priors = contrasts, covariance, priors
        self.values = covariance.decorrelate(contrasts.z)
        self.fitted: dict[tuple[bool, str], Effects] = {}

    def effects(self, settings: Settings, start: Prior | None) -> Effects:
        null = None
        if settings.empirical_null:
            null = empirical_null(self.values.z[:, ~self.contrasts.constant])
        key = (null is not None, settings.prior)
        if key not in self.fitted:
            self.fitted[key] = fit_effects(
                self.contrasts,
                self.covariance,
                self.values,
                null or Null(),
                self.priors[settings.prior](start),
            )
        return self.fitted[key]
