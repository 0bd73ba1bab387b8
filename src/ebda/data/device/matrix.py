"""A matrix on a device, and its blocks of columns in float64."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ebda.cached import cached_property
from ebda.data.device.libraries import Library
from ebda.data.matrix import in_two_dimensions
from ebda.sizes import sizes
from ebda.typing import FloatArray, IntArray

Result = TypeVar("Result")
# NumPy has no name for it; it is converted to float64 anyway.
_OTHER_NAMES = {"bfloat16": "float32"}


class DeviceMemoryWarning(UserWarning):
    """A device has too little memory for blocks of the usual size."""


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that a device has too little memory.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 8 GiB"))
    True
    """
    said = str(error).lower()
    return isinstance(error, MemoryError) or any(
        words in said for words in ("out of memory", "can't allocate memory")
    )


def over_columns(
    function: Callable[[slice], Result], n_columns: int, width: int, place: str
) -> Iterator[Result]:
    """Call a function for one block of columns after the other.

    Where the memory of the device is too small for a block it is cut in half, with a
    warning, and so are those that follow.

    Parameters
    ----------
    function : callable
        Takes the columns; nothing of what it allocates outlives it.
    n_columns : int
        Where the last block ends.
    width : int
        Columns of a block.
    place : str
        The device, for the warning.

    Examples
    --------
    >>> def double(columns):
    ...     return 2 * (columns.stop - columns.start)
    >>> list(over_columns(double, 5, 2, "the device"))
    [4, 4, 2]
    """
    left = 0
    while left < n_columns:
        cols = slice(left, min(left + width, n_columns))
        try:
            result = function(cols)
        except Exception as error:
            width = cols.stop - cols.start
            if width == 1 or not is_out_of_memory(error):
                raise
        else:
            left = cols.stop
            yield result
            continue
        # The error, and with it what its frames hold, is gone by now.
        warnings.warn(
            f"{place} has too little memory for blocks of {width} features; going on "
            f"with blocks of {width // 2}",
            DeviceMemoryWarning,
            stacklevel=2,
        )
        width //= 2


@dataclass(frozen=True, eq=False)
class DeviceMatrix:
    """An array on a device, less what covariates make of it.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of any real dtype.
    library : Library
        What X is of.
    covariates : ndarray of shape (n_samples, n_columns), optional
        C.
    slopes : ndarray of shape (n_columns, n_features), optional
        B: values are those of ``X - C B``.
    """

    X: Any
    library: Library
    covariates: FloatArray | None = None
    slopes: FloatArray | None = None

    @cached_property
    def xp(self) -> Any:
        """The functions of the array API."""
        return self.library.namespace()

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of samples and of features."""
        return in_two_dimensions(self.X.shape, self.library.line)

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's name of the type of the values."""
        if self.slopes is not None:
            return np.dtype(np.float64)
        name = str(self.X.dtype).rpartition(".")[2]
        return np.dtype(_OTHER_NAMES.get(name, name))

    @cached_property
    def device(self) -> Any:
        """Where X lies."""
        return self.library.device_of(self.X)

    @property
    def place(self) -> str:
        """Library and device, for people."""
        return f"{self.library.name} on {self.device}"

    def send(self, values: npt.NDArray[Any]) -> Any:
        """An array of the host, on the device of X."""
        return self.library.put(values, self.device)

    def host(self, values: Any) -> npt.NDArray[Any]:
        """An array of the device, on the host."""
        return self.library.to_host(values)

    def block(self, cols: slice, rows: Any = None) -> Any:
        """Values of some columns in float64.

        Parameters
        ----------
        cols : slice
            Which.
        rows : array of int, on the device, optional
            Which rows; by default all of them.
        """
        xp, part = self.xp, self.X[:, cols]
        if rows is not None:
            part = xp.take(part, rows, axis=0)
        values = xp.astype(part, xp.float64)
        if self.slopes is None or self.covariates is None:
            return values
        covariates = self.send(self.covariates)
        if rows is not None:
            covariates = xp.take(covariates, rows, axis=0)
        return values - covariates @ self.send(self.slopes[:, cols])

    def blocks(
        self,
        function: Callable[[slice, Any], Result],
        rows: IntArray | None = None,
    ) -> Iterator[tuple[slice, Result]]:
        """Results of a function of each block, and its columns.

        Parameters
        ----------
        function : callable
            Takes columns, and :meth:`block` of these. Its result is on the host.
        rows : ndarray of int, optional
            Which rows; by default all of them.
        """
        n, p = self.shape
        whole = rows is None or np.array_equal(rows, np.arange(n))
        some = None if rows is None or whole else self.send(rows)
        n_rows = n if rows is None else len(rows)
        # On the host a block should stay in the cache.
        is_host = "cpu" in str(self.device).lower()
        most = sizes.tile_elements if is_host else sizes.device_elements
        width = max(1, most // max(n_rows, 1))

        def call(cols: slice) -> tuple[slice, Result]:
            # NaN and infinity show in the sums.
            quiet = np.errstate(invalid="ignore", over="ignore")
            with self.library.precise(), quiet:
                return cols, function(cols, self.block(cols, some))

        return over_columns(call, p, width, self.place)

    def select(self, rows: IntArray | None, cols: IntArray | None) -> DeviceMatrix:
        """A copy of some of the rows and columns, on the device.

        Parameters
        ----------
        rows, cols : ndarray of int, optional
            Which; by default all of them.
        """
        with self.library.precise():
            X = self.X
            if self.slopes is not None and self.covariates is not None:
                covariates = self.covariates if rows is None else self.covariates[rows]
                slopes = self.slopes if cols is None else self.slopes[:, cols]
                change = self.send(covariates) @ self.send(slopes)
            # The shorter of the two copies is made first.
            steps = [(0, rows), (1, cols)]
            n, p = self.shape
            if rows is not None and cols is not None and len(rows) * p > n * len(cols):
                steps.reverse()
            for axis, chosen in steps:
                if chosen is not None:
                    X = self.xp.take(X, self.send(chosen), axis=axis)
            if self.slopes is not None:
                X = self.xp.astype(X, self.xp.float64) - change
        return DeviceMatrix(X, self.library)

    def join(self, other: DeviceMatrix) -> DeviceMatrix:
        """The rows of both, one after the other."""
        xp = self.xp
        with self.library.precise():
            parts = [self.X, other.X]
            if self.X.dtype != other.X.dtype:
                parts = [xp.astype(part, xp.float64) for part in parts]
            return DeviceMatrix(xp.concat(parts, axis=0), self.library)
