"""All folds as one stack of small problems, made from the residuals of all samples.

The class means of the training samples of a fold are those of all samples, plus a
combination of their residuals; so are the contrasts, and the residuals about the new
means. With the residuals R of all samples in units of the standard deviations in
memory, their Gram matrix and a few products with R give all that the folds need, and
X is not looked at again. A fold's Gram matrix is a part of the one of all samples, up
to the class means.

Variances are those of all samples, unless values are missing
(:mod:`ebda.selection.gaps`). The class means, the covariance and the prior are those of
the training samples: a prior of all samples would remember them, and
thresholds that are made of it separate held-out samples where there is no signal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ebda.cached import cached_property
from ebda.covariance import Summary
from ebda.covariance.factor import factors_of
from ebda.data import Samples
from ebda.kernels.threads import no_fork
from ebda.moments import Contrasts
from ebda.moments.contrasts import contrast_weights, error_factor
from ebda.rule.expected import Expectation
from ebda.selection.fold_summary import FoldSummary
from ebda.selection.gaps import FoldGaps, HeldOutGaps
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class FoldStack:
    """Contrasts and covariances of the training samples of some folds.

    Parameters
    ----------
    data : Summary
        All samples.
    train : list of ndarray of int
        The training samples of each fold.
    expects : bool
        Whether missing values are expected from common factors, where there are any.
    variance_df : float or ndarray of shape (n_features,)
        As in :class:`~ebda.selection.gaps.FoldGaps`.
    """

    data: Summary
    train: list[IntArray]
    expects: bool = True
    variance_df: float | FloatArray = np.inf

    @property
    def samples(self) -> Samples:
        """All samples."""
        assert self.data.samples is not None
        return self.data.samples

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.data.moments.counts)

    @cached_property
    def counts(self) -> FloatArray:
        """Training samples of each class, of shape (n_folds, n_classes).

        Each counts as its information.
        """
        codes, weight = self.samples.codes, self.samples.information
        return np.array(
            [np.bincount(codes[t], weight[t], self.n_classes) for t in self.train]
        )

    @cached_property
    def _coefficients(self) -> tuple[FloatArray, FloatArray]:
        """What class means and slopes of a fold are of the residuals.

        Of shape (n_folds, k, n) and (n_folds, q, n): the least-squares coefficients of
        the residuals on classes and covariates, which are added to those of all
        samples.
        """
        C, codes, k = self.data.covariates, self.samples.codes, self.n_classes
        assert C is not None
        out = np.zeros((len(self.train), k + C.shape[1], len(codes)))
        D = np.column_stack([np.eye(k)[codes], C])
        root = np.sqrt(self.samples.information)
        for part, t in zip(out, self.train, strict=True):
            # A category that none of them has keeps the slope of all samples.
            part[:, t] = np.linalg.pinv(root[t, None] * D[t], rcond=1e-9)
        return out[:, :k], out[:, k:]

    @cached_property
    def combine(self) -> FloatArray:
        """What the class means of a fold are of the residuals: (n_folds, k, n)."""
        if self.data.covariates is not None:
            return self._coefficients[0]
        codes, weight = self.samples.codes, self.samples.information
        out = np.zeros((len(self.train), self.n_classes, len(codes)))
        for part, t, counts in zip(out, self.train, self.counts, strict=True):
            part[codes[t], t] = np.sqrt(weight[t]) / counts[codes[t]]
        return out

    @cached_property
    def means(self) -> FloatArray:
        """Class means of all samples in units of the standard deviations."""
        means: FloatArray = self.data.moments.means / np.sqrt(
            self.data.contrasts.variance
        )
        means[:, self.data.contrasts.constant] = 0.0
        return means

    @cached_property
    def gaps(self) -> FoldGaps | None:
        """What missing values change; None if none is missing."""
        if self.data.present is None:
            return None
        return FoldGaps(self.data, self.train, self.variance_df)

    @cached_property
    @no_fork()
    def contrasts(self) -> Contrasts:
        """Contrasts of all folds, one fold's rows after another's."""
        whole = self.data.contrasts
        sides = [contrast_weights(counts) for counts in self.counts]
        positive, negative = (np.concatenate(side) for side in zip(*sides, strict=True))
        weights = positive - negative
        own = np.split(weights, len(self.train))
        moved = np.concatenate(
            [w @ part for w, part in zip(own, self.combine, strict=True)]
        )
        counts = np.repeat(self.counts, len(own[0]), axis=0)
        root = (weights**2 / counts).sum(axis=1)[:, None]
        all_weights = whole.positive - whole.negative
        all_root = error_factor(all_weights**2, self.data.moments.n_values)
        repeat = (len(self.train), 1)
        noise = None
        if self.gaps is None:
            z = moved @ self.data.rows
            z += weights @ self.means
            factor = np.tile(whole.variance_factor / all_root, repeat) * root
            z /= np.sqrt(factor)
        else:
            z, root = self.gaps.contrasts(weights, self.means)
            # As much larger than with all samples as the errors are.
            before = all_root * self.gaps.widths**2
            factor = np.tile(whole.variance_factor / before, repeat) * root
            z /= np.sqrt(factor)
            z /= np.repeat(self.gaps.deviation, len(own[0]), axis=0)
            wider = self.gaps.fold_widths(z)
            z /= wider
            factor *= wider**2
            if whole.noise is not None:
                noise = np.tile(whole.noise / np.sqrt(before), repeat)
                noise *= np.sqrt(root) * wider
        sides_of = {"positive": positive, "negative": negative}
        return replace(whole, z=z, variance_factor=factor, noise=noise, **sides_of)

    @cached_property
    def folds(self) -> list[FoldSummary]:
        """What a covariance is estimated from in each fold."""
        whole, data, samples = self.contrasts, self.data, self.samples
        names = "z", "variance_factor", "positive", "negative"
        split = [np.split(getattr(whole, name), len(self.train)) for name in names]
        folds = []
        units = [None] * len(self.train) if self.gaps is None else self.gaps.deviation
        for used, unit, *parts in zip(self.train, units, *split, strict=True):
            own = dict(zip(names, parts, strict=True))
            contrasts = replace(whole, noise=None, **own)
            residuals = data.residuals_of(used, unit)
            folds.append(FoldSummary(samples, used, contrasts, residuals, data))
        return folds

    def _held_out(self, test: list[IntArray]) -> list[HeldOutGaps]:
        """Held-out samples with missing values, once for all candidates."""
        known: tuple[Any, list[HeldOutGaps]] | None = vars(self).get("_known_held_out")
        if known is not None and known[0] is test:
            return known[1]
        assert self.gaps is not None
        gaps, samples = self.gaps, self.samples
        root = np.sqrt(samples.weight)[:, None]
        sides = np.split(
            (self.contrasts.positive + self.contrasts.negative) / 2, len(test)
        )
        held = []
        folds = zip(self.folds, sides, gaps.moved, gaps.deviation, test, strict=True)
        for f, (fold, middle, moved, unit, t) in enumerate(folds):
            factors = factors_of(fold) if self.expects else None
            held.append(
                HeldOutGaps(
                    (self.data.rows[t] * (gaps.unit / root[t]) - gaps.adjustment(f, t))
                    / unit,
                    gaps.present[t],
                    samples.codes[t],
                    self.means / unit,
                    middle @ (self.means + moved) / unit,
                    None if factors is None else Expectation(*factors.low_rank),
                )
            )
        vars(self)["_known_held_out"] = test, held
        return held

    @property
    def _differences(self) -> FloatArray:
        """Weights of the class means in the contrasts of all folds."""
        differences: FloatArray = self.contrasts.positive - self.contrasts.negative
        return differences

    @no_fork()
    def scores(
        self,
        weights: FloatArray,
        correction: FloatArray,
        test: list[IntArray],
        divergence: FloatArray | None = None,
    ) -> FloatArray:
        """Scores of the samples that each fold leaves out, in the order of `test`.

        Parameters
        ----------
        weights : ndarray of shape (n_folds * n_contrasts, n_features)
            In units of the standard deviations.
        correction : ndarray of shape (n_folds * n_contrasts,)
            Added to the scores; of shape (n_folds * n_contrasts, n_features) where
            values are missing.
        test : list of ndarray of int
            The samples of each fold.
        divergence : ndarray of shape (n_folds * n_contrasts, n_features), optional
            For the bias by covariates
            (:func:`ebda.rule.linear_rule.slope_covariance`); None leaves it.
        """
        n, codes = len(self.train), self.samples.codes
        if self.gaps is not None:
            folds = np.split(weights, n), np.split(correction, n), self._held_out(test)
            scores = [held.scores(w, add) for w, add, held in zip(*folds, strict=True)]
            if divergence is not None and self.data.covariates is not None:
                biases = self.gaps.biases(self._differences, divergence, test)
                scores = [s + bias for s, bias in zip(scores, biases, strict=True)]
            return np.concatenate([score.T for score in scores])
        on_rows = np.split(weights @ self.data.rows.T, n)
        on_means = np.split(weights @ self.means.T, n)
        sides = self.contrasts.positive + self.contrasts.negative
        root = np.sqrt(self.samples.information)
        parts = []
        covariates = self.data.covariates
        slopes = [None] * n if covariates is None else self._coefficients[1]
        differences = np.zeros_like(sides)
        if divergence is not None:
            differences = self._differences * divergence.sum(axis=1)[:, None]
        for rows, means, middle, add, combine, held, moved, own in zip(
            on_rows,
            on_means,
            np.split(sides / 2, n),
            np.split(correction, n),
            self.combine,
            test,
            slopes,
            np.split(differences, n),
            strict=True,
        ):
            at_middle = np.einsum("ck,ck->c", middle, means + rows @ combine.T)
            x = means[:, codes[held]] + rows[:, held] / root[held]
            if moved is not None and covariates is not None:
                # Their covariance is that of the coefficients: A A', A the solution.
                bias = own @ combine @ moved.T
                x -= (rows @ moved.T - bias) @ covariates[held].T
            parts.append((x + (add - at_middle)[:, None]).T)
        return np.concatenate(parts)
