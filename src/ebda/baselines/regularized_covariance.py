"""Normal classes with Friedman's regularised covariance, by the Gram matrix.

With the residuals R about the class means, n_k samples of class k and ``f_k = n_k - 1``
(``f = N - K`` in all), the covariance of class k is (Friedman 1989, equations 18, 19)

    S_k(a) = ((1 - a) R_k' R_k + a R' R) / ((1 - a) f_k + a f),
    S_k(a, g) = (1 - g) S_k(a) + g T_k(a),

where the target T is ``tr S_k(a) / p`` times the identity, or the diagonal of S_k(a).
In units of T it is ``(1 - g) A' A + g I`` with n rows in A. The eigenvectors of
``A A'`` give its inverse and its determinant for all g at once: O(n^2 p), and nothing
p x p.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class CentredSamples:
    """Samples about their class means.

    Parameters
    ----------
    residual : ndarray of shape (n_samples, n_coordinates)
        Samples less the mean of their class, in any orthogonal coordinates of the
        space that they span.
    means : ndarray of shape (n_classes, n_coordinates)
        Class means.
    codes : ndarray of int of shape (n_samples,)
        Classes.
    n_features : int
        Dimension of the space, the number of coordinates or more.
    """

    residual: FloatArray
    means: FloatArray
    codes: IntArray
    n_features: int

    @classmethod
    def of(
        cls, X: FloatArray, codes: IntArray, n_classes: int, n_features: int
    ) -> CentredSamples:
        """From samples."""
        means = np.array([X[codes == k].mean(axis=0) for k in range(n_classes)])
        return cls(X - means[codes], means, codes, n_features)


def varies_within(X: FloatArray, codes: IntArray) -> npt.NDArray[np.bool_]:
    """Features that are not constant within every class.

    >>> X = np.array([[1.0, 2.0], [1.0, 3.0], [5.0, 4.0]])
    >>> varies_within(X, np.array([0, 0, 1]))
    array([False,  True])
    """
    _, first = np.unique(codes, return_index=True)
    varies: npt.NDArray[np.bool_] = (X[first][codes] != X).any(axis=0)
    return varies


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Inverse and determinant of ``(1 - g) S + g T`` for any g.

    Parameters
    ----------
    root : ndarray of shape (n_coordinates,)
        Square roots of the diagonal of T.
    axes : ndarray of shape (rank, n_coordinates)
        Orthonormal eigenvectors of ``T^-1/2 S T^-1/2``.
    eigenvalues : ndarray of shape (rank,)
        Its eigenvalues that are not zero.
    n_features : int
        p.
    log_det_target : float
        Log determinant of T.
    """

    root: FloatArray
    axes: FloatArray
    eigenvalues: FloatArray
    n_features: int
    log_det_target: float

    def is_regular(self, shrinkage: float) -> bool:
        """Whether there is an inverse."""
        return shrinkage > 0 or len(self.eigenvalues) == self.n_features

    def log_det(self, shrinkage: float) -> float:
        """Log determinant."""
        rest = self.n_features - len(self.eigenvalues)
        inside = np.log((1 - shrinkage) * self.eigenvalues + shrinkage).sum()
        outside = rest * np.log(shrinkage) if rest else 0.0
        return float(self.log_det_target + inside + outside)

    def factors(self, shrinkage: float) -> tuple[float, FloatArray]:
        """What the inverse multiplies by outside of the axes, and on each more."""
        whole = len(self.eigenvalues) == self.n_features
        outside = 0.0 if whole else 1 / shrinkage
        kept = (1 - shrinkage) * self.eigenvalues + shrinkage
        return outside, 1 / kept - outside

    def solve(self, rows: FloatArray, shrinkage: float) -> FloatArray:
        """The inverse times each row."""
        scaled = rows / self.root
        outside, more = self.factors(shrinkage)
        solved = outside * scaled + ((scaled @ self.axes.T) * more) @ self.axes
        product: FloatArray = solved / self.root
        return product

    def distances(self, rows: FloatArray, shrinkages: FloatArray) -> FloatArray:
        """Squared Mahalanobis lengths of each row: one line per amount."""
        scaled = rows / self.root
        along = (scaled @ self.axes.T) ** 2
        rest = np.maximum(np.einsum("ij,ij->i", scaled, scaled) - along.sum(axis=1), 0)
        found = np.empty((len(shrinkages), len(rows)))
        for place, amount in enumerate(shrinkages):
            outside, more = self.factors(amount)
            found[place] = along @ (more + outside) + rest * outside
        return found


