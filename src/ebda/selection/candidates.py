"""The rules that are compared: covariances, each with some ways to shrink.

A :class:`Recipe` says how rules are made from a summary of the data, with one or
several covariances and ways to shrink. It is applied to all samples, and to the
training samples of each fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from ebda.covariance import COVARIANCES, Summary
from ebda.moments import VARIANCES, ClassMoments, Contrasts, class_contrasts
from ebda.moments.contrasts import choose_features, choose_runs
from ebda.moments.variance import Variance
from ebda.priors import PriorEstimator
from ebda.rule.effects import Effects
from ebda.rule.expected import Expectation
from ebda.rule.linear_rule import LinearRule, root_of_sum
from ebda.rule.shrinkage import SHRINKAGES, Shrinkage
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
    share : float
        Share of the features that rules are made of, where they are compared on a part.
    """

    variance: str
    names: list[Name]
    kappa: float
    make_prior: Callable[[], PriorEstimator]
    unbiased: bool = True
    share: float = 1.0

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

    @property
    def expects(self) -> bool:
        """Whether missing values are expected from the others of a sample.

        Where all rules are made under the model that tells them. In a sum with other
        rules it was no better than the midpoint (``benchmarks/missing_values.py``).
        """
        return all(COVARIANCES[name].tells_missing for name in self.covariances)

    def only(self, names: Iterable[Name]) -> Recipe:
        """The same with these candidates alone."""
        return replace(self, names=list(names))

    def on_part(self, share: float) -> Recipe:
        """The same for a share of the features, which tell nothing about an order."""
        names = [name for name in self.names if not COVARIANCES[name[0]].needs_order]
        return replace(self, names=names or self.names, share=share)

    def shrinkage(self, name: Name) -> Shrinkage:
        """How a candidate shrinks."""
        return SHRINKAGES[name[1]].on_part(self.share)

    def variance_of(self, moments: ClassMoments) -> Variance:
        """Variances within the classes."""
        return VARIANCES[self.variance].estimate(moments)

    def contrasts(self, moments: ClassMoments) -> Contrasts:
        """Normalised contrasts of the class means."""
        return class_contrasts(moments, self.variance_of(moments))

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
        known = self.contrasts(some), samples.features(chosen), data.given_key
        return Summary(some, *known, data.all_covariates)

    def _some(self, moments: ClassMoments, size: int) -> IntArray:
        """Some of the features; neighbours where nothing else is compared."""
        if all(COVARIANCES[name].needs_order for name in self.covariances):
            return choose_runs(moments.means.shape[1], size)
        return choose_features(moments, size)

    def effects(self, data: Summary) -> dict[str, Effects]:
        """Prior and posterior under each covariance.

        Covariances that find no correlation are the diagonal, and have its name. Those
        that the data contradict are left out where there are others.
        """
        found: dict[str, Effects] = {}
        for name in self.covariances:
            covariance = COVARIANCES[name](data)
            if covariance.is_contradicted and len(self.covariances) > 1:
                continue
            name = _INDEPENDENT if covariance.is_diagonal else name
            if name not in found:
                values = covariance.decorrelate(data.contrasts.z)
                found[name] = Effects(
                    data.contrasts,
                    covariance,
                    values,
                    self.make_prior(),
                    has_missing=data.moments.observed is not None,
                )
        return found

    def found(self, effects: dict[str, Effects]) -> Recipe:
        """The candidates that are different, once the covariances are estimated.

        Where there is no correlation nothing is better than the posterior mean. A way
        to shrink that was asked for by name stays. Where the usual covariance finds
        none, but another one does, perhaps by chance, what is compared with the usual
        one is compared with the diagonal instead.
        """
        if set(effects) == {_INDEPENDENT} != set(self.covariances):
            asked_for = {how for _, how in self.names}
            how = asked_for.pop() if len(asked_for) == 1 else "mean"
            return self.only([(_INDEPENDENT, how)])
        instead = {
            name: _INDEPENDENT
            for name in self.covariances
            if COVARIANCES[name].is_usual
        }
        names = [
            (name if name in effects else instead.get(name, name), how)
            for name, how in self.names
        ]
        names = [name for name in dict.fromkeys(names) if name[0] in effects]
        p = next(iter(effects.values())).z.shape[1]
        fewer = [name for name in names if (self.shrinkage(name).n_largest or 0) < p]
        return self.only(fewer or names)

    def rule(
        self, name: Name, effects: dict[str, Effects], moments: ClassMoments
    ) -> LinearRule:
        """The linear rule of one candidate, with equal class probabilities."""
        equal = np.ones(len(moments.counts))
        # What has a correlation in a part of the features may have none in all.
        known = effects[name[0] if name[0] in effects else _INDEPENDENT]
        how = self.shrinkage(name)
        return known.rule(moments, equal, how, self.kappa, self.unbiased)

    def expectation(self, effects: dict[str, Effects]) -> Expectation | None:
        """What missing values of new samples are expected from, if from anything."""
        if not self.expects:
            return None
        found = [known.covariance.low_rank for known in effects.values()]
        return next((Expectation(*pair) for pair in found if pair is not None), None)

    def score_sd(self, name: Name, effects: dict[str, Effects]) -> float:
        """Standard deviation of a candidate's scores, as its own model has it."""
        _, variance = effects[name[0]].weights(self.shrinkage(name), self.kappa)
        return root_of_sum(variance)


def candidates(covariance: str, shrinkage: str) -> list[Name]:
    """The candidates for these parameters of the classifier.

    >>> candidates("factor", "auto")
    [('factor', 'mean'), ('factor', 'sparse'), ('factor', 'top1000')]
    """
    if covariance != "auto":
        tried = {covariance: COVARIANCES[covariance].compared}
    else:
        tried = {
            name: entry.compared if entry.beside_others is None else entry.beside_others
            for name, entry in COVARIANCES.items()
            if entry.in_auto
        }
    names = [
        (name, how)
        for name, compared in tried.items()
        for how in (compared if shrinkage == "auto" else [shrinkage])
    ]
    if covariance != "auto" and shrinkage == "auto":
        names += COVARIANCES[covariance].and_others
    return names


def reported(effects: dict[str, Effects], best: Name) -> str:
    """The covariance whose effects are reported.

    Values free of common factors where there are any; else the plain ones, if they were
    compared: a decorrelated value is not of its feature alone.
    """
    factors = [name for name, e in effects.items() if e.covariance.n_factors]
    plain = [name for name, e in effects.items() if e.covariance.is_diagonal]
    return next(iter(factors + plain), best[0])
