"""Data in an array on a device: what is summed stays there, the sums come back."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ebda.data.device.libraries import library_of
from ebda.data.device.matrix import DeviceMatrix
from ebda.data.device.moments import moments_of
from ebda.data.device.samples import DeviceSamples
from ebda.data.finite import NonFiniteError, refused
from ebda.data.protocols import GapRule, Labels, Samples
from ebda.kernels.device import fill_missing
from ebda.kernels.scores import incomplete
from ebda.moments.classwise import ClassMoments
from ebda.typing import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DeviceData:
    """An array on a device (:class:`ebda.data.Data`).

    Parameters
    ----------
    matrix : DeviceMatrix
        The array.
    top, left : int
        Place of its first value in a larger matrix, for error messages.
    """

    matrix: DeviceMatrix
    top: int = 0
    left: int = 0

    @classmethod
    def of(cls, X: Any) -> Self | None:
        """Data in an array of a library; None if X is something else of it."""
        library = library_of(X)
        if library is None:
            return None
        matrix = DeviceMatrix(library.plain(X), library)
        _check_float64(matrix)
        return cls(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        return self.matrix.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.matrix.dtype

    @property
    def names(self) -> npt.NDArray[Any] | None:
        return None

    @property
    def values(self) -> None:
        return None

    def summarise(
        self, labels: Labels, keep: bool
    ) -> tuple[ClassMoments, Samples | None]:
        moments = self.checked_moments(labels)
        if not keep:
            return moments, None
        known = labels.codes, labels.weight, labels.first
        samples = DeviceSamples.of(self.matrix, *known)
        return moments, samples.as_in(moments).kept()

    def checked_moments(self, labels: Labels) -> ClassMoments:
        """Class moments; what must not be in X is an error."""
        known = labels.codes, labels.n_classes, labels.weight
        moments = moments_of(self.matrix, *known)
        refused = moments.observed is not None and not labels.allow_missing
        if refused or not np.isfinite(moments.means).all():
            self._refuse(labels.allow_missing)
        return moments

    def _refuse(self, allow_missing: bool) -> None:
        """Raise an error if there is infinity in X, or NaN if that is refused."""
        xp, matrix = self.matrix.xp, self.matrix

        def bad(values: Any) -> Any:
            return xp.isinf(values) if allow_missing else ~xp.isfinite(values)

        def look(cols: slice, block: Any) -> IntArray:
            found = np.flatnonzero(matrix.host(xp.any(bad(block), axis=0)))
            return np.asarray(found + cols.start)

        columns = np.concatenate([found for _, found in matrix.blocks(look)])
        if not len(columns):
            return  # the sums overflow
        with matrix.library.precise():
            first = int(columns[0])
            column = matrix.host(matrix.block(slice(first, first + 1)))[:, 0]
        row = int(refused(allow_missing)(column).argmax())
        kind = "NaN" if np.isnan(column[row]) else "infinity"
        where = (columns + self.left).tolist()
        raise NonFiniteError(where, row + self.top, kind, allow_missing)

    def scores(
        self, coef: FloatArray, intercept: FloatArray, rule: GapRule | None = None
    ) -> FloatArray:
        out = self.products_with(coef) + intercept
        rows = incomplete(out)
        if len(rows):
            self._refuse(rule is not None)
        if rule is not None and len(rows):
            out[rows] = rule.finish(self.gap_sums(rows, rule.values, rule.gaps))
        return out

    def products_with(self, coef: FloatArray) -> FloatArray:
        """``X coef'``, where NaN and infinity show."""
        matrix, out = self.matrix, np.zeros((self.shape[0], len(coef)))

        def multiply(cols: slice, block: Any) -> FloatArray:
            return matrix.host(block @ matrix.send(coef[:, cols].T))

        for _, part in matrix.blocks(multiply):
            out += part
        return out

    def gap_sums(
        self, rows: IntArray, values: FloatArray, gaps: FloatArray
    ) -> FloatArray:
        """As :func:`ebda.kernels.scores.gap_sums`, of some samples."""
        matrix, xp = self.matrix, self.matrix.xp
        out = np.zeros((len(rows), len(values) + len(gaps)))

        def add(cols: slice, block: Any) -> FloatArray:
            known = fill_missing(xp, block) @ matrix.send(values[:, cols].T)
            missing = xp.astype(xp.isnan(block), xp.float64)
            absent = missing @ matrix.send(gaps[:, cols].T)
            return matrix.host(xp.concat([known, absent], axis=1))

        for _, part in matrix.blocks(add, rows):
            out += part
        return out

    def products(self, rows: FloatArray) -> FloatArray:
        matrix, out = self.matrix, np.empty((len(rows), self.shape[1]))
        sent = matrix.send(rows)
        for cols, part in matrix.blocks(lambda _, block: matrix.host(sent @ block)):
            out[:, cols] = part
        return out

    def value_products(self, rows: FloatArray, masks: FloatArray) -> FloatArray:
        matrix, xp = self.matrix, self.matrix.xp
        out = np.empty((len(rows) + len(masks), self.shape[1]))
        sent, sent_masks = matrix.send(rows), matrix.send(masks)

        def multiply(_: slice, block: Any) -> FloatArray:
            there = 1.0 - xp.astype(xp.isnan(block), xp.float64)
            sums = sent @ fill_missing(xp, block)
            return matrix.host(xp.concat([sums, sent_masks @ there], axis=0))

        for cols, part in matrix.blocks(multiply):
            out[:, cols] = part
        return out

    def adjusted(self, covariates: FloatArray, slopes: FloatArray) -> DeviceData:
        return replace(
            self, matrix=replace(self.matrix, covariates=covariates, slopes=slopes)
        )

    def lengths(
        self, centre: FloatArray, scale: FloatArray, rows: FloatArray
    ) -> FloatArray:
        matrix, xp = self.matrix, self.matrix.xp
        out = np.zeros((self.shape[0], 2 + len(rows)))
        used = np.isfinite(scale).astype(np.float64)

        def add(cols: slice, block: Any) -> FloatArray:
            r = (block - matrix.send(centre[cols])) / matrix.send(scale[cols])
            missing = xp.astype(xp.isnan(r), xp.float64)
            r = fill_missing(xp, r)
            values = float(used[cols].sum()) - missing @ matrix.send(used[cols, None])
            square = xp.sum(r * r, axis=1, keepdims=True)
            product = r @ matrix.send(rows[:, cols].T)
            return matrix.host(xp.concat([square, values, product], axis=1))

        for _, part in matrix.blocks(add):
            out += part
        return out

    def job_context(self) -> AbstractContextManager[Any]:
        return nullcontext()  # this process starts what runs on the device


def _check_float64(matrix: DeviceMatrix) -> None:
    """Refuse a device that cannot add in float64, such as that of Apple."""
    with matrix.library.precise():
        info = matrix.xp.__array_namespace_info__()
        known = info.dtypes(device=matrix.device, kind="real floating")
    if "float64" not in known:
        raise ValueError(
            f"{matrix.place} has no float64, in which sums are taken; move X to "
            "another device"
        )
