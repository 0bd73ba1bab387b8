"""What a full disk, a damaged cache and a kill can and cannot do."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ebda
import faults
from ebda import EBClassifier
from ebda.data.disk.kept import StripFile

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="children are POSIX processes"),
]


def data(n: int = 30, p: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = np.repeat(["ill", "well"], n // 2)
    X[: n // 2, :10] += 1.5
    return X, y


def write_csv(path: Path, n: int = 30, p: int = 200) -> None:
    X, y = data(n, p)
    lines = [",".join(["label", *(f"g{j}" for j in range(p))])]
    for row, label in zip(X, y, strict=True):
        lines.append(",".join([label, *(f"{v:.4f}" for v in row)]))
    path.write_text("\n".join(lines) + "\n")


# The kit


def test_the_kit_sees_what_a_child_does_and_leaves(tmp_path: Path) -> None:
    code = """
import subprocess, sys
open("left", "w").close()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("out"); print("err", file=sys.stderr); sys.exit(3)
"""
    done = faults.run(code, tmp_path)
    assert (done.code, done.out, done.err) == (3, "out\n", "err\n")
    assert done.files == ["left"]
    assert len(done.processes) == 1
    assert not done.timed_out


def test_the_kit_kills_at_the_marker_and_at_the_time_limit(tmp_path: Path) -> None:
    code = "import time; print('now', flush=True); time.sleep(60)"
    for number in (signal.SIGKILL, signal.SIGTERM):
        done = faults.run(code, tmp_path, kill=faults.Kill(number))
        assert done.code == -number
        assert not done.timed_out
    assert faults.run("import time; time.sleep(60)", tmp_path, timeout=0.5).timed_out


def test_the_kit_makes_disks_full_and_writes_short(tmp_path: Path) -> None:
    limit = faults.limited_files(100)
    done = faults.run(f"{limit}\nopen('f', 'wb', 0).write(bytes(200))", tmp_path)
    assert (tmp_path / "f").stat().st_size == 100
    short = f"{faults.short_writes(7)}\nprint(os.write(1, b'0123456789'))"
    assert faults.run(short, tmp_path).out == "01234567\n"
    assert done.code == 0
    with faults.full_disk(tmp_path, 1 << 16) as disk:
        done = faults.run(f"open({str(disk / 'g')!r}, 'wb').write(bytes(99999))", disk)
        assert "No space left on device" in done.err


# A small disk for temporary files


def test_space_for_kept_rows_is_reserved(tmp_path: Path) -> None:
    with faults.full_disk(tmp_path, 4 << 20) as disk:
        first = StripFile(1000, 300, np.dtype("f8"), str(disk))
        with pytest.raises(OSError, match="No space left") as raised:
            StripFile(1000, 300, np.dtype("f8"), str(disk))
        assert raised.value.errno == errno.ENOSPC
        first[0:1000, slice(0, 300)] = np.ones((1000, 300))
        assert (first[np.array([999]), slice(0, 300)] == 1).all()


OUT_OF_CORE = """
import sys, numpy as np
from ebda import EBClassifier
from ebda.sizes import override
X = np.lib.format.open_memmap("X.npy", mode="r")
y = np.load("y.npy")
with override(kept_bytes=0, reread_bytes=1 << 30, mapped_bytes=0, block_bytes=1 << 18):
    print("now", flush=True)
    EBClassifier().fit(X, y)
