"""The rules that are compared: covariances, each with some ways to shrink.

A :class:`Recipe` says how rules are made from a summary of the data, with one or
several covariances and ways to shrink. It is applied to all samples, and to the
training samples of each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from ebda.covariance import COVARIANCES, Covariance, Summary
from ebda.moments import VARIANCES, ClassMoments, Contrasts, class_contrasts
from ebda.moments.contrasts import choose_features, choose_runs
from ebda.priors import PriorEstimator
from ebda.priors.null import Null, empirical_null
from ebda.rule.effects import Effects, fit_effects
from ebda.rule.linear_rule import LinearRule
from ebda.rule.shrinkage import SHRINKAGES
from ebda.sizes import sizes
from ebda.typing import IntArray

# A candidate: names of its covariance and of its shrinkage.
Name = tuple[str, str]
_INDEPENDENT = "diagonal"


def line(name: Name) -> str:
    """What a candidate is, in words.

    >>> line(("shrunken", "mean"))
    'shrunken covariance, posterior mean'
    """
    covariance, shrinkage = name
    return f"{COVARIANCES[covariance].line}, {SHRINKAGES[shrinkage].line}"


@dataclass(frozen=True)
class Recipe:
    """How candidates are made.

    Parameters
    ----------
    variance : str
        Name in `VARIANCES`.
    names : list of (covariance, shrinkage)
        The candidates, by names in `COVARIANCES` and `SHRINKAGES`.
    kappa : float
        Threshold of those that have one.
    make_prior : callable
        Makes an unfitted prior estimator.
    unbiased : bool
        Whether the bias of the midpoint is corrected.
    """

    variance: str
    names: list[Name]
    kappa: float
    make_prior: Callable[[], PriorEstimator]
    unbiased: bool = True

    @property
    def usual(self) -> Name:
        """The candidate that is taken where no samples can be held out."""
        usual = [name for name in self.names if name[1] == "mean"]
        preferred = [name for name in usual if COVARIANCES[name[0]].is_usual]
        return (preferred or usual or self.names)[0]

    @property
    def covariances(self) -> list[str]:
        """The covariances that are used."""
        return list(dict.fromkeys(covariance for covariance, _ in self.names))

    def only(self, names: Iterable[Name]) -> Recipe:
        """The same with these candidates alone."""
        return replace(self, names=list(names))

    def without_order(self) -> Recipe:
        """The same without covariances that need the order of the features."""
        names = [name for name in self.names if not COVARIANCES[name[0]].needs_order]
        return self.only(names or self.names)

    def contrasts(self, moments: ClassMoments) -> Contrasts:
        """Normalised contrasts of the class means."""
        return class_contrasts(moments, VARIANCES[self.variance].estimate(moments))

    def part_to_compare(self, data: Summary) -> Summary:
        """The data itself, or some of its features if they are very many.

        A part tells nearly as much about which rule suits the data.
        """
        samples, moments = data.samples, data.moments
        if samples is None:
            return data
        # A sample of weight 2 counts as two, here as everywhere.
        most = sizes.compared_values // max(int(samples.weight.sum()), 1)
        most = min(max(most, sizes.least_compared), sizes.most_compared)
        if moments.means.shape[1] <= most:
            return data
        chosen = self._some(moments, most)
        some = moments.features(chosen)
        return Summary(some, self.contrasts(some), samples.features(chosen))

    def _some(self, moments: ClassMoments, size: int) -> IntArray:
        """Some of the features; neighbours where nothing else is compared."""
        if all(COVARIANCES[name].needs_order for name in self.covariances):
            return choose_runs(moments.means.shape[1], size)
        return choose_features(moments, size)

    def effects(self, data: Summary) -> dict[str, Effects]:
        """Prior and posterior under each covariance.

        Covariances that find no correlation are the diagonal, and have its name.
        """
        found: dict[str, Effects] = {}
        for name in self.covariances:
            covariance = COVARIANCES[name](data)
            if covariance.is_diagonal and self._is_optional(name):
                continue
            name = _INDEPENDENT if covariance.is_diagonal else name
            if name not in found:
                found[name] = self._effects(name, covariance, data.contrasts)
        return found

    def _effects(
        self, name: str, covariance: Covariance, contrasts: Contrasts
    ) -> Effects:
        values, null = covariance.decorrelate(contrasts.z), None
        if COVARIANCES[name].adjusts_null:
            null = empirical_null(values.z[:, ~contrasts.constant])
        prior = self.make_prior()
        return fit_effects(contrasts, covariance, values, null or Null(), prior)

    def found(self, effects: dict[str, Effects]) -> Recipe:
        """The candidates that are different, once the covariances are estimated.

        What found no correlation is the diagonal, and does with its candidates: but a
        way to shrink that was asked for by name stays.
        """
        independent = COVARIANCES[_INDEPENDENT].compared
        asked_for = len({how for _, how in self.names}) == 1
        names = [
            name
            if name[0] in effects
            else (
                _INDEPENDENT,
                name[1] if asked_for or name[1] in independent else independent[0],
            )
            for name in self.names
            if name[0] in effects or not self._is_optional(name[0])
        ]
        return self.only(dict.fromkeys(names))

    def _is_optional(self, covariance: str) -> bool:
        """Whether a covariance that finds nothing is left out.

        Most features have no order, and nothing is to be compared because of that.
        """
        return COVARIANCES[covariance].needs_order and len(self.covariances) > 1

    def rule(
        self, name: Name, effects: dict[str, Effects], moments: ClassMoments
    ) -> LinearRule:
        """The linear rule of one candidate, with equal class probabilities."""
        covariance, shrinkage = name
        equal = np.ones(len(moments.counts))
        # What has a correlation in a part of the features may have none in all.
        known = covariance if covariance in effects else _INDEPENDENT
        return effects[known].rule(moments, equal, shrinkage, self.kappa, self.unbiased)


def candidates(covariance: str, shrinkage: str) -> list[Name]:
    """The candidates for these parameters of the classifier.

    >>> candidates("factor", "auto")
    [('factor', 'mean'), ('factor', 'sparse')]
    """
    auto = covariance == "auto"
    tried = [name for name, entry in COVARIANCES.items() if entry.in_auto]
    return [
        (name, how)
        for name in (tried if auto else [covariance])
        for how in (COVARIANCES[name].compared if shrinkage == "auto" else [shrinkage])
    ]


def reported(effects: dict[str, Effects], best: Name) -> str:
    """The covariance whose effects are reported.

    Values free of common factors where there are any; else the plain ones, if they were
    compared: a decorrelated value is not of its feature alone.
    """
    factors = [name for name, e in effects.items() if e.covariance.n_factors]
    plain = [name for name, e in effects.items() if e.covariance.is_diagonal]
    return next(iter(factors + plain), best[0])
