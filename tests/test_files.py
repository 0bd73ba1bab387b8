"""Every file that ebda writes: there whole or not at all, and nothing else harmed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import faults
from ebda.files import append, check, replacing, write


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a", "\u00e9\n")
    write(tmp_path / "b", b"\xff")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\n"
    assert (tmp_path / "b").read_bytes() == b"\xff"
    assert names(tmp_path) == ["a", "b"]


def test_a_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "m"
    write(path, "old")

    def fail() -> None:
        with replacing(path) as stream:
            stream.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["m"]


def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m"
    write(path, "old")

    def full(descriptor: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("function", ["fsync", "replace"])
def test_a_crash_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, function: str
) -> None:
    path = tmp_path / "m"
    write(path, "old")
    code = (
        "import os, pathlib, sys\n"
        "from ebda.files import write\n"
        f"os.{function} = lambda *arguments, **options: os._exit(7)\n"
        "write(pathlib.Path(sys.argv[1]), 'new')\n"
    )
    subprocess.run([sys.executable, "-c", code, path], check=False)
    assert path.read_text() in ("old", "new")


def test_permissions_are_kept_and_new_files_have_those_of_the_umask(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m"
    umask = os.umask(0o027)
    try:
        write(path, "new")
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o602)
        with replacing(path) as stream:
            # What is private stays so while it is written.
            (draft,) = (tmp_path / name for name in names(tmp_path) if name != "m")
            assert stat.S_IMODE(draft.stat().st_mode) & 0o077 == 0
            stream.write(b"newer")
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o602
    assert path.read_text() == "newer"


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/m")
    (tmp_path / "link-to-link").symlink_to("link")
    for text in ("first", "second"):
        write(tmp_path / "link-to-link", text)
        assert (tmp_path / "folder" / "m").read_text() == text
        assert not (tmp_path / "folder" / "m").is_symlink()
        assert (tmp_path / "link").is_symlink()
        assert names(tmp_path / "folder") == ["m"]


# --- what is never replaced


def test_devices_are_written_to(tmp_path: Path) -> None:
    null, link = faults.device(tmp_path, "null"), tmp_path / "link"
    write(null, "gone")
    link.symlink_to(null)
    write(link, "gone")
    assert stat.S_ISCHR(null.stat().st_mode)
    assert link.is_symlink()
    with pytest.raises(OSError, match="No space left"):
        write(faults.device(tmp_path, "full"), "too much")


def test_pipes_are_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write(pipe, "through")
    reader.join(timeout=30)
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_keeps_what_was_printed(tmp_path: Path, name: str) -> None:
    code = (
        "import pathlib, sys\n"
        "from ebda.files import write\n"
        "print('before')\n"
        f"write(pathlib.Path({name!r}), 'written\\n')\n"
        "print('after')\n"
    )
    expected = "before\nwritten\nafter\n"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == expected
    with (tmp_path / "log").open("ab") as log:
        subprocess.run(command, stdout=log, check=True)
        subprocess.run(command, stdout=log, check=True)
    assert (tmp_path / "log").read_text() == 2 * expected
    assert names(tmp_path) == ["log"]


# --- what cannot be written


def test_places_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("nowhere/m")
    wrong: list[tuple[Path, type[OSError], str]] = [
        (tmp_path, IsADirectoryError, "this is a folder; name a file"),
        (tmp_path / "no" / "m", FileNotFoundError, "there is no folder .*/no; make it"),
        (tmp_path / "dangling", FileNotFoundError, "there is no folder .*/nowhere;"),
        (tmp_path / "file" / "m", NotADirectoryError, "/file is not a folder"),
        (tmp_path / ("m" * 300), OSError, "the name is too long; shorten it"),
        (tmp_path / "loop", OSError, "cannot write .*/loop"),
    ]
    before = names(tmp_path)
    for path, kind, message in wrong:
        for attempt in (check, lambda path: write(path, "new")):
            with pytest.raises(kind, match=message) as caught:
                attempt(path)
            assert "cannot write " in str(caught.value)
    assert names(tmp_path) == before


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / ("m" * 255), "new")
    assert (tmp_path / ("m" * 255)).read_text() == "new"


def test_missing_permissions_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *arguments: False)
    with pytest.raises(PermissionError, match=r"the folder .* may not be written to"):
        check(tmp_path / "m")
    with pytest.raises(PermissionError, match="cannot write /dev/null"):
        check(Path("/dev/null"))


def test_a_check_creates_nothing(tmp_path: Path) -> None:
    check(tmp_path / "m")
    check(Path("m"))
    check(Path("/dev/null"))
    assert names(tmp_path) == []


# --- what killed processes leave


def test_old_drafts_are_removed_and_nothing_else(tmp_path: Path) -> None:
    old, new = ".ebda-0123456789abcdef.tmp", ".ebda-fedcba9876543210.tmp"
    other = ".ebda-notes.tmp"
    for name in (old, new, other):
        (tmp_path / name).write_text("")
    two_days_ago = time.time() - 2 * 24 * 3600
    for name in (old, other):
        os.utime(tmp_path / name, (two_days_ago, two_days_ago))
    write(tmp_path / "m", "")
    assert names(tmp_path) == sorted([new, other, "m"])


# --- appending


def test_lines_are_appended_after_a_torn_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    append(path, "1\n")
    append(path, "2\n3\n")
    assert path.read_text() == "1\n2\n3\n"
    with path.open("a") as stream:
        stream.write('{"tor')
    append(path, "4\n")
    assert path.read_text() == '1\n2\n3\n{"tor\n4\n'


def test_a_line_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    code = (
        "import pathlib, resource, signal, sys\n"
        "from ebda.files import append\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))\n"
        "append(pathlib.Path(sys.argv[1]), 20 * 'a' + '\\n')\n"
    )
    path = tmp_path / "runs.jsonl"
    command = [sys.executable, "-c", code, path]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "No space left on device" in done.stderr
    append(path, "next\n")
    assert path.read_text() == 10 * "a" + "\nnext\n"
