"""The folds where values are missing: each feature has counts of its own.

Residuals that are missing are zero. The class mean of a feature over the training
samples of a fold is that of all samples, plus the sum of their residuals over the
number of them that have a value. A held-out sample has the score that a new one would
have: a missing value adds what is expected of it given the others
(:mod:`ebda.rule.expected`), under the factors of the training samples.

With covariates the residuals of the training samples are regressed on them again, each
feature on the values that it has (:mod:`ebda.moments.values`): held-out samples are
adjusted by slopes that do not know them.

Without covariates, variances are those of the training samples, too. With few values
per feature, one that is small for its held-out samples is the more likely to be
selected, and its scores would separate these better than new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.covariance import Summary
from ebda.kernels.threads import no_fork
from ebda.moments import Contrasts
from ebda.moments.contrasts import complete_df, error_factor, matched_t
from ebda.moments.values import ValueRegression, regress_values, value_rows
from ebda.rule.expected import Expectation
from ebda.typing import FloatArray, IntArray

# A variance that held-out samples are less than this share of is no more than rounding.
_LEAST_RATIO = 1e-6
# Degrees of freedom of the t distributions that are matched.
_LEAST_DF = 1.0


def _width(t: FloatArray, z: FloatArray) -> FloatArray:
    """``t / z``, and not less than 1."""
    told = np.abs(z) > 1e-3
    return np.where(told, np.maximum(t / np.where(told, z, 1.0), 1.0), 1.0)


def _within_df(n_values: FloatArray) -> FloatArray:
    """Values less classes that have any: (..., n_classes, n_features) to features."""
    df: FloatArray = n_values.sum(axis=-2) - np.count_nonzero(n_values > 0, axis=-2)
    return np.maximum(df, 0.0)


@dataclass(frozen=True, eq=False)
class FoldGaps:
    """What missing values change in the folds.

    Parameters
    ----------
    data : Summary
        All samples.
    train : list of ndarray of int
        The training samples of each fold.
    variance_df : float or ndarray of shape (n_features,)
        Degrees of freedom of the variances of all samples; infinite for those that no
        sample changes.
    """

    data: Summary
    train: list[IntArray]
    variance_df: float | FloatArray = np.inf

    @property
    def present(self) -> npt.NDArray[np.bool_]:
        """Which values of the samples are there."""
        assert self.data.present is not None
        return self.data.present

    @cached_property
    def unit(self) -> FloatArray:
        """Residuals in units of the standard deviations, over `Summary.rows`."""
        return np.sqrt(self.data.share)

    @cached_property
    def _member(self) -> FloatArray:
        """Root weights of the training samples by class: (n_folds, k, n)."""
        samples = self.data.samples
        assert samples is not None
        shape = len(self.train), len(self.data.moments.counts), len(samples)
        out = np.zeros(shape)
        root = np.sqrt(samples.weight)
        for part, t in zip(out, self.train, strict=True):
            part[samples.codes[t], t] = root[t]
        return out

    @cached_property
    @no_fork()
    def n_values(self) -> FloatArray:
        """Values of the training samples: (n_folds, n_classes, n_features)."""
        member = self._member
        flat = (member**2).reshape(-1, member.shape[2])
        n: FloatArray = flat @ self.present.astype(np.float64)
        return n.reshape(*member.shape[:2], -1)

    @property
    def _n_kept(self) -> FloatArray:
        """Values of all these samples: (n_classes, n_features)."""
        samples = self.data.samples
        assert samples is not None
        classes = np.arange(len(self.data.moments.counts))[:, None]
        member = np.where(samples.codes == classes, samples.weight, 0.0)
        n: FloatArray = member @ self.present.astype(np.float64)
        return n

    @cached_property
    @no_fork()
    def regressions(self) -> list[ValueRegression]:
        """Those of the residuals of the training samples of each fold."""
        data, samples, C = self.data, self.data.samples, self.data.covariates
        assert samples is not None
        assert C is not None
        k, root = len(data.moments.counts), np.sqrt(samples.weight)
        there = self.present.astype(np.float64)
        found = []
        for t in self.train:
            known = samples.codes[t], k, C[t] / self.column_scale, samples.weight[t]
            rows, masks = value_rows(*known)
            sums = (rows / root[t]) @ data.rows[t] * self.unit
            middle = np.zeros((k, C.shape[1]))
            found.append(regress_values(sums, masks @ there[t], middle))
        return found

    @cached_property
    def column_scale(self) -> FloatArray:
        """Root of the sum of squares of each covariate."""
        samples, C = self.data.samples, self.data.covariates
        assert samples is not None
        assert C is not None
        scale: FloatArray = np.sqrt(samples.weight @ C**2)
        return np.where(scale > 0, scale, 1.0)

    @cached_property
    @no_fork()
    def moved(self) -> FloatArray:
        """Class means of the folds less those of all samples, of that shape too."""
        if self.data.covariates is not None:
            return np.stack([found.means for found in self.regressions])
        member = self._member
        total = member.reshape(-1, member.shape[2]) @ self.data.rows
        moved: FloatArray = total.reshape(self.n_values.shape) * self.unit
        moved /= np.where(self.n_values > 0, self.n_values, 1.0)
        return moved

    @cached_property
    def _lost_df(self) -> FloatArray:
        """Degrees of freedom that each fold has less: (n_folds, n_features)."""
        moments = self.data.moments
        lost = _within_df(self._n_kept) - _within_df(self.n_values)
        if moments.design is not None:
            plain = moments.counts.sum() - len(moments.counts)
            lost *= moments.residual_df / plain
        return lost

    @cached_property
    def _most_df(self) -> float:
        """Degrees of freedom of the t of a feature with all its values."""
        return complete_df(self.data.moments, self.variance_df)

    @property
    def widths(self) -> FloatArray:
        """How much wider the standard errors of all samples are for few values.

        As of :func:`~ebda.moments.class_contrasts`; of the shape of the contrasts.
        """
        z, df = self.data.contrasts.z, np.maximum(self.variance_df, _LEAST_DF)
        return _width(matched_t(z, np.maximum(self._most_df, df), df), z)

    def fold_widths(self, t: FloatArray) -> FloatArray:
        """The same for the folds.

        Parameters
        ----------
        t : ndarray of shape (n_folds * n_contrasts, n_features)
            Contrasts over their standard errors.
        """
        n, lost = len(self.train), self._lost_df
        df = np.maximum(self.variance_df - lost, _LEAST_DF)[:, None]
        samples = self.data.samples
        assert samples is not None
        held = samples.weight.sum() - (self._member**2).sum(axis=(1, 2))
        most = np.maximum(self._most_df - held, _LEAST_DF)[:, None, None]
        each = t.reshape(n, -1, t.shape[1])
        return _width(each, matched_t(each, df, np.maximum(most, df))).reshape(t.shape)

    @cached_property
    def deviation(self) -> FloatArray:
        """Standard deviations of the folds over those of all samples.

        Of shape (n_folds, n_features). Sums of squares and degrees of freedom of the
        held-out samples are taken out of the variances, and what a prior added stays.
        """
        moments, used = self.data.moments, self._member > 0
        squares = self.data.rows**2 * self.data.share
        lost = squares.sum(axis=0) - used.any(axis=1).astype(np.float64) @ squares
        lost += np.einsum("fkj,fkj->fj", self.n_values, self.moved**2)
        if moments.design is not None:
            lost *= moments.residual_df / moments.expected_squares
        lost_df = self._lost_df
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (1 - lost / self.variance_df) / (1 - lost_df / self.variance_df)
        usable = np.isfinite(ratio) & (ratio > _LEAST_RATIO)
        deviation: FloatArray = np.sqrt(np.where(usable, ratio, 1.0))
        constant = self.data.contrasts.constant
        if constant.any():  # these leave the mean as it is
            mean = np.mean(deviation[:, ~constant] ** -2.0, axis=1, keepdims=True)
            deviation[:, constant] = mean**-0.5
        return deviation

    def contrasts(
        self, weights: FloatArray, means: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Contrasts, and their variances in units of the standard deviations.

        Parameters
        ----------
        weights : ndarray of shape (n_folds * n_contrasts, n_classes)
            Weights of the class means.
        means : ndarray of shape (n_classes, n_features)
            Class means of all samples in units of the standard deviations.

        Returns
        -------
        d, factor : ndarray of shape (n_folds * n_contrasts, n_features)
            Zero and finite where a class has no values.
        """
        d, factor = [], []
        own = np.split(weights, len(self.train))
        for w, moved, n in zip(own, self.moved, self.n_values, strict=True):
            difference = w @ (means + moved)
            difference[:, (n <= 0).any(axis=0)] = 0.0
            d.append(difference)
            factor.append(error_factor(w**2, n))
        if self.data.covariates is not None:
            for difference, found in zip(d, self.regressions, strict=True):
                difference[:, found.confounded] = 0.0
        return np.concatenate(d), np.concatenate(factor)

    def adjustment(self, fold: int, held: IntArray) -> FloatArray | float:
        """What the covariates of held-out samples take from their residuals.

        Parameters
        ----------
        fold : int
            Number of the fold.
        held : ndarray of int
            The samples.
        """
        C = self.data.covariates
        if C is None:
            return 0.0
        columns = C[held] / self.column_scale
        taken: FloatArray = columns @ self.regressions[fold].slopes
        return taken * self.present[held]

    @no_fork()
    def biases(
        self, differences: FloatArray, divergence: FloatArray, test: list[IntArray]
    ) -> list[FloatArray]:
        """What errors of the slopes take from the scores of held-out samples.

        Parameters
        ----------
        differences : ndarray of shape (n_folds * n_contrasts, n_classes)
            Weights of the class means.
        divergence : ndarray of shape (n_folds * n_contrasts, n_features)
            That of the rules.
        test : list of ndarray of int
            The samples of each fold.

        Returns
        -------
        list of ndarray of shape (n_contrasts, n_held_out)
        """
        C = self.data.covariates
        assert C is not None
        parts = []
        sides, each = (np.split(a, len(test)) for a in (differences, divergence))
        for own, d, found, held in zip(
            sides, each, self.regressions, test, strict=True
        ):
            means = np.einsum("ck,kqj->cqj", own, found.class_covariates)
            between = -np.einsum("cqj,qrj->crj", means, found.inverse)
            between *= d[:, None]
            c, q, p = between.shape
            there = self.present[held].astype(np.float64)
            taken = (there @ between.reshape(-1, p).T).reshape(-1, c, q)
            parts.append(np.einsum("icq,iq->ci", taken, C[held] / self.column_scale))
        return parts

    def midpoint_bias(self, contrasts: Contrasts) -> FloatArray:
        """Bias of the midpoint for each unit of the divergence, of every feature.

        Parameters
        ----------
        contrasts : Contrasts
            Those of the folds.
        """
        sides = contrasts.positive**2 - contrasts.negative**2
        parts = zip(np.split(sides, len(self.train)), self.n_values, strict=True)
        return np.concatenate([error_factor(side, n) / 2 for side, n in parts])


