"""Each implementation of `Data` and `Samples` passes the same check.

A new one is one line in `IMPLEMENTATIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anndata
import array_api_strict as strict
import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from conformance import Rows, check_data, random_rows
from ebda.data import OPENERS, InMemory, as_data, on_device
from ebda.data.disk import open_parquet
from ebda.sizes import override
from profiles import DEFAULT_EXAMPLES, examples

Rng = np.random.Generator


def chunks(X: np.ndarray, rng: Rng) -> tuple[int, int]:
    return tuple(int(rng.integers(1, size + 1)) for size in X.shape)  # type: ignore[return-value]


def cuts(size: int, rng: Rng) -> tuple[int, ...]:
    """Lengths of chunks, some of them empty.

    Not of a single row: Dask itself takes (0, 1) for a length to be broadcast.
    """
    if size == 1:
        return (1,)
    edges = np.sort(rng.integers(0, size + 1, rng.integers(0, 4)))
    return tuple(int(k) for k in np.diff([0, *edges, size]))


def memory_map(X: np.ndarray, folder: Path, order: str) -> Any:
    stored = np.memmap(folder / "X.dat", float, "w+", shape=X.shape, order=order)
    stored[:] = X
    stored.flush()
    return stored


def zarr_array(X: np.ndarray, folder: Path, rng: Rng) -> Any:
    return zarr.create_array(folder / "X.zarr", data=X, chunks=chunks(X, rng))


def hdf5(X: np.ndarray, folder: Path, chunks: tuple[int, int] | None) -> Any:
    return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X, chunks=chunks)


def ann_data(X: Any, folder: Path) -> Any:
    anndata.AnnData(X).write_h5ad(folder / "X.h5ad")
    return anndata.read_h5ad(folder / "X.h5ad", backed="r")


def parquet(X: np.ndarray, folder: Path, rng: Rng) -> list[Path]:
    paths = []
    for k, rows in enumerate(np.array_split(X, rng.integers(1, 4))):
        paths.append(folder / f"{k}.parquet")
        table = pa.table({f"x{j}": column for j, column in enumerate(rows.T)})
        pq.write_table(table, paths[-1], row_group_size=int(rng.integers(1, 9)))
    return paths


def dask_array(X: np.ndarray, rng: Rng) -> Any:
    return da.from_array(X, tuple(cuts(size, rng) for size in X.shape))


def torch(X: np.ndarray) -> Any:
    return pytest.importorskip("torch").from_numpy(X)


@dataclass(frozen=True)
class Implementation:
    """How X is made from an array, in a folder, with chunks of any size.

    `share` is how many of the usual examples it gets: those of Dask take long.
    """

    make: Callable[[np.ndarray, Path, Rng], Any]
    can_copy: bool = True
    share: float = 1.0
    holds_nan: bool = True


LAZY: dict[str, Any] = {"can_copy": False, "share": 0.4}

IMPLEMENTATIONS = {
    "ndarray": Implementation(lambda X, _, rng: np.ascontiguousarray(X)),
    "ndarray by columns": Implementation(lambda X, _, rng: np.asfortranarray(X)),
    "float32": Implementation(lambda X, _, rng: X.astype(np.float32)),
    "int": Implementation(lambda X, _, rng: X.astype(int), holds_nan=False),
    "CSR": Implementation(lambda X, _, rng: sparse.csr_array(X)),
    "CSC": Implementation(lambda X, _, rng: sparse.csc_array(X)),
    "CSR matrix": Implementation(lambda X, _, rng: sparse.csr_matrix(X)),
    "memory map": Implementation(lambda X, at, rng: memory_map(X, at, "C")),
    "memory map by columns": Implementation(lambda X, at, rng: memory_map(X, at, "F")),
    "Zarr": Implementation(zarr_array),
    "HDF5": Implementation(lambda X, at, rng: hdf5(X, at, chunks(X, rng))),
    "HDF5 without chunks": Implementation(lambda X, at, rng: hdf5(X, at, None)),
    "AnnData": Implementation(lambda X, at, rng: ann_data(X, at)),
    "AnnData CSR": Implementation(
        lambda X, at, rng: ann_data(sparse.csr_matrix(X), at)
    ),
    "AnnData CSC": Implementation(
        lambda X, at, rng: ann_data(sparse.csc_matrix(X), at)
    ),
    "Parquet": Implementation(lambda X, at, rng: open_parquet(parquet(X, at, rng))),
    "Arrow": Implementation(
        lambda X, at, rng: pyarrow.dataset.dataset(list(map(str, parquet(X, at, rng))))
    ),
    "Dask": Implementation(lambda X, _, rng: dask_array(X, rng), **LAZY),
    "Dask CSR": Implementation(
        lambda X, _, rng: dask_array(X, rng).map_blocks(
            sparse.csr_array, meta=np.empty((0, 0))
        ),
        **LAZY,
    ),
    "Dask data frame": Implementation(
        lambda X, _, rng: dd.from_pandas(
            pd.DataFrame(X).add_prefix("x"), npartitions=int(rng.integers(1, 4))
        ),
        **LAZY,
    ),
    "array API": Implementation(
        lambda X, _, rng: strict.asarray(X, device=strict.Device("device1"))
    ),
    "array API float32": Implementation(
        lambda X, _, rng: strict.asarray(X.astype(np.float32))
    ),
    "array API int": Implementation(
        lambda X, _, rng: strict.asarray(X.astype(int)), holds_nan=False
    ),
    "through a device": Implementation(
        lambda X, _, rng: on_device(X, "device1", "array_api_strict")
    ),
    "PyTorch": Implementation(lambda X, _, rng: torch(X)),
    "PyTorch bfloat16": Implementation(
        lambda X, _, rng: torch(X).to(import_module("torch").bfloat16)
    ),
}

SLOW = {"Zarr", "AnnData CSR", "AnnData CSC"}
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
    for name in IMPLEMENTATIONS
]


@contextmanager
def any_sizes(rows: Rows, rng: Rng) -> Iterator[None]:
    """Tiles, blocks, pieces and kept samples of any size, from one value up."""
    n, p = rows.X.shape
    total = n * p
    with override(
        tile_elements=int(rng.choice([1, rng.integers(1, total + 1), 1 << 19])),
        tile_rows=int(rng.integers(1, n + 1)),
        sparse_elements=int(rng.integers(1, total + 1)),
        device_elements=int(rng.choice([1, rng.integers(1, total + 1), 1 << 19])),
        score_elements=int(rng.integers(1, total + 1)),
        kept_samples=int(rng.integers(1, n + 1)),
        most_kept=1,
        kept_per_class=int(rng.integers(1, 4)),
        persisted_features=int(rng.choice([0, p])),
        persisted_values=0,
        mapped_bytes=int(rng.choice([0, 1 << 25])),
        block_bytes=int(rng.integers(8, 8 * total + 1)),
        block_rows=int(rng.integers(1, n + 1)),
        run_bytes=int(rng.integers(8, 8 * total + 1)),
        reread_bytes=int(rng.choice([0, 1 << 14])),
        kept_bytes=int(rng.choice([0, 1 << 25])),
        piece_bytes=int(rng.integers(8, 8 * total + 1)),
        local_bytes=int(rng.integers(8, 8 * total + 1)),
    ):
        yield


@pytest.mark.parametrize("name", NAMES)
def test_all_sums_are_those_of_numpy(name: str, tmp_path: Path) -> None:
    check_sums_of(IMPLEMENTATIONS[name], tmp_path, missing=False)


HOLD_NAN = [name for name in NAMES if IMPLEMENTATIONS[str(name.values[0])].holds_nan]


@pytest.mark.parametrize("name", HOLD_NAN)
def test_missing_values_count_nothing_in_any_sum(name: str, tmp_path: Path) -> None:
    check_sums_of(IMPLEMENTATIONS[name], tmp_path, missing=True)


def check_sums_of(made: Implementation, tmp_path: Path, missing: bool) -> None:
    share = made.share * (0.3 if missing else 1.0)

    @examples(share * DEFAULT_EXAMPLES)
    @given(seed=st.integers(0, 2**32 - 1))
    def check(seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = random_rows(rng, missing)
        with (
            TemporaryDirectory(dir=tmp_path) as folder,
            dask.config.set(scheduler="synchronous"),
            any_sizes(rows, rng),
        ):
            stored = made.make(rows.X, Path(folder), rng)
            check_data(as_data(stored) or InMemory(stored), rows, rng, made.can_copy)

    check()


def test_of_many_samples_the_same_are_kept(tmp_path: Path) -> None:
    """With the sizes that users have, and classes that are rare."""
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (1500, 5)).astype(float)
    codes = (np.arange(1500) % 700 == 0) + (np.arange(1500) % 3 == 1) * np.intp(2)
    rows = Rows(X, np.minimum(codes, 2), np.arange(1500) % 5 / 2, np.arange(1500))
    with dask.config.set(scheduler="synchronous"):
        for name in ("ndarray", "CSC", "memory map", "Zarr", "Dask", "array API"):
            (tmp_path / name).mkdir()
            stored = IMPLEMENTATIONS[name].make(X, tmp_path / name, rng)
            data = as_data(stored) or InMemory(stored)
            check_data(data, rows, rng, IMPLEMENTATIONS[name].can_copy)


def test_every_opener_is_documented() -> None:
    page = Path(__file__).parents[1] / "docs" / "howto" / "large-data.md"
    for opener in OPENERS.values():
        assert opener.line in page.read_text().replace("`", ""), opener.name
