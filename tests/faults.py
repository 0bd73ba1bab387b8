"""A fault kit: full disks, short writes, kills, and what a process leaves behind.

Everything happens in child processes, so that a fault cannot harm the tests. Children
import the ebda that the tests import. Each child is killed at its time limit.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import ebda

# A child prints this line where a test wants to kill it.
MARKER = "now"


@dataclass(frozen=True)
class Outcome:
    """How a child ended, and what it left behind.

    Parameters
    ----------
    code : int
        Exit status; minus the number of the signal that ended it.
    out, err : str
        What it wrote to standard output and error.
    files : list of str
        Names in its folder, sorted.
    processes : list of int
        Processes of its group that are still running; they are killed.
    timed_out : bool
        Whether it was killed at its time limit.
    """

    code: int
    out: str
    err: str
    files: list[str]
    processes: list[int]
    timed_out: bool


@dataclass(frozen=True)
class Kill:
    """A signal to the child, a moment after its marker or after its start.

    Parameters
    ----------
    signal : int
        Its number.
    delay : float
        Seconds.
    after_marker : bool
        Whether the time counts from the line ``now`` that the child prints.
    """

    signal: int = signal.SIGKILL
    delay: float = 0.0
    after_marker: bool = True


def run(
    code: str | list[str],
    folder: Path,
    *,
    kill: Kill | None = None,
    timeout: float = 60,
    **environment: str,
) -> Outcome:
    """Run Python code, or ``python -m`` with these arguments, in a folder.

    Parameters
    ----------
    code : str or list of str
        Source code, or the arguments of ``python -m``.
    folder : Path
        Where the child works.
    kill : Kill, optional
        Signal to send, unless the child has ended before.
    timeout : float
        Seconds after which the child is killed.
    **environment
        Variables that differ from those of the tests.
    """
    arguments = ["-c", code] if isinstance(code, str) else ["-m", *code]
    source = str(Path(ebda.__file__).parents[1])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": source, **environment},
        )
        end = time.monotonic() + timeout
        try:
            if kill is not None:
                while (
                    kill.after_marker
                    and child.poll() is None
                    and time.monotonic() < end
                    and MARKER not in _read(out).splitlines()
                ):
                    time.sleep(0.002)
                time.sleep(kill.delay)
                if child.poll() is None:
                    child.send_signal(kill.signal)
            child.wait(max(end - time.monotonic(), 0.1))
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
            left = _group(child.pid)
            for process in left:
                os.kill(process, signal.SIGKILL)
        files = sorted(path.name for path in folder.iterdir())
        return Outcome(child.returncode, _read(out), _read(err), files, left, timed_out)


@contextmanager
def full_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of so many bytes: a tmpfs, where the tests may mount one."""
    disk = folder / "small disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reason = done.stderr.strip()
    except FileNotFoundError:
        done, reason = None, "there is no command mount"
    if done is None or done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {reason}")
    try:
        yield disk
    finally:
        # Lazily: a child that was killed may not have let go of it yet.
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def device(folder: Path, name: str) -> Path:
    """A device like ``/dev/null`` or ``/dev/full`` that belongs to a test.

    Code that replaces what it should write to must not reach those of the machine.
    Only root can replace them, and root can make others.
    """
    if os.geteuid():
        return Path("/dev") / name
    device = folder / name
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, (Path("/dev") / name).stat().st_rdev)
        device.open("wb").close()
    except OSError as error:
        pytest.skip(f"a device cannot be made: {error}")
    return device


def limited_files(size: int) -> str:
    """Code for the start of a child in which no file may grow beyond so many bytes.

    Unlike a small disk it needs no rights. Writes beyond fail with EFBIG.
    """
    return f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size},) * 2)"


def short_writes(most: int = 7) -> str:
    """Code for the start of a child in which ``os.write`` writes a part of its bytes.

    Parameters
    ----------
    most : int
        Bytes that a call writes at most.
    """
    return f"""import os
_write = os.write
os.write = lambda descriptor, data: _write(descriptor, bytes(data)[:{most}])"""


def _read(stream: object) -> str:
    descriptor = stream.fileno()  # type: ignore[attr-defined]
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, size, 0).decode(errors="replace")


def _group(leader: int) -> list[int]:
    """Running processes of the session that a child has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (
                (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            )
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(session) == leader and state != "Z" and int(entry.name) != leader:
            found.append(int(entry.name))
    return found