@dataclass(frozen=True, eq=False)
class HeldOutGaps:
    """Held-out samples of one fold about the midpoints of its contrasts.

    Parameters
    ----------
    rows : ndarray of shape (n_held_out, n_features)
        Residuals about the class means of all samples, zero where missing.
    present : ndarray of bool of that shape
        Which values are there.
    codes : ndarray of int of shape (n_held_out,)
        Classes of the samples.
    means : ndarray of shape (n_classes, n_features)
        Class means of all samples.
    middle : ndarray of shape (n_contrasts, n_features)
        Midpoints of the fold. All of them in units of the standard deviations.
    expectation : Expectation, optional
        What tells missing values from the others.
    """

    rows: FloatArray
    present: npt.NDArray[np.bool_]
    codes: IntArray
    means: FloatArray
    middle: FloatArray
    expectation: Expectation | None

    @cached_property
    def _there(self) -> FloatArray:
        """`present` as numbers: a product with truth values takes ten times as long."""
        return self.present.astype(np.float64)

    def _about(self, c: int) -> FloatArray:
        """The samples about the midpoint of a contrast."""
        u: FloatArray = (self.means - self.middle[c])[self.codes]
        u *= self.present
        u += self.rows
        return u

    @cached_property
    def _factors(self) -> FloatArray:
        """Expected factors: (n_held_out, n_contrasts, n_factors)."""
        e = self.expectation
        assert e is not None
        values = [self._about(c) @ e.for_values for c in range(len(self.middle))]
        return e.factors(np.stack(values, axis=1), (1 - self._there) @ e.information)

    @no_fork()
    def scores(self, weights: FloatArray, correction: FloatArray) -> FloatArray:
        """Scores of the samples, of shape (n_contrasts, n_held_out).

        Parameters
        ----------
        weights : ndarray of shape (n_contrasts, n_features)
            In units of the standard deviations.
        correction : ndarray of shape (n_contrasts, n_features)
            Added to the scores for each value that is there.
        """
        there = self._there
        out = weights @ self.rows.T
        for k in np.unique(self.codes):
            member = self.codes == k
            distance = weights * (self.means[k] - self.middle) + correction
            out[:, member] += distance @ there[member].T
        if self.expectation is not None and not self.present.all():
            for c, w in enumerate(weights):
                loadings = w[:, None] * self.expectation.loadings
                part = loadings.sum(axis=0) - there @ loadings
                out[c] += np.einsum("ik,ik->i", part, self._factors[:, c])
        return out
