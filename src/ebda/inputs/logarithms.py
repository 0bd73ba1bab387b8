"""Logarithms of raw values: which there are, and what each does.

All are ``sign(x) log(1 + |x|)`` to some base, which keeps zeros and takes negative
values. The base changes nothing but the unit of the differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ebda.registry import Entry, Registry


@dataclass(frozen=True)
class Logarithm(Entry):
    """A logarithm by its base.

    Parameters
    ----------
    base : float
        Of the logarithm.
    """

    base: float = math.e

    def of(self, X: Any) -> Any:
        """Of an ndarray, or of the stored values of a sparse matrix.

        >>> LOGARITHMS["log2"].of(np.array([[-1.0, 0.0, 7.0]])).tolist()
        [[-1.0, 0.0, 3.0]]
        """
        if sparse.issparse(X):
            changed = X.copy()
            changed.data = self.of(X.data)
            return changed
        size = np.log1p(np.abs(X))
        if self.base != math.e:
            size = size / np.log(self.base)
        return np.sign(X) * size

    def undone(self, X: Any) -> Any:
        """The values of which these are the logarithms.

        >>> LOGARITHMS["log2"].undone(np.array([3.0, -1.0])).round(9).tolist()
        [7.0, -1.0]
        """
        if sparse.issparse(X):
            changed = X.copy()
            changed.data = self.undone(X.data)
            return changed
        with np.errstate(over="ignore"):
            return np.sign(X) * np.expm1(np.abs(X) * np.log(self.base))


NATURAL = Logarithm("natural", "sign(x) log(1 + |x|)")
LOGARITHMS = Registry(
    "log", NATURAL, Logarithm("log2", "sign(x) log2(1 + |x|)", base=2.0)
)


def find_logarithm(log: bool | str | None) -> Logarithm | None:
    """The logarithm that is meant: True is the natural one; False and None are none.

    >>> find_logarithm("log2").base, find_logarithm(True).name, find_logarithm(False)
    (2.0, 'natural', None)
    """
    if isinstance(log, str):
        return LOGARITHMS.find(log)
    return NATURAL if log else None
