r"""Writing files: each is there whole or not at all.

Everything that ebda writes goes through this module: model files, reports, tables,
pictures and the results of the reproduction.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "table.csv"
...     write(path, "a,b\n")
...     append(path, "1,2\n")
...     path.read_text()
'a,b\n1,2\n'
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, TextIO

_O_BINARY = getattr(os, "O_BINARY", 0)
_DRAFT = re.compile(r"\.ebda-[0-9a-f]{16}\.tmp")
# A draft that nobody has written to for so long belongs to a process that was killed.
# Its number would not tell: folders are shared by machines, and numbers are used again.
_DEAD_SECONDS = 24 * 3600.0


def check(path: Path) -> None:
    """Refuse a place that cannot be written to, before hours of work are lost.

    Nothing is created. A disk that is full, and permissions that change later, still
    show when the file is written.

    Parameters
    ----------
    path : Path
        The file to be written.

    Raises
    ------
    OSError
        Of the fitting kind, with a message that names the path: it is a folder, its
        folder is missing or may not be written to, its name is too long.

    Examples
    --------
    >>> check(Path("/no/m.ebda"))
    Traceback (most recent call last):
    FileNotFoundError: cannot write /no/m.ebda: there is no folder /no; make it
    """
    found = _status(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(f"cannot write {path}: this is a folder; name a file")
    if found is not None and _is_special(found):
        if not os.access(path, os.W_OK):
            raise PermissionError(f"cannot write {path}: permission denied")
        return
    # That of the file which a link leads to.
    folder = (Path(os.path.realpath(path)) if path.is_symlink() else path).parent
    if not folder.exists():
        raise FileNotFoundError(
            f"cannot write {path}: there is no folder {folder}; make it"
        )
    if not folder.is_dir():
        raise NotADirectoryError(f"cannot write {path}: {folder} is not a folder")
    # The folder, because the file is renamed in it.
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(
            f"cannot write {path}: the folder {folder} may not be written to"
        )


def is_special(path: Path) -> bool:
    """Whether a path is a device, a pipe or the process's own output.

    >>> is_special(Path("/dev/null")), is_special(Path("table.csv"))
    (True, False)
    """
    found = _status(path)
    return found is not None and _is_special(found)


def write(path: Path, content: str | bytes) -> None:
    """Write a file; text is encoded as UTF-8. See :func:`replacing`."""
    data = content.encode() if isinstance(content, str) else content
    with replacing(path) as stream:
        stream.write(data)


def append(path: Path, lines: str) -> None:
    """Add whole lines to a file with one write, and wait until they are on the disk.

    Where a process was killed in the midst of a line, they begin on a line of their
    own; the torn one stays, for readers to leave out.

    Parameters
    ----------
    path : Path
        The file; it is created where it is missing.
    lines : str
        Each with a line feed at its end.
    """
    data = lines.encode()
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | _O_BINARY
    with os.fdopen(os.open(path, flags, 0o666), "r+b", buffering=0) as stream:
        if stream.seek(0, os.SEEK_END):
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                data = b"\n" + data
        if stream.write(data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(stream.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces a file at the end of the block, at one stroke.

    It is written beside the file, brought to the disk, and renamed. A crash or an
    exception at any moment leaves the old file whole. A link stays a link, an old file
    keeps its permissions, and a new one has those of the umask. Devices, pipes and the
    process's own output (``/dev/null``, ``/dev/stdout``) are never replaced, but
    written to.

    Parameters
    ----------
    path : Path
        The file; its folder must exist.
    """
    check(path)
    found = _status(path)
    target = Path(os.path.realpath(path))
    if found is not None and _is_special(found):
        with os.fdopen(_open_special(path, found), "wb") as stream:
            yield stream
        return
    _sweep(target.parent)
    beside = target.with_name(f".ebda-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _O_BINARY
    mode = None if found is None else stat.S_IMODE(found.st_mode)
    descriptor = os.open(beside, flags, 0o666 if mode is None else mode)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if mode is not None:
            beside.chmod(mode)
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _status(path: Path) -> os.stat_result | None:
    """What is there under this name, or None."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise OSError(
                f"cannot write {str(path)[:60]}...: the name is too long; shorten it"
            ) from None
        raise type(error)(f"cannot write {path}: {error.strerror}") from None


def _own_stream(found: os.stat_result) -> TextIO | None:
    """Standard output or error of this process, if it goes there."""
    for stream in filter(None, (sys.__stdout__, sys.__stderr__)):
        with suppress(ValueError, OSError):  # it is closed
            if os.path.samestat(found, os.fstat(stream.fileno())):
                return stream
    return None


def _is_special(found: os.stat_result) -> bool:
    return not stat.S_ISREG(found.st_mode) or _own_stream(found) is not None


def _open_special(path: Path, found: os.stat_result) -> int:
    stream = _own_stream(found)
    if stream is None:
        return os.open(path, os.O_WRONLY | _O_BINARY)
    # The same descriptor, so that what was printed and will be is kept.
    stream.flush()
    return os.dup(stream.fileno())


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed have left in a folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _DRAFT.fullmatch(entry.name):
                age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                if age > _DEAD_SECONDS:
                    Path(entry.path).unlink()


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk too, where the system can do that."""
    if not hasattr(os, "O_DIRECTORY"):  # pragma: no cover (Windows)
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # some network file systems cannot; the file is there
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
