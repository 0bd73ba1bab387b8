"""Covariances, priors and posteriors of several folds, as if they were one.

Rows of one fold come after those of another. Each fold's rows have a covariance and a
prior of their own, which are those of its training samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ebda.cached import cached_property
from ebda.covariance import Covariance, Decorrelated
from ebda.priors.base import refit
from ebda.priors.posterior import Posterior, Prior, mean_slope
from ebda.rule.effects import Effects, posterior_with_noise
from ebda.typing import FloatArray


@dataclass(frozen=True, eq=False)
class StackedValues(Decorrelated):
    """Decorrelated contrasts of several folds, one fold's rows after another's.

    Parameters
    ----------
    parts : list of Decorrelated
        Those of each fold.
    """

    parts: list[Decorrelated] = field(default_factory=list)

    @classmethod
    def of(cls, parts: list[Decorrelated]) -> StackedValues:
        """One after another."""
        return cls(np.concatenate([part.z for part in parts]), parts=parts)

    def divergence(self, slope: FloatArray) -> FloatArray:
        slopes = np.split(slope, len(self.parts))
        return np.concatenate(
            [part.divergence(s) for part, s in zip(self.parts, slopes, strict=True)]
        )


@dataclass(frozen=True, eq=False)
class StackedCovariance(Covariance):
    """The covariances of several folds: each for the rows of its own.

    Parameters
    ----------
    parts : list of Covariance
        Those of each fold.
    """

    parts: list[Covariance]

    @property
    def is_diagonal(self) -> bool:
        return all(part.is_diagonal for part in self.parts)

    @property
    def n_factors(self) -> int:
        return max(part.n_factors for part in self.parts)

    def decorrelate(self, z: FloatArray) -> StackedValues:
        return StackedValues.of(
            [part.decorrelate(rows) for part, rows in self._split(z)]
        )

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        assert isinstance(values, StackedValues)
        parts = zip(self._split(e), values.parts, strict=True)
        return np.concatenate([part.restore(rows, v) for (part, rows), v in parts])

    def solve(self, rows: FloatArray) -> FloatArray:
        return np.concatenate([part.solve(own) for part, own in self._split(rows)])

    def weigh(
        self, e: FloatArray, values: Decorrelated, unit: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        assert isinstance(values, StackedValues)
        units = np.split(unit, len(self.parts))
        parts = zip(self._split(e), values.parts, units, strict=True)
        found = [part.weigh(rows, v, u) for (part, rows), v, u in parts]
        weights, variance = zip(*found, strict=True)
        return np.concatenate(weights), np.concatenate(variance)

    def _split(self, rows: FloatArray) -> Iterator[tuple[Covariance, FloatArray]]:
        return zip(self.parts, np.split(rows, len(self.parts)), strict=True)


@dataclass(frozen=True, eq=False)
class StackedPosterior:
    """Posteriors of several folds, one fold's rows after another's.

    Their priors are fitted when something is asked for: some shrinkages need none.

    Parameters
    ----------
    effects : StackedEffects
        The folds.
    z : ndarray of shape (..., n_folds * n_contrasts, n_features)
        What the posterior is of.
    """

    effects: StackedEffects
    z: FloatArray

    @cached_property
    def parts(self) -> list[Posterior]:
        """Those of each fold."""
        n = len(self.effects.covariances)
        rows = np.split(self.z, n, axis=-2)
        known = zip(self.effects.priors, rows, self.effects.noises, strict=True)
        return [posterior_with_noise(prior, own, noise) for prior, own, noise in known]

    @property
    def mean(self) -> FloatArray:
        return self._rows("mean")

    @property
    def prob_zero(self) -> FloatArray:
        return self._rows("prob_zero")

    @property
    def sd(self) -> FloatArray:
        return self._rows("sd")

    @property
    def lfsr(self) -> FloatArray:
        return self._rows("lfsr")

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        ends = [part.interval(level) for part in self.parts]
        lower, upper = (_stack(side) for side in zip(*ends, strict=True))
        return lower, upper

    @property
    def mean_slope(self) -> FloatArray:
        return _stack([mean_slope(part) for part in self.parts])

    def _rows(self, summary: str) -> FloatArray:
        return _stack([getattr(part, summary) for part in self.parts])


def _stack(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate(parts, axis=-2)


@dataclass(frozen=True, eq=False)
class StackedEffects(Effects):
    """Effects of several folds, each under a prior of its own.

    Parameters
    ----------
    contrasts, covariance, values, estimator
        One fold's rows after another's. The estimator is fitted to all samples, and the
        priors of the folds start at its estimate.
    covariances : list of Covariance
        Those of the folds.
    """

    covariances: list[Covariance]

    @cached_property
    def priors(self) -> list[Prior]:
        """The prior of each fold."""
        folds = self.covariances
        z = np.split(self.z, len(folds))
        fits = [
            partial(self._refitted, own, noise)
            for own, noise in zip(z, self.noises, strict=True)
        ]
        found: dict[int, Prior] = {}
        # A fold may have found no correlation where others found some.
        kinds: list[type[Covariance]] = list(dict.fromkeys(map(type, folds)))
        for kind in kinds:
            of = [k for k, fold in enumerate(folds) if type(fold) is kind]
            parts, values = [folds[k] for k in of], [z[k] for k in of]
            priors = kind.priors(parts, values, [fits[k] for k in of], rough=True)
            found.update(zip(of, priors, strict=True))
        return [found[k] for k in range(len(folds))]

    @property
    def noises(self) -> list[FloatArray | None]:
        """Noise of the effects of each fold; None where it is 1."""
        folds = self.covariances
        if self.contrasts.noise is None:
            return [None] * len(folds)
        parts = np.split(self.contrasts.noise, len(folds))
        pairs = zip(folds, parts, strict=True)
        return [None if fold.orders_effects else noise for fold, noise in pairs]

    def _refitted(self, z: FloatArray, noise: FloatArray | None) -> Prior:
        if self.contrasts.any_constant:
            varying = ~self.contrasts.constant
            z = z[:, varying]
            noise = None if noise is None else noise[:, varying]
        if noise is None:
            return refit(self.estimator, z).prior_
        return refit(self.estimator, z * noise, noise).prior_

    def posterior_of(self, z: FloatArray) -> Posterior:
        return StackedPosterior(self, z)