def spectrum(
    samples: CentredSamples, which: int, pooling: float, diagonal: bool
) -> Spectrum | None:
    """Spectrum of the covariance of a class; None where it has no target.

    That is where a class (its variances are its own without pooling) has a single
    sample, no variance at all or, for the diagonal, none in some coordinate.

    Parameters
    ----------
    samples : CentredSamples
        Samples of all classes.
    which : int
        k.
    pooling : float
        The amount a, from 0 for its own covariance to 1 for the pooled.
    diagonal : bool
        Whether the target is the diagonal.
    """
    residual, p = samples.residual, samples.n_features
    own = samples.codes == which
    n_classes = len(samples.means)
    df = (1 - pooling) * (own.sum() - 1) + pooling * (len(own) - n_classes)
    if df <= 0:
        return None
    weight = np.sqrt(((1 - pooling) * own + pooling) / df)
    rows = weight > 0
    A = residual[rows] * weight[rows, None]
    variance = np.einsum("ij,ij->j", A, A)
    if not diagonal:
        variance = np.full(len(variance), variance.sum() / p)
    if not (variance > 0).all():
        return None
    root = np.sqrt(variance)
    axes, eigenvalues = principal_axes(A / root)
    log_det = np.log(variance).sum() * (1 if diagonal else p / len(variance))
    return Spectrum(root, axes, eigenvalues, p, float(log_det))


def class_spectra(
    samples: CentredSamples, pooling: float, diagonal: bool
) -> list[Spectrum] | None:
    """Spectra of all classes; None where one has none."""
    n_classes = len(samples.means)
    if pooling == 1:
        pooled = spectrum(samples, 0, 1.0, diagonal)
        return None if pooled is None else [pooled] * n_classes
    found = []
    for k in range(n_classes):
        own = spectrum(samples, k, pooling, diagonal)
        if own is None:
            return None
        found.append(own)
    return found


def log_joint(
    spectra: list[Spectrum],
    points: FloatArray,
    means: FloatArray,
    class_prior: FloatArray,
    shrinkages: FloatArray,
) -> FloatArray:
    """Log of class probability times normal density, up to a constant.

    Parameters
    ----------
    spectra : list of Spectrum
        One per class.
    points : ndarray of shape (n_samples, n_coordinates)
        Samples.
    means : ndarray of shape (n_classes, n_coordinates)
        Class means.
    class_prior : ndarray of shape (n_classes,)
        Class probabilities.
    shrinkages : ndarray of shape (n_shrinkages,)
        Amounts.

    Returns
    -------
    ndarray of shape (n_shrinkages, n_samples, n_classes)
    """
    joint = np.empty((len(shrinkages), len(points), len(means)))
    for k, own in enumerate(spectra):
        distance = own.distances(points - means[k], shrinkages)
        log_det = np.array([own.log_det(g) for g in shrinkages])
        joint[:, :, k] = np.log(class_prior[k]) - (distance + log_det[:, None]) / 2
    return joint


def held_out_errors(
    samples: CentredSamples,
    points: FloatArray,
    codes: IntArray,
    class_prior: FloatArray,
    poolings: FloatArray,
    shrinkages: FloatArray,
    diagonal: bool,
) -> FloatArray:
    """Errors among held-out samples: one row per pooling, one column per shrinkage.

    Infinite where a covariance is singular.

    Parameters
    ----------
    samples : CentredSamples
        Training samples.
    points, codes : ndarray
        Held-out samples and their classes.
    class_prior, poolings, shrinkages, diagonal
        As in `log_joint` and `spectrum`.
    """
    errors = np.full((len(poolings), len(shrinkages)), np.inf)
    for row, pooling in enumerate(poolings):
        spectra = class_spectra(samples, pooling, diagonal)
        if spectra is None:
            continue
        regular = np.array([all(s.is_regular(g) for s in spectra) for g in shrinkages])
        joint = log_joint(
            spectra, points, samples.means, class_prior, shrinkages[regular]
        )
        errors[row, regular] = (joint.argmax(axis=2) != codes).sum(axis=1)
    return errors


def principal_axes(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvectors of ``A' A``, as rows, and its eigenvalues that are not zero."""
    n, p = A.shape
    wide = n < p
    values, vectors = np.linalg.eigh(A @ A.T if wide else A.T @ A)
    kept = values > values[-1] * max(n, p) * np.finfo(np.float64).eps
    values, vectors = values[kept], vectors[:, kept]
    axes: FloatArray = (vectors / np.sqrt(values)).T @ A if wide else vectors.T
    return axes, values


def row_space(X: FloatArray) -> FloatArray:
    """Samples about their mean, in orthogonal coordinates of the space they span.

    Distances between samples are kept; there are at most n coordinates.
    """
    centred: FloatArray = X - X.mean(axis=0)
    if X.shape[0] > X.shape[1]:
        return centred
    values, vectors = np.linalg.eigh(centred @ centred.T)
    kept = values > values[-1] * max(X.shape) * np.finfo(np.float64).eps
    coordinates: FloatArray = vectors[:, kept] * np.sqrt(values[kept])
    return coordinates
