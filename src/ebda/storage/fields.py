"""Kinds of fields: how a value goes into the header and its arrays, and back.

A kind checks what it reads: type, shape, range. Shapes are named dimensions, which
must be the same number wherever a name occurs in a file: ``("c", "p")`` is one row
per contrast and one column per feature, and ``SQUEEZED`` the same without the first
axis if there is one contrast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ebda.storage.arrays import Part, encode
from ebda.storage.errors import FormatError

# A number for a dimension, and a shape for the values of a posterior.
Scope = dict[str, Any]
Shape = tuple[str, ...]
# Contrasts by features, as `ebda.estimators.linear_classifier.squeeze` leaves them.
SQUEEZED: Shape = ("squeezed",)
# The shape of whatever a posterior is of.
VALUES: Shape = ("values",)
# What the numbers of an array must be.
DISTRIBUTION = ("zero or more", "a distribution")
POSITIVE = ("finite", "positive")
NOT_NEGATIVE = ("finite", "zero or more")


@dataclass
class Writer:
    """Collects the arrays of a file; one that two attributes share is stored once."""

    parts: list[Part] = field(default_factory=list)
    lost_state: bool = False
    # With the array itself: while it is referred to, no other has its address.
    _places: dict[tuple[Any, ...], tuple[int, Any]] = field(default_factory=dict)

    def put(self, array: npt.NDArray[Any], where: str) -> dict[str, int]:
        """A reference to the array."""
        pointer = array.__array_interface__["data"][0]
        key = (pointer, array.shape, array.strides, array.dtype.str)
        if key not in self._places:
            try:
                part = encode(array)
            except TypeError as error:
                raise TypeError(
                    f"{where} is {error}, which a model file cannot hold; it holds "
                    "numbers and strings"
                ) from None
            self._places[key] = len(self.parts), array
            self.parts.append(part)
        return {"array": self._places[key][0]}


@dataclass
class Reader:
    """Hands out the arrays of a file, and knows which were asked for."""

    arrays: list[npt.NDArray[Any]]
    used: set[int] = field(default_factory=set)

    def get(self, reference: Any, where: str) -> npt.NDArray[Any]:
        """The array of a reference."""
        place = reference.get("array") if isinstance(reference, dict) else None
        if not (
            type(place) is int and 0 <= place < len(self.arrays) and len(reference) == 1
        ):
            raise FormatError(f"{where} is not an array")
        self.used.add(place)
        return self.arrays[place]


class Kind(Protocol):
    """A kind of field."""

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        """The value as JSON, with its arrays put into the writer."""

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        """The value again; a FormatError where it is not of this kind."""


def match_shape(found: tuple[int, ...], named: Shape, scope: Scope, where: str) -> None:
    """Compare a shape with its named dimensions, and note those not known yet."""
    if named == VALUES:
        wanted = scope.setdefault("values", found)
    elif named == SQUEEZED:
        rows = (scope["c"], scope["p"])
        wanted = rows[1:] if rows[0] == 1 else rows
    elif len(named) == len(found):
        wanted = tuple(
            int(name) if name.isdigit() else scope.setdefault(name, n)
            for name, n in zip(named, found, strict=True)
        )
    else:
        wanted = tuple(scope.get(name, name) for name in named)
    if wanted != found:
        raise FormatError(f"{where} has the shape {found}, and should have {wanted}")


# What the entries of an array must be, in words.
CHECKS: dict[str, Callable[[npt.NDArray[Any]], Any]] = {
    "finite": lambda a: np.isfinite(a).all(),
    "free of NaN": lambda a: not np.isnan(a).any(),
    "positive": lambda a: (a > 0).all(),
    "free of negative numbers": lambda a: not (a < 0).any(),
    "zero or more": lambda a: (a >= 0).all(),
    "zero or less": lambda a: (a <= 0).all(),
    "at most 1": lambda a: (a <= 1).all(),
    "ascending": lambda a: (a[1:] > a[:-1]).all(),
    "in order": lambda a: (a[1:] >= a[:-1]).all(),
    "free of duplicates": lambda a: len(set(a.tolist())) == a.size,
    "not empty": lambda a: a.size > 0,
    "a distribution": lambda a: abs(a.sum() - 1) < 1e-6,
    # Probabilities of other classifiers may be of single precision.
    "a distribution in each row": lambda a: (abs(a.sum(axis=1) - 1) < 1e-4).all(),
    "logs of a distribution": lambda a: abs(np.exp(a).sum() - 1) < 1e-6,
}


def check(values: npt.NDArray[Any], rules: Iterable[str], where: str) -> None:
    """Refuse an array that breaks a rule."""
    for rule in rules:
        if not CHECKS[rule](values):
            raise FormatError(f"{where} must be {rule}")


@dataclass(frozen=True)
class Array:
    """An array of float64, or of one of a few other types; of strings, of objects.

    Parameters
    ----------
    shape : tuple of str
        Named dimensions; a number stands for itself.
    must : tuple of str
        Names in `CHECKS`.
    dtype : type
        Exactly so.
    below : str, optional
        Dimension that all entries, which are indices, are less than.
    """

    shape: Shape
    must: tuple[str, ...] = ("finite",)
    dtype: type = np.float64
    below: str | None = None

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        array = np.asarray(value)
        # Indices have the machine's own width; in a file they have 64 bits.
        return writer.put(array.astype(self.dtype, copy=False), where)

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        array = reader.get(value, where)
        if array.dtype != self.dtype:
            name = np.dtype(self.dtype).name
            raise FormatError(
                f"{where} is an array of {array.dtype}, and not of {name}"
            )
        match_shape(array.shape, self.shape, scope, where)
        check(array, self.must, where)
        if self.below is not None:
            if array.size and not (
                array.min() >= 0 and array.max() < scope[self.below]
            ):
                raise FormatError(f"{where} holds indices out of range")
            return array.astype(np.intp, copy=False)
        return array


@dataclass(frozen=True)
class Labels:
    """Class labels, numbers or strings: ascending, two or more."""

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        return writer.put(np.asarray(value), where)

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        labels = reader.get(value, where)
        match_shape(labels.shape, ("k",), scope, where)
        if len(labels) < 2:
            raise FormatError(f"{where} holds fewer than two labels")
        if labels.dtype.kind == "f":
            check(labels, ["finite"], where)
        check(labels, ["ascending"], where)
        scope["c"] = 1 if len(labels) == 2 else len(labels)
        return labels


@dataclass(frozen=True)
class Scalar:
    """A truth value, a number or a string.

    Parameters
    ----------
    types : tuple of type
        Which of them. A whole number will do for a float.
    least, most : float, optional
        Smallest and largest value.
    finite : bool
        Whether infinity and NaN are refused.
    dimension : str, optional
        Name of the dimension that it is.
    """

    types: tuple[type, ...]
    least: float | None = None
    most: float | None = None
    finite: bool = True
    dimension: str | None = None

    def encode(self, value: Any, writer: Writer, where: str) -> Any:
        return scalar_to_json(value)

    def decode(self, value: Any, reader: Reader, scope: Scope, where: str) -> Any:
        value = scalar_from_json(value)
        if type(value) is int and float in self.types and int not in self.types:
            value = float(value)
        if type(value) not in self.types:
            wanted = " or ".join(t.__name__ for t in self.types)
            raise FormatError(f"{where} is not of type {wanted}")
        if self.finite and isinstance(value, float) and not math.isfinite(value):
            raise FormatError(f"{where} is not finite")
        if self.least is not None and value < self.least:
            raise FormatError(f"{where} is less than {self.least}")
        if self.most is not None and value > self.most:
            raise FormatError(f"{where} is more than {self.most}")
        if self.dimension is not None:
            match_shape((value,), (self.dimension,), scope, where)
        return value


_NON_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def scalar_to_json(value: Any) -> Any:
    """A number of Python or NumPy, a string or None; what JSON lacks as an object.

    >>> scalar_to_json(np.float64(0.1)), scalar_to_json(-math.inf)
    (0.1, {'float': '-inf'})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def scalar_from_json(value: Any) -> Any:
    """The inverse of `scalar_to_json`; anything else comes back as it is."""
    if isinstance(value, dict) and set(value) == {"float"}:
        name = value["float"]
        return _NON_FINITE.get(name, value) if isinstance(name, str) else value
    return value


NUMBER = Scalar((float,))
COUNT = Scalar((int,), least=0)
# A log-likelihood may be infinite.
LIKELIHOOD = Scalar((float,), finite=False)
