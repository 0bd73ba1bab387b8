"""The bytes of a model file: an envelope, a JSON header, arrays, a checksum.

======  ====  ==========================================================
offset  size  what
======  ====  ==========================================================
0       8     ``89 45 42 44 41 0D 0A 1A``
8       4     version of the format
12      4     H, the size of the header
16      8     size of the whole file
24      H     the header: JSON, in ASCII
24+H          the arrays, in the order in which the header lists them
-32     32    SHA-256 of everything before
======  ====  ==========================================================

Integers are little-endian. There is no compression and there are no names of members:
what is allocated is bounded by the size of the file, and there is no path to play
tricks with. The sizes in header and envelope must account for every byte. The envelope
is the same in all versions, so that a damaged file can be told from a newer one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO

import numpy.typing as npt

from ebda.storage import arrays
from ebda.storage.errors import FormatError, ModelFileError

VERSION = 1
MAGIC = b"\x89EBDA\r\n\x1a"
ENVELOPE = struct.Struct("<8sIIQ")
DIGEST_BYTES = 32
# A parsed header takes up to forty times its size.
MAX_HEADER = 1 << 21
# A million features of forty classes; larger files are not even hashed.
MAX_FILE = 1 << 33
MAX_ARRAYS = 1000
MAX_DEPTH = 64
_MAX_DIGITS = 20
_PIECE = 1 << 20


# What is in a file: the header without its list of arrays, and the arrays.
Content = tuple[dict[str, Any], list[npt.NDArray[Any]]]


def write(stream: BinaryIO, header: dict[str, Any], parts: list[arrays.Part]) -> None:
    """Write a model file to a stream.

    Parameters
    ----------
    stream : binary stream
        Where to.
    header : dict
        What JSON can hold.
    parts : list of Part
        The arrays that it refers to, as :func:`ebda.storage.arrays.encode` has them.
    """
    described = [description.to_json() for description, _ in parts]
    text = json.dumps(
        header | {"arrays": described},
        allow_nan=False,
        separators=(",", ":"),
    ).encode("ascii")
    if len(text) > MAX_HEADER:
        raise ValueError(
            f"the header of the model file would have {len(text)} bytes, and "
            f"{MAX_HEADER} are the limit; save less data with the model"
        )
    try:
        parse(text)
    except FormatError as fault:  # never write what cannot be read
        raise ValueError(f"the model file cannot be written: {fault}") from None
    payload = sum(description.n_bytes for description, _ in parts)
    total = ENVELOPE.size + len(text) + payload + DIGEST_BYTES
    if total > MAX_FILE or len(parts) > MAX_ARRAYS:
        raise ValueError(
            f"the model file would have {total} bytes in {len(parts)} arrays, and "
            f"{MAX_FILE} in {MAX_ARRAYS} are the limit"
        )
    digest = hashlib.sha256()
    envelope = ENVELOPE.pack(MAGIC, VERSION, len(text), total)
    for data in (envelope, text, *(data for _, data in parts)):
        stream.write(data)
        digest.update(data)
    stream.write(digest.digest())


def read(path: Path) -> Content:
    """Read a model file; `ModelFileError` says what is wrong with any other."""
    with _regular_file(path) as stream:
        try:
            return _read(stream, path)
        except FormatError as fault:
            raise ModelFileError(f"{path} cannot be loaded: {fault}") from None


@contextmanager
def _regular_file(path: Path) -> Iterator[BufferedIOBase]:
    # Without waiting: a named pipe would hold up whoever opens it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ModelFileError(f"{path} is not a regular file: give a model file")
    with os.fdopen(descriptor, "rb") as stream:
        yield stream


def _read(stream: BufferedIOBase, path: Path) -> Content:
    version, n_header, total = _envelope(stream, path)
    _verify(stream, total)
    if version > VERSION:
        raise FormatError(
            f"it has version {version} of the format, and this ebda knows versions up "
            f"to {VERSION}; upgrade it: pip install --upgrade ebda"
        )
    if version == 0:
        raise FormatError("there is no version 0 of the format")
    if n_header > min(MAX_HEADER, total - ENVELOPE.size - DIGEST_BYTES):
        raise FormatError(
            f"it says that its header has {n_header} bytes, which is too much"
        )
    stream.seek(ENVELOPE.size)
    header = parse(stream.read(n_header))
    listed = header.pop("arrays", None)
    if not isinstance(listed, list):
        raise FormatError("its header lists no arrays")
    if len(listed) > MAX_ARRAYS:
        raise FormatError(f"it holds {len(listed)} arrays, and a model has a few")
    described = [arrays.Description.from_json(e, i) for i, e in enumerate(listed)]
    payload = total - ENVELOPE.size - n_header - DIGEST_BYTES
    needed = sum(description.n_bytes for description in described)
    if needed != payload:
        raise FormatError(
            f"its arrays should have {needed} bytes, and there are {payload}: it was "
            "not written by ebda"
        )
    return header, [arrays.decode(d, stream, i) for i, d in enumerate(described)]


def _envelope(stream: BufferedIOBase, path: Path) -> tuple[int, int, int]:
    """Version, size of the header and of the file, which is as long as it says."""
    there = os.fstat(stream.fileno()).st_size
    start = stream.read(ENVELOPE.size)
    if not start:
        raise FormatError("it is empty; save the model again")
    if not start.startswith(MAGIC[: len(start)]):
        if start[1:5] == MAGIC[1:5]:
            raise FormatError(
                "it was changed on the way, as text; copy it again as binary"
            )
        raise ModelFileError(
            f"{path} is not an ebda model file; give a file that ebda.save or "
            "`ebda fit --model` has written"
        )
    if len(start) < ENVELOPE.size:
        raise FormatError(
            f"it is truncated: it ends after {there} bytes; copy it again"
        )
    _, version, n_header, total = ENVELOPE.unpack(start)
    if there > MAX_FILE:
        raise FormatError(f"it has {there} bytes, and {MAX_FILE} are the limit")
    if there < total:
        raise FormatError(
            f"it is truncated: it ends after {there} of {total} bytes; copy it again"
        )
    if there > total or total < ENVELOPE.size + DIGEST_BYTES:
        raise FormatError(
            f"it is damaged: it has {there} bytes and says {total}; copy it again"
        )
    return version, n_header, total


def _verify(stream: BufferedIOBase, total: int) -> None:
    """Compare the checksum, a piece of the file at a time."""
    digest = hashlib.sha256()
    stream.seek(0)
    left = total - DIGEST_BYTES
    while left:
        piece = stream.read(min(_PIECE, left))
        if not piece:
            raise FormatError("it became shorter while it was read")
        digest.update(piece)
        left -= len(piece)
    if stream.read(DIGEST_BYTES) != digest.digest():
        raise FormatError("it is damaged: its checksum does not fit; copy it again")


def parse(text: bytes) -> dict[str, Any]:
    """The header, by stricter rules than Python's: what ebda never writes is refused.

    >>> parse(b'{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        header = json.loads(
            text.decode("ascii"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_short,
            object_pairs_hook=_without_duplicates,
        )
    except RecursionError:
        raise FormatError("its header is nested too deep") from None
    except ValueError:
        raise FormatError("its header is not JSON in ASCII") from None
    if not isinstance(header, dict):
        raise FormatError("its header is not a JSON object")
    if too_deep(header):
        raise FormatError("its header is nested too deep")
    return header


def _refuse_constant(name: str) -> Any:
    raise FormatError(f"its header holds {name}, which is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise FormatError("its header holds a number that is too large")
    return number


def _short(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise FormatError("its header holds a whole number that is too large")
    return int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise FormatError("its header holds a key twice")
    return found


def too_deep(value: Any) -> bool:
    """Whether lists and objects are nested deeper than a file may have them."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list | tuple):
                inner.extend(item)
        if not inner:
            return False
        level = inner
    return True