print("fitted")
"""


def test_two_fits_that_share_a_small_disk_end_well_or_with_a_word(
    tmp_path: Path,
) -> None:
    X, y = data(200, 4000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    source = str(Path(ebda.__file__).parents[1])
    with faults.full_disk(tmp_path, 10 << 20) as disk:  # a fit needs 6.4 MB of it
        environment = {**os.environ, "PYTHONPATH": source, "TMPDIR": str(disk)}
        children = [
            subprocess.Popen(
                [sys.executable, "-c", OUT_OF_CORE],
                cwd=tmp_path,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(2)
        ]
        ends = [child.communicate(timeout=120) for child in children]
        for child, (out, err) in zip(children, ends, strict=True):
            assert child.returncode in (0, 1), f"killed by {-child.returncode}"
            assert "fitted" in out or "set TMPDIR to a folder with more space" in err
        assert any("fitted" in out for out, _ in ends)
        assert not any(disk.iterdir())


# Numba's cache

COMPILED = """
import numpy as np
from ebda.kernels import loops
from ebda.kernels.compiled import compile_loop
means, squares = np.zeros((2, 3)), np.zeros((2, 3))
X, order, bounds = np.arange(12.0).reshape(4, 3), np.arange(4), np.array([0, 2, 4])
loop = compile_loop(loops.class_sums)
loop(X, order, bounds, 2, means, squares, 0, 3)
assert means.tolist() == [[1.5, 2.5, 3.5], [7.5, 8.5, 9.5]]
print("hits", sum(loop.stats.cache_hits.values()))
"""


def hits(folder: Path, cache: Path) -> int:
    done = faults.run(COMPILED, folder, NUMBA_CACHE_DIR=str(cache))
    assert done.code == 0, done.err
    return int(done.out.split()[-1])


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["empty", "cut", "bits", "noise"])
def test_a_damaged_cache_is_made_anew(ending: str, damage: str, tmp_path: Path) -> None:
    pytest.importorskip("numba")
    cache = tmp_path / "cache"
    assert hits(tmp_path, cache) == 0
    assert hits(tmp_path, cache) == 1
    (path,) = cache.rglob(f"*.{ending}")
    content = bytearray(path.read_bytes())
    if damage == "empty":
        content = bytearray()
    elif damage == "cut":
        del content[len(content) // 2 :]
    elif damage == "bits":
        for place in range(len(content) // 3, len(content) - 40, 97):
            content[place] ^= 0x10
    else:
        content = bytearray(np.random.default_rng(0).bytes(len(content)))
    path.write_bytes(content)
    assert hits(tmp_path, cache) == 0
    assert hits(tmp_path, cache) == 1


def test_a_full_cache_folder_is_done_without(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    with faults.full_disk(tmp_path, 1 << 14) as disk:
        assert hits(tmp_path, disk) == 0
        assert hits(tmp_path, disk) == 0


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    cache = tmp_path / "cache"
    cache.write_text("a file in the place of the folder")
    hits(tmp_path, cache)  # Numba may find another folder
    done = faults.run(
        f"{faults.limited_files(64)}\n{COMPILED}",
        tmp_path,
        NUMBA_CACHE_DIR=str(tmp_path / "other"),
    )
    assert done.code == 0, done.err


# Kills


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_save_leaves_a_whole_model(number: int, tmp_path: Path) -> None:
    X, y = data()
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    path = tmp_path / "m.ebda"
    ebda.save(model, path)
    code = """
import ebda
model = ebda.load("m.ebda")
print("now", flush=True)
while True:
    ebda.save(model, "m.ebda")
"""
    delays = np.random.default_rng(number).uniform(0, 0.05, size=3)
    for delay in delays:
        kill = faults.Kill(number, float(delay))
        assert faults.run(code, tmp_path, kill=kill).code == -number
        np.testing.assert_array_equal(ebda.load(path).coef_, model.coef_)
    ebda.save(model, path)
    drafts = [f.name for f in tmp_path.iterdir() if f != path]
    assert all(name.startswith(".ebda-") and name.endswith(".tmp") for name in drafts)


def test_a_killed_command_leaves_the_old_model_and_no_process(tmp_path: Path) -> None:
    write_csv(tmp_path / "x.csv")
    command = ["ebda", "fit", "x.csv", "--target", "label", "--model", "m.ebda"]
    command += ["--report", "m.html"]
    first = faults.run(command, tmp_path)
    assert first.code == 0, first.err
    old = ebda.load(tmp_path / "m.ebda").coef_
    rng = np.random.default_rng(0)
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        for delay in rng.uniform(0.3, 4.0, size=1):
            kill = faults.Kill(number, float(delay), after_marker=False)
            done = faults.run(command, tmp_path, kill=kill)
            assert not done.processes
            assert not done.timed_out
            np.testing.assert_array_equal(ebda.load(tmp_path / "m.ebda").coef_, old)
            assert (tmp_path / "m.html").read_text().rstrip().endswith("</html>")
    assert faults.run(command, tmp_path).code == 0
    np.testing.assert_array_equal(ebda.load(tmp_path / "m.ebda").coef_, old)


def test_a_full_disk_leaves_the_old_model(tmp_path: Path) -> None:
    X, y = data()
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(X, y)
    with faults.full_disk(tmp_path, 1 << 18) as disk:
        path = disk / "m.ebda"
        ebda.save(model, path)
        old = path.read_bytes()
        (disk / "ballast").write_bytes(bytes((1 << 18) - len(old) - 8192))
        while True:  # the rest, page by page
            try:
                with (disk / "ballast").open("ab") as stream:
                    stream.write(bytes(4096))
            except OSError:
                break
        with pytest.raises(OSError, match="No space left on device"):
            ebda.save(model, path)
        assert path.read_bytes() == old
        assert sorted(p.name for p in disk.iterdir()) == ["ballast", "m.ebda"]
