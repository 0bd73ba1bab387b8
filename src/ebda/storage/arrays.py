"""One array as bytes, and back: what may be in a file, and how much of it.

Numbers are little-endian, in C or Fortran order (products of matrices can differ in
the last bit between the two). Strings are their lengths in bytes, as uint32, and then
all of them in UTF-8. The size of an array follows from its description; the container
checks the sum of all sizes against the file before any of them is allocated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BufferedIOBase
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ebda.storage.errors import FormatError

NUMBERS = frozenset(
    {"|b1", "<f2", "<f4", "<f8"}
    | {"|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8"}
)
# Strings as an array of objects, or of NumPy's fixed width.
TEXTS = frozenset({"object", "str"})
_MAX_DIMENSIONS = 3
_MAX_LENGTH = 1 << 40
# Characters of a fixed-width array: one long label must not blow up all the others.
_MAX_CHARACTERS = 1 << 22
# Strings whose places are Python's numbers at a time, each larger than most strings.
_STRINGS = 1 << 12


@dataclass(frozen=True)
class Description:
    """An array as the header lists it.

    Parameters
    ----------
    dtype : str
        One of `NUMBERS` or `TEXTS`.
    shape : tuple of int
        Of strings, one dimension.
    order : {"C", "F"}
        How numbers are laid out.
    n_bytes : int
        Size in the file.
    """

    dtype: str
    shape: tuple[int, ...]
    order: str
    n_bytes: int

    def to_json(self) -> dict[str, Any]:
        """As it stands in the header; the size of numbers follows from the rest."""
        entry: dict[str, Any] = {"dtype": self.dtype, "shape": list(self.shape)}
        if self.dtype in TEXTS:
            return entry | {"bytes": self.n_bytes}
        return entry | ({"order": "F"} if self.order == "F" else {})

    @classmethod
    def from_json(cls, entry: Any, place: int) -> Description:
        """The same from the header of a file that may be hostile."""
        if not isinstance(entry, dict):
            raise FormatError(f"array {place} is not described by an object")
        dtype, shape = entry.get("dtype"), entry.get("shape")
        if not isinstance(dtype, str) or dtype not in NUMBERS | TEXTS:
            raise FormatError(f"array {place} has the unknown dtype {_shown(dtype)}")
        if not (
            isinstance(shape, list)
            and 1 <= len(shape) <= (1 if dtype in TEXTS else _MAX_DIMENSIONS)
            and all(type(n) is int and 0 <= n <= _MAX_LENGTH for n in shape)
        ):
            raise FormatError(f"array {place} has the impossible shape {_shown(shape)}")
        known = {"dtype", "shape", "bytes" if dtype in TEXTS else "order"}
        if not set(entry) <= known:
            raise FormatError(
                f"array {place} is described by more than {sorted(known)}"
            )
        if dtype in TEXTS:
            size = entry.get("bytes")
            if type(size) is not int or size < 4 * shape[0]:
                raise FormatError(
                    f"array {place} has the impossible size {_shown(size)}"
                )
            return cls(dtype, (shape[0],), "C", size)
        order = entry.get("order", "C")
        if order not in ("C", "F"):
            raise FormatError(f"array {place} has the unknown order {_shown(order)}")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        return cls(dtype, tuple(shape), order, size)


# An array on its way into a file: what it is, and its bytes.
Part = tuple[Description, Any]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def encode(array: npt.NDArray[Any]) -> Part:
    """Description and bytes of an array; a TypeError for what has no place in a file.

    >>> encode(np.array(["a", "bc"]))[0].to_json()
    {'dtype': 'str', 'shape': [2], 'bytes': 11}
    >>> encode(np.zeros((2, 3), dtype=">f4"))[0].to_json()
    {'dtype': '<f4', 'shape': [2, 3]}
    """
    if array.dtype.kind in "OU":
        return _encode_text(array)
    little = array.dtype.newbyteorder("<")
    if little.str not in NUMBERS or not 1 <= array.ndim <= _MAX_DIMENSIONS:
        raise TypeError(f"an array of {array.dtype} with {array.ndim} dimensions")
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    order: Literal["C", "F"] = "F" if fortran else "C"
    flat = array.astype(little, copy=False).ravel(order=order)
    return Description(little.str, array.shape, order, flat.nbytes), flat.data


def _encode_text(array: npt.NDArray[Any]) -> Part:
    texts = array.tolist()
    if array.ndim != 1 or not all(isinstance(text, str) for text in texts):
        raise TypeError("an array of objects that are not strings")
    kind = "str" if array.dtype.kind == "U" else "object"
    if kind == "str" and array.size * max(map(len, texts), default=0) > _MAX_CHARACTERS:
        kind = "object"
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    lengths = np.array([len(part) for part in parts], dtype="<u4").tobytes()
    data = lengths + b"".join(parts)
    return Description(kind, array.shape, "C", len(data)), data


def decode(
    description: Description, stream: BufferedIOBase, place: int
) -> npt.NDArray[Any]:
    """Read one array; the stream stands at its first byte."""
    read = _read_text if description.dtype in TEXTS else _read_numbers
    return read(description, stream, place)


def _read_numbers(
    description: Description, stream: BufferedIOBase, place: int
) -> npt.NDArray[Any]:
    shape, dtype = description.shape, np.dtype(description.dtype)
    flat = np.empty(math.prod(shape), dtype=dtype)
    _fill(stream, flat.view(np.uint8).data)
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise FormatError(f"array {place} holds truth values other than 0 and 1")
    native = flat.astype(dtype.newbyteorder("="), copy=False)
    if description.order == "F":
        return native.reshape(shape, order="F")
    return native.reshape(shape)


def _fill(stream: BufferedIOBase, buffer: memoryview) -> None:
    if stream.readinto(buffer) < len(buffer):
        raise FormatError("it became shorter while it was read")


def _read_text(
    description: Description, stream: BufferedIOBase, place: int
) -> npt.NDArray[Any]:
    data = bytearray(description.n_bytes)
    _fill(stream, memoryview(data))
    (n,) = description.shape
    ends = np.frombuffer(data, dtype="<u4", count=n).cumsum(dtype=np.int64) + 4 * n
    if (int(ends[-1]) if n else 0) != len(data):
        raise FormatError(f"array {place} holds strings of other lengths than it says")
    texts: list[str] = []
    start = 4 * n
    try:
        for first in range(0, n, _STRINGS):
            for end in ends[first : first + _STRINGS].tolist():
                texts.append(data[start:end].decode("utf-8", "surrogatepass"))
                start = end
    except UnicodeDecodeError:
        raise FormatError(f"array {place} holds strings that are not UTF-8") from None
    if description.dtype == "object":
        return np.array(texts, dtype=object)
    if n * max(map(len, texts), default=0) > _MAX_CHARACTERS:
        raise FormatError(f"array {place} holds labels that are too long")
    return np.array(texts, dtype=str)
