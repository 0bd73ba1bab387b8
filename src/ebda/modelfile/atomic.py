"""A file that is there whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content replaces a file at the end of the block, at one stroke.

    It is written beside the file, brought to the disk, and renamed. A crash or an
    exception at any moment leaves the old file whole. A link stays a link, an old file
    keeps its permissions, and a new one has those of the umask.

    Parameters
    ----------
    path : Path
        The file; its folder must exist.
    """
    target = Path(os.path.realpath(path))
    mode = _mode(target, path)
    beside = target.with_name(f".ebda-{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(beside, flags, 0o666)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"cannot write {path}: there is no folder {target.parent}"
        ) from None
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


def _mode(target: Path, path: Path) -> int | None:
    """Permissions of a file that is there already; None without one."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise OSError(f"cannot write {path}: it is there, and not a regular file")
    return stat.S_IMODE(found)


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
