"""Damaged structures: refused in one line, in a child process that must not crash.

Compiled loops trust the indices of a sparse matrix, so that a damaged one could end the
whole process. The child writes sparse files, damages their arrays in every way that the
formats allow, and reads them by all routes.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anndata
import dask
import dask.array as da
import h5py
import numpy as np
import pandas as pd
import pytest
import zarr
from scipy import sparse

from ebda import EBClassifier
from ebda.evaluation import cross_validate
from ebda.inputs import read
from ebda.inputs.on_disk import open_table

N, P = 12, 7
Y = np.array(["u", "v"] * (N // 2))
RNG = np.random.default_rng(3)
VALUES = RNG.poisson(1.5, (N, P)).astype(float)
VALUES[1::2] += 1


def out_of_range(draw: random.Random, part: dict[str, Any]) -> None:
    far = draw.choice([P, N, 10**6, 2**31 - 1, -1, -(10**6)])
    part["indices"][draw.randrange(len(part["indices"]))] = far


def pointer(draw: random.Random, part: dict[str, Any]) -> None:
    far = draw.choice([10**6, -1, -5, 2**31 - 1, 1, len(part["data"]) + 1])
    part["indptr"][draw.randrange(len(part["indptr"]))] = far


def last_pointer(draw: random.Random, part: dict[str, Any]) -> None:
    part["indptr"][-2:] = [10**7, draw.choice([0, -1, len(part["data"])])]


def cut_short(draw: random.Random, part: dict[str, Any]) -> None:
    key = draw.choice(["indices", "indptr", "data"])
    part[key] = part[key][: draw.choice([0, 1, len(part[key]) - 1])]


def false_shape(draw: random.Random, part: dict[str, Any]) -> None:
    part["shape"] = np.array(draw.choice(SHAPES))


def fractions(draw: random.Random, part: dict[str, Any]) -> None:
    key = draw.choice(["indices", "indptr"])
    part[key] = part[key] + draw.choice([0.5, np.nan, 1e300])


def shuffled(draw: random.Random, part: dict[str, Any]) -> None:
    part["indices"] = part["indices"][::-1]


SHAPES: list[list[float]] = [
    [np.nan, P], [N, np.nan], [N, P + 3], [N + 3, P], [N - 1, P], [N, 2], [0, P],
    [-N, P], [N], [N, P, 2], [10**12, P], [N, 10**12],
]  # fmt: skip
DAMAGES = [
    out_of_range, pointer, last_pointer, cut_short, false_shape, fractions, shuffled,
]  # fmt: skip


def parts_of(draw: random.Random, kind: str) -> dict[str, Any]:
    """The damaged arrays of a sparse matrix."""
    X = getattr(sparse, f"{kind}_matrix")(VALUES)
    part = {
        "data": X.data.copy(),
        "indices": X.indices.astype(np.int64),
        "indptr": X.indptr.astype(np.int64),
        "shape": np.array(X.shape),
    }
    for _ in range(draw.randint(1, 2)):
        if len(part["indices"]) and len(part["indptr"]) > 1:
            draw.choice(DAMAGES)(draw, part)
    return part


def write_npz(path: Path, draw: random.Random) -> None:
    kind = draw.choice(["csr", "csc", "bsr"])
    np.savez(path, format=kind.encode(), **parts_of(draw, kind))


def write_coo(path: Path, draw: random.Random) -> None:
    X = sparse.coo_array(VALUES)
    part = {"row": X.row.copy(), "col": X.col.copy()}
    part[draw.choice(["row", "col"])][draw.randrange(X.nnz)] = draw.choice([99, -7])
    np.savez(path, format=b"coo", data=X.data, shape=np.array(X.shape), **part)


def change_group(group: Any, draw: random.Random, kind: str) -> None:
    for name, value in parts_of(draw, kind).items():
        if name == "shape":
            group.attrs["shape"] = value if hasattr(group, "file") else value.tolist()
        else:
            del group[name]
            group[name] = value


def write_anndata(path: Path, draw: random.Random) -> None:
    """An ``.h5ad`` file or a Zarr store with a damaged X."""
    kind = draw.choice(["csr", "csc"])
    X = getattr(sparse, f"{kind}_matrix")(VALUES)
    names = [f"s{i}" for i in range(N)]
    made = anndata.AnnData(X, pd.DataFrame({"type": Y}, index=names))
    if path.suffix == ".zarr":
        made.write_zarr(path)
        change_group(zarr.open_group(str(path))["X"], draw, kind)
        return
    made.write_h5ad(path)
    with h5py.File(path, "r+") as file:
        change_group(file["X"], draw, kind)


def read_whole(path: Path) -> None:
    table = read(path)
    assert table.X.toarray().shape == (len(table.sample_names), table.n_features)


def fit_in_blocks(path: Path) -> None:
    table = open_table(path, "type")
    assert table.y is not None
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(table.X, table.y)
    assert model.coef_.shape == (1, len(table.feature_names))
    model.predict(table.X)


CASES: dict[str, tuple[Callable[[Path, random.Random], None], list[Any]]] = {
    "a.npz": (write_npz, [read_whole]),
    "coo.npz": (write_coo, [read_whole]),
    "a.h5ad": (write_anndata, [read_whole, fit_in_blocks]),
    "a.zarr": (write_anndata, [read_whole]),
}


def child(folder: Path, seed: int, count: int) -> None:
    """Damage and read, and print the number of files that were refused."""
    warnings.simplefilter("ignore")
    draw = random.Random(seed)
    refused = lines = 0
    for turn in range(count):
        name = draw.choice(sorted(CASES))
        write, routes = CASES[name]
        path = folder / f"{turn}-{name}"
        write(path, draw)
        for route in routes:
            try:
                route(path)
            except (ValueError, OSError) as error:
                refused += 1
                lines += len(str(error).splitlines())
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert lines == refused, "a message of more than one line"
    print(refused)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_damaged_sparse_structure_never_ends_the_process(
    tmp_path: Path, seed: int
) -> None:
    command = [sys.executable, __file__, str(tmp_path), str(seed), "60"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) > 30


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo"])
@pytest.mark.parametrize("index", [-1, N * P, 2**31 - 1])
def test_a_damaged_matrix_is_refused_by_estimators(kind: str, index: int) -> None:
    model = EBClassifier(covariance="diagonal", shrinkage="mean").fit(VALUES, Y)
    X = sparse.csr_matrix(VALUES).asformat(kind)
    (X.col if kind == "coo" else X.indices)[3] = index
    for call in (lambda: EBClassifier().fit(X, Y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="the sparse matrix is damaged: it has an"):
            call()
    if kind in ("csr", "csc"):
        with pytest.raises(ValueError, match="the sparse matrix is damaged: it has an"):
            EBClassifier().fit(anndata.AnnData(X), Y)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (1, 10**6, "do not ascend"),
        (-1, 10**6, "pointers end at 1000000, beyond"),
        (-1, -1, "do not ascend from 0"),
        (0, 1, "do not ascend from 0"),
    ],
)
def test_pointers_are_checked_even_where_nothing_is_stored(
    place: int, value: int, message: str
) -> None:
    for X in (sparse.csr_array(VALUES), sparse.csr_array((N, P))):
        X.indptr[place] = value
        with pytest.raises(ValueError, match="damaged: its pointers"):
            EBClassifier().fit(X, Y)
    X = sparse.csr_array(VALUES)
    X.indptr[place] = value
    with pytest.raises(ValueError, match=message):
        EBClassifier().fit(X, Y)


def broken(X: np.ndarray, kind: str, damage: str) -> Any:
    """A sparse matrix with an index, or a pointer, that leads out of it."""
    damaged = getattr(sparse, f"{kind}_matrix")(X)
    if damage == "index":
        damaged.indices[2] = 2**31 - 1
    else:
        damaged.indptr[2] = 10**7
    return damaged


@pytest.mark.parametrize("damage", ["index", "pointer"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_damaged_matrix_is_refused_before_rows_are_taken(
    kind: str, damage: str
) -> None:
    model = EBClassifier(covariance="diagonal", shrinkage="mean")
    X = broken(VALUES, kind, damage)
    for given in (X, anndata.AnnData(X)):
        with pytest.raises(ValueError, match="the sparse matrix is damaged"):
            cross_validate(model, given, Y, n_folds=3)


@pytest.mark.parametrize("damage", ["index", "pointer"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_a_damaged_block_of_a_dask_array_is_refused(kind: str, damage: str) -> None:
    def damaged(block: np.ndarray) -> Any:
        return broken(block, kind, damage)

    chunks = da.from_array(VALUES, chunks=(N // 2, P))
    X = chunks.map_blocks(damaged, meta=np.empty((0, 0)))
    plain = EBClassifier(covariance="diagonal", shrinkage="mean").fit(VALUES, Y)
    with dask.config.set(scheduler="synchronous"):
        for call in (
            lambda: EBClassifier(covariance="factor").fit(X, Y),
            lambda: plain.predict(X).compute(),
        ):
            with pytest.raises(ValueError, match="the sparse matrix is damaged"):
                call()


def test_duplicate_and_unsorted_indices_of_a_file_are_put_in_order(
    tmp_path: Path,
) -> None:
    X = sparse.csr_array(VALUES)
    twice = np.repeat(X.indices, 2)
    halves = np.repeat(X.data, 2) / 2
    np.savez(
        tmp_path / "a.npz",
        format=b"csr",
        data=halves[::-1],
        indices=twice[::-1],
        indptr=2 * X.nnz - 2 * X.indptr[::-1],
        shape=np.array(X.shape),
    )
    found = read(tmp_path / "a.npz").X
    assert found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), VALUES[::-1])


if __name__ == "__main__":
    child(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
