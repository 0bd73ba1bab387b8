"""The scale of a new sample, and what a model knows of those it was fitted to.

A new sample x with the scale s, from class k, has the log-odds

    log p(k | x, s) - log p(l | x, s)
        = (x - (m_k + m_l) / 2)' Sigma^-1 (m_k - m_l) / s^2 + log(pi_k / pi_l):

the score of the linear rule counts the less the noisier the sample is, and the class
probabilities count as ever. The scale is read off x as for the training samples
(:mod:`ebda.covariance.scales`): from its residuals from the nearest class mean, in
units of the standard deviations, without the directions of the common factors. For the
multivariate t with nu degrees of freedom, whose density is proportional to
``(1 + q_k / nu)^(-(nu + p) / 2)``, this is the exact posterior up to terms of the order
1/p, with ``s^2 = (nu + q) / (nu + p)``: q_k and q_l differ little beside q.

New residuals are longer than those that means and factors were fitted to, and so they
are divided by what these were put right by.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ebda.cached import cached_property
from ebda.covariance.scales import Scales, moderate
from ebda.covariance.summary import Summary
from ebda.kernels.threads import no_fork
from ebda.moments import ClassMoments
from ebda.registry import Entry, Registry
from ebda.storage.fields import POSITIVE, Array, Scalar
from ebda.storage.objects import Nested, Schema, register
from ebda.typing import FloatArray, IntArray

# Squares this small, relative to those of a usual sample, are rounding.
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class SampleScale:
    """Scales of training samples, and how those of new ones are measured.

    Parameters
    ----------
    precision : ndarray of shape (n_samples,)
        ``1 / s_i^2`` of the training samples, with the mean 1.
    degrees_of_freedom : float
        Those of the multivariate t distribution that the scales are taken from;
        infinite where they differ by no more than chance.
    gain : float
        ``mean(s^2) mean(1 / s^2)``: how many times as many samples would make
        unweighted means as precise.
    variance, unit, n_effective, inflation : float
        See :class:`~ebda.covariance.scales.Scales`.
    moments : ClassMoments
        Weighted moments, with sums of precisions as counts.
    scale : ndarray of shape (n_features,)
        Standard deviations of a sample of precision 1; 0 for features to leave out.
    directions : ndarray of shape (n_factors, n_features)
        Orthonormal directions to leave out, in units of these.
    """

    precision: FloatArray
    degrees_of_freedom: float
    gain: float
    variance: float
    unit: float
    n_effective: float
    inflation: float
    moments: ClassMoments
    scale: FloatArray
    directions: FloatArray

    @classmethod
    def of(cls, scales: Scales, data: Summary) -> SampleScale:
        """What to keep of scales.

        Parameters
        ----------
        scales : Scales
            Those of the samples.
        data : Summary
            These samples, with their precision, and all features.
        """
        assert data.samples is not None
        deviation = np.sqrt(data.contrasts.variance)
        found = data.samples.loadings(data.moments.means, deviation, scales.combine)
        return cls(
            scales.precision,
            scales.degrees_of_freedom,
            scales.gain,
            scales.variance,
            scales.unit,
            scales.n_effective,
            scales.inflation,
            data.moments,
            np.where(data.contrasts.constant, 0.0, deviation),
            np.linalg.qr(found)[0].T,
        )

    @cached_property
    def centre(self) -> FloatArray:
        """The middle of the class means, which residuals are first taken from."""
        centre: FloatArray = self.moments.means.mean(axis=0)
        return centre

    @cached_property
    def divisor(self) -> FloatArray:
        """`scale`, and infinity for features to leave out."""
        return np.where(self.scale > 0, self.scale, np.inf)

    @cached_property
    def rows(self) -> FloatArray:
        """What residuals are multiplied with: class means, and directions."""
        means = (self.moments.means - self.centre) / self.divisor
        return np.concatenate([means, self.directions])

    @no_fork()
    def precision_of(self, lengths: FloatArray) -> FloatArray:
        """``1 / s^2`` of new samples.

        Parameters
        ----------
        lengths : ndarray of shape (n, 2 + n_rows)
            Squared lengths, numbers of values and products with `rows`, as of
            :meth:`ebda.data.Data.lengths`.
        """
        k = len(self.moments.means)
        on_means, on_directions = lengths[:, 2 : 2 + k], lengths[:, 2 + k :]
        # Missing values are taken to be like the others.
        share = np.maximum(lengths[:, 1], 1.0) / self.n_used
        there = share[:, None]
        # |r - a|^2 less its part in the directions D: |D r - D a|^2. Of the features
        # that are there D D' is `share` times the identity, and |a|^2 and D a are this
        # share of what they are.
        squares = lengths[:, :1] - (on_directions**2).sum(axis=1)[:, None] / there
        squares = squares - 2 * (on_means - on_directions @ self.at_means.T)
        squares += there * self.left_of_means
        nearest = squares.min(axis=1) / (share * self.expected)
        # 1 / n_effective is the mean squared cosine between samples, of which chance
        # has 1 / n_used.
        fewer = 1 + (1 / share - 1) * self.n_effective / self.n_used
        s2 = moderate(
            np.maximum(nearest, self.least),
            self.n_effective / fewer,
            self.degrees_of_freedom,
            self.variance,
        )
        precision: FloatArray = self.unit / s2
        return precision

    @cached_property
    def at_means(self) -> FloatArray:
        """The class means in the directions that are left out."""
        at: FloatArray = self.rows[: len(self.moments.means)] @ self.directions.T
        return at

    @property
    def left_of_means(self) -> FloatArray:
        """Squared lengths of the class means without these directions."""
        means, at = self.rows[: len(self.moments.means)], self.at_means
        left: FloatArray = np.einsum("kj,kj->k", means, means)
        left -= np.einsum("kl,kl->k", at, at)
        return left

    @property
    def expected(self) -> float:
        """What squared lengths are divided by."""
        return self.n_used * self.inflation

    @property
    def n_used(self) -> int:
        """Features that are not left out."""
        return max(int(np.count_nonzero(self.scale)), 1)

    @property
    def least(self) -> float:
        """Smaller mean squares are rounding."""
        return _NEGLIGIBLE * self.unit

    def without(self, gone: IntArray) -> SampleScale:
        """The same without some of the features."""
        scale, directions = self.scale.copy(), self.directions.copy()
        before = max(int(np.count_nonzero(scale)), 1)
        scale[gone], directions[:, gone] = 0.0, 0.0
        share = max(int(np.count_nonzero(scale)), 1) / before
        directions = np.linalg.qr(directions.T)[0].T
        directions[:, gone] = 0.0
        return replace(
            self,
            n_effective=share * self.n_effective,
            scale=scale,
            directions=directions,
        )

    def __repr__(self) -> str:
        low, high = np.quantile(self.precision**-0.5, [0.05, 0.95])
        return (
            f"Samples have scales of their own, 90 % of them between {low:.2f} and "
            f"{high:.2f}, as under a t distribution with "
            f"{self.degrees_of_freedom:.1f} degrees of freedom. Weighted by 1/scale^2 "
            f"they are worth {self.gain:.2f} times as many."
        )


register(
    Schema(
        SampleScale,
        {
            "precision": Array(("s",), POSITIVE),
            "degrees_of_freedom": Scalar((float,), least=0.0, finite=False),
            "gain": Scalar((float,), least=0.0),
            "variance": Scalar((float,), least=0.0),
            "unit": Scalar((float,), least=0.0),
            "n_effective": Scalar((float,), least=0.0),
            "inflation": Scalar((float,), least=1.0),
            "moments": Nested(("ClassMoments",)),
            "scale": Array(("p",), ("finite", "zero or more")),
            "directions": Array(("l", "p")),
        },
    )
)


@dataclass(frozen=True)
class Scaling(Entry):
    """Whether samples have scales of their own.

    Parameters
    ----------
    name, line
        See :class:`~ebda.registry.Entry`.
    is_measured : bool
        Whether scales are measured.
    is_earned : bool
        Whether they are used only where the data say so.
    """

    is_measured: bool
    is_earned: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether they are used whatever the data say."""
        return self.is_measured and not self.is_earned


SAMPLE_SCALES: Registry[Scaling] = Registry(
    "sample_scale",
    Scaling("common", "all samples are as noisy", is_measured=False),
    Scaling("own", "each sample has a scale of its own", is_measured=True),
    Scaling(
        "auto",
        "scales of their own where the data say so",
        is_measured=True,
        is_earned=True,
    ),
)
