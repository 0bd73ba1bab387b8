"""Data on disk: the fit of the same data in memory, read once, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
import zarr
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from scipy import sparse

from ebda import EBClassifier
from ebda.baselines import GreenshteinPark, IndependenceRule
from ebda.data import OPENERS, InMemory, Labels, Opener, RowSamples, as_data
from ebda.data.disk import Block, open_parquet
from ebda.data.disk.kept import StripFile
from ebda.data.disk.passes import BlockedData, prefetched
from ebda.data.disk.source import grid
from ebda.data.disk.stores import ChunkedArray, MemoryMap
from ebda.sizes import override
from profiles import examples

N, P = 48, 300
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "diagonal": {"covariance": "diagonal"},
    "neighbours": {"covariance": "neighbours", "shrinkage": "mean"},
}
TOLERANCE = 1e-10


def with_factors(n_classes: int, n: int = N, p: int = P) -> tuple[Any, Any]:
    """Classes that differ in some features, with two factors common to all."""
    rng = np.random.default_rng(n_classes)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, p))
    X += rng.normal(size=(n, 2)) @ rng.normal(size=(2, p))
    X[:, : p // 10] += 1.2 * codes[:, None] * rng.choice([-1.0, 1.0], p // 10)
    X[:, 3] = 7.0  # constant
    return X, np.array(["ctrl", "mild", "severe"])[codes]


def in_order(n: int = N, p: int = P) -> tuple[Any, Any]:
    """Features in an order, each strongly correlated with the next."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    codes = np.arange(n) % 2
    X[:, 100:140] += 0.7 * codes[:, None]
    return X, codes


@pytest.fixture(scope="module")
def references() -> dict[tuple[str, int], EBClassifier]:
    found = {}
    for name, kwargs in SETTINGS.items():
        for k in (2, 3):
            X, y = in_order() if name == "neighbours" else with_factors(k)
            if name == "default" or k == 2:
                found[name, k] = EBClassifier(**kwargs).fit(X, y)
    assert found["default", 2].n_factors_ == found["default", 3].n_factors_ == 2
    assert any(c == "shrunken" for c, _ in found["default", 2].selection_.candidates)
    return found


@pytest.fixture
def small_blocks() -> Iterator[None]:
    """Blocks of some kilobytes, rows kept in a file, pages released."""
    with override(
        block_bytes=40_000,
        block_rows=10,
        run_bytes=800,
        kept_bytes=0,
        tile_elements=1000,
        reread_bytes=0,
        mapped_bytes=0,
    ):
        yield


def as_memmap(X: Any, folder: Path, order: str = "C") -> np.memmap:
    stored = np.memmap(
        folder / f"X-{order}.dat", X.dtype, mode="w+", shape=X.shape, order=order
    )
    stored[:] = X
    stored.flush()
    return stored


def as_zarr(X: Any, folder: Path, chunks: Any = (13, 50), **more: Any) -> Any:
    path = folder / "X.zarr"
    stored = zarr.create_array(
        path, shape=X.shape, chunks=chunks, dtype=X.dtype, overwrite=True, **more
    )
    stored[:] = X
    return stored


def as_hdf5(X: Any, folder: Path, chunks: Any = None) -> Any:
    return h5py.File(folder / "X.h5", "w").create_dataset("X", data=X, chunks=chunks)


def as_anndata(X: Any, folder: Path) -> Any:
    names = pd.Index([f"gene{j}" for j in range(X.shape[1])])
    obs = pd.DataFrame(index=[f"cell{i}" for i in range(X.shape[0])])
    anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=names)).write_h5ad(
        folder / "X.h5ad"
    )
    return anndata.read_h5ad(folder / "X.h5ad", backed="r")


def as_parquet(X: Any, folder: Path, n_files: int = 5) -> list[Path]:
    paths = []
    for k, rows in enumerate(np.array_split(np.arange(len(X)), n_files)):
        paths.append(folder / f"part{k}.parquet")
        columns = {f"gene{j}": X[rows, j] for j in range(X.shape[1])}
        columns["label"] = rows.astype(str)
        pq.write_table(pa.table(columns), paths[-1], row_group_size=4)
    return paths


STORES = {
    "memmap by rows": as_memmap,
    "memmap by columns": lambda X, folder: as_memmap(X, folder, "F"),
    "memmap of every other row": lambda X, folder: as_memmap(
        np.repeat(X, 2, axis=0), folder
    )[::2],
    "zarr": as_zarr,
    "zarr in shards": lambda X, folder: as_zarr(X, folder, (4, 25), shards=(12, 100)),
    "hdf5": lambda X, folder: as_hdf5(X, folder, (7, 33)),
    "hdf5 without chunks": as_hdf5,
    "anndata": as_anndata,
    "anndata's X": lambda X, folder: as_anndata(X, folder).X,
    "anndata CSR": lambda X, folder: as_anndata(sparse.csr_matrix(X), folder),
    "anndata CSC": lambda X, folder: as_anndata(sparse.csc_matrix(X), folder),
    "anndata CSR's X": lambda X, folder: as_anndata(sparse.csr_matrix(X), folder).X,
    "anndata in memory": lambda X, folder: as_anndata(X, folder).to_memory(),
    "anndata CSC in memory": lambda X, folder: as_anndata(
        sparse.csc_matrix(X), folder
    ).to_memory(),
    "parquet": lambda X, folder: open_parquet(as_parquet(X, folder), ["label"]),
}


def assert_same_fit(got: Any, want: Any) -> None:
    assert np.abs(want.coef_).max() > 0.01
    for name in ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=0, atol=TOLERANCE
        )
    np.testing.assert_array_equal(got.classes_, want.classes_)
    # A weight may be zero up to rounding, where neighbours cancel.
    visible = (np.abs(want.coef_) > TOLERANCE).any(axis=0)
    np.testing.assert_array_equal(got.selected_ & visible, visible)
    for name in ("atoms", "weights"):
        if hasattr(want.prior_, name):
            np.testing.assert_allclose(
                getattr(got.prior_, name), getattr(want.prior_, name), atol=1e-9
            )
    np.testing.assert_allclose(
        got.selection_.weight, want.selection_.weight, atol=TOLERANCE
    )


# Every setting for one store of each layout, the default for all.
CASES = [
    *((store, "default", 3) for store in STORES),
    *(
        (store, setting, 2)
        for store in ("memmap by rows", "memmap by columns", "zarr", "anndata CSR")
        for setting in SETTINGS
    ),
]


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("store", "setting", "n_classes"), CASES)
def test_every_store_gives_the_fit_of_memory(
    store: str, setting: str, n_classes: int, tmp_path: Path, references: Any
) -> None:
    X, y = in_order() if setting == "neighbours" else with_factors(n_classes)
    stored = STORES[store](X, tmp_path)
    got = EBClassifier(**SETTINGS[setting]).fit(stored, y)
    want = references[setting, n_classes]
    assert_same_fit(got, want)
    for method in ("decision_function", "transform", "predict_proba"):
        result = getattr(got, method)(stored)
        assert isinstance(result, np.ndarray)
        np.testing.assert_allclose(result, getattr(want, method)(X), atol=1e-9)
    np.testing.assert_array_equal(got.predict(stored), want.predict(X))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rule", [IndependenceRule, GreenshteinPark])
def test_other_rules_of_the_moments_take_them_too(rule: Any, tmp_path: Path) -> None:
    X, y = with_factors(2)
    got, want = rule().fit(as_zarr(X, tmp_path), y), rule().fit(X, y)
    np.testing.assert_allclose(got.coef_, want.coef_, atol=TOLERANCE)


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("store", ["memmap by rows", "zarr", "anndata CSR"])
def test_batches_of_stores_are_one_fit(
    store: str, tmp_path: Path, references: Any
) -> None:
    X, y = with_factors(3)
    model = EBClassifier()
    for k, rows in enumerate((slice(0, 20), slice(20, 30), slice(30, N))):
        (tmp_path / str(k)).mkdir()
        stored = STORES[store](X[rows], tmp_path / str(k))
        model.partial_fit(stored, y[rows], classes=["ctrl", "mild", "severe"])
    assert_same_fit(model, references["default", 3])


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chunks=st.tuples(st.integers(1, N), st.integers(1, P)),
    limit=st.integers(1, 300_000),
    enough=st.integers(1, 2 * N),
    seed=st.integers(0, 100),
)
def test_chunks_and_blocks_do_not_matter(
    chunks: tuple[int, int],
    limit: int,
    enough: int,
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    rng = np.random.default_rng(seed)
    X, y = with_factors(2)
    codes, weight = np.unique(y, return_inverse=True)[1], rng.integers(0, 4, N) / 2.0
    means, scale = rng.normal(size=(2, P)), rng.uniform(1, 2, P)
    stored = as_hdf5(X, tmp_path_factory.mktemp("chunks"), chunks)
    # A block of a few bytes would be a file access for each number.
    limit = max(limit, 8 * chunks[0] * chunks[1] // 3, 3000)
    labels = Labels(codes, 2, weight)
    with override(block_bytes=limit, block_rows=enough):
        got = BlockedData(ChunkedArray(stored)).summarise(labels, keep=True)
    want = InMemory(X).summarise(labels, keep=True)
    for field in ("counts", "means", "centred_squares"):
        np.testing.assert_allclose(
            getattr(got[0], field), getattr(want[0], field), rtol=1e-11, atol=1e-11
        )
    assert got[1] is not None
    assert want[1] is not None
    np.testing.assert_array_equal(got[1].number, want[1].number)
    np.testing.assert_allclose(
        got[1].gram(means, scale), want[1].gram(means, scale), rtol=1e-10, atol=1e-9
    )
    coef = rng.normal(size=(3, P))
    np.testing.assert_allclose(
        BlockedData(ChunkedArray(stored)).scores(coef, np.arange(3.0)),
        X @ coef.T + np.arange(3.0),
        rtol=1e-10,
        atol=1e-9,
    )
    stored.file.close()


@given(
    shape=st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    chunk=st.tuples(st.integers(1, 6000), st.integers(1, 6000)),
    by_column=st.booleans(),
    limit=st.integers(1_000, 1_000_000),
)
def test_a_grid_covers_everything_once_in_blocks_of_bounded_size(
    shape: tuple[int, int], chunk: tuple[int, int], by_column: bool, limit: int
) -> None:
    with override(block_bytes=limit):
        blocks = grid(shape, 1, chunk, by_column)
    covered = sum(
        (b.rows.stop - b.rows.start) * (b.cols.stop - b.cols.start) for b in blocks
    )
    assert covered == shape[0] * shape[1]
    assert len({(b.rows.start, b.cols.start) for b in blocks}) == len(blocks)
    size = min(chunk[0], shape[0]) * min(chunk[1], shape[1])
    for b in blocks:
        rows, cols = b.rows.stop - b.rows.start, b.cols.stop - b.cols.start
        assert rows * cols <= max(limit, min(size, 4 * limit))
        assert b.rows.stop <= shape[0]
        assert b.cols.stop <= shape[1]


class Counting:
    """Stands for a store, and counts what is read."""

    def __init__(self, X: Any, chunks: tuple[int, int]) -> None:
        self.X, self.chunks = X, chunks
        self.shape, self.dtype = X.shape, X.dtype
        self.times = np.zeros(X.shape, dtype=int)

    def __getitem__(self, key: Any) -> Any:
        self.times[key] += 1
        return self.X[key]


@pytest.mark.usefixtures("small_blocks")
def test_a_fit_with_factors_and_folds_reads_every_value_once(references: Any) -> None:
    X, y = with_factors(2)
    stored = Counting(X, (5, 60))
    counting = Opener(
        "counting",
        "a store that counts what is read",
        Counting.__module__,
        lambda X: BlockedData(ChunkedArray(X)),
    )
    with OPENERS.added(counting):
        model = EBClassifier().fit(stored, y)
        assert_same_fit(model, references["default", 2])
        assert (stored.times == 1).all()
        model.predict(stored)
    assert (stored.times == 2).all()


@pytest.mark.usefixtures("small_blocks")
def test_of_many_rows_the_same_are_kept(tmp_path: Path) -> None:
    X, y = with_factors(2, n=1500, p=30)
    stored = as_zarr(X, tmp_path, (100, 30))
    codes = (y == "mild").astype(int)
    _, got = BlockedData(ChunkedArray(stored)).summarise(Labels(codes, 2), keep=True)
    want = RowSamples.of(X, codes, None).kept()
    assert got is not None
    assert isinstance(got.X, StripFile)
    np.testing.assert_array_equal(got.number, want.number)
    np.testing.assert_array_equal(got.X[got.rows], X[want.rows])
    np.testing.assert_array_equal(got.copy().X, X[want.rows])


def test_rows_of_a_map_are_read_again_unless_they_are_short(tmp_path: Path) -> None:
    X, _ = with_factors(2, n=1500, p=30)
    by_columns, by_rows = (as_memmap(X, tmp_path, order) for order in "FC")
    assert MemoryMap(by_columns).reference(1024) is by_columns
    assert MemoryMap(by_rows).reference(1024) is None
    assert MemoryMap(by_rows).reference(60) is by_rows


@pytest.mark.slow
def test_the_fit_of_many_rows_is_that_of_memory(tmp_path: Path) -> None:
    X, y = with_factors(2, n=1100, p=40)
    want = EBClassifier(shrinkage="mean").fit(X, y)
    for stored in (as_memmap(X, tmp_path), as_zarr(X, tmp_path, (200, 60))):
        assert_same_fit(EBClassifier(shrinkage="mean").fit(stored, y), want)


@pytest.mark.slow
def test_weights_go_with_their_rows(tmp_path: Path) -> None:
    X, y = with_factors(2)
    weight = np.arange(N) % 3 / 1.0
    want = EBClassifier().fit(X, y, sample_weight=weight)
    got = EBClassifier().fit(as_zarr(X, tmp_path), y, sample_weight=weight)
    assert_same_fit(got, want)


MEMORY = """
import sys
import numpy as np
from ebda import EBClassifier
from ebda.datasets import make_two_class

def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))

kind, path, n, p = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
if kind == "zarr":
    import zarr
    X = zarr.open_array(path, mode="r")
else:
    X = np.memmap(path, np.float32, mode="r", shape=(n, p))
y = np.arange(n) % 2
sim = make_two_class(n_features=300, random_state=0)
EBClassifier(covariance="factor", shrinkage="mean").fit(sim.data, sim.target)
before = peak()
EBClassifier(covariance="factor", shrinkage="mean").fit(X, y).predict(X)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc for the peak")
@pytest.mark.parametrize("kind", ["memmap", "zarr"])
def test_memory_of_a_fit_is_much_smaller_than_the_data(
    kind: str, tmp_path: Path
) -> None:
    n, p = 600, 128_000  # 307 MB, all of which is looked at again
    path = tmp_path / "X"
    row = np.random.default_rng(0).standard_normal((100, p), dtype=np.float32)
    if kind == "zarr":
        X = zarr.create_array(
            path, shape=(n, p), chunks=(100, 16_000), dtype="f4", compressors=None
        )
    else:
        X = np.memmap(path, np.float32, mode="w+", shape=(n, p))
    for start in range(0, n, 100):
        X[start : start + 100] = row[:, np.random.default_rng(start).permutation(p)]
    del X
    result = subprocess.run(
        [sys.executable, "-c", MEMORY, kind, str(path), str(n), str(p)],
        capture_output=True,
        text=True,
        check=True,
    )
    # Two blocks of 16 MiB and their copies, a Gram matrix, some 30 vectors of 1 MB:
    # 100 MB. Beside other work pages of up to five more blocks have been seen.
    assert int(result.stdout) * 1024 < 220e6


def test_the_next_block_is_read_while_one_is_summed() -> None:
    started = [threading.Event() for _ in range(4)]
    names: set[str] = set()

    def read(block: Block) -> int:
        names.add(threading.current_thread().name)
        started[block.rows.start].set()
        return block.rows.start

    blocks = [Block(slice(k, k + 1), slice(0, 1)) for k in range(4)]
    reading = prefetched(SimpleNamespace(read=read), blocks)  # type: ignore[arg-type]
    for k, (block, value) in enumerate(reading):
        assert block is blocks[k]
        assert value == k
        if k < 3:  # the next is being read, though this one is still in hand
            assert started[k + 1].wait(timeout=10)
        if k < 2:  # and no third
            assert not started[k + 2].wait(timeout=0.05)
    assert k == 3
    assert threading.current_thread().name not in names
    assert list(prefetched(SimpleNamespace(read=read), [])) == []  # type: ignore[arg-type]


def test_an_error_of_the_reader_reaches_the_caller() -> None:
    def read(block: Block) -> None:
        raise OSError("disk on fire")

    blocks = [Block(slice(0, 1), slice(0, 1))] * 3
    with pytest.raises(OSError, match="disk on fire"):
        list(prefetched(SimpleNamespace(read=read), blocks))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("store", ["memmap by rows", "zarr", "anndata CSR", "parquet"])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_nan_is_named_by_row_and_column(
    store: str, value: float, tmp_path: Path
) -> None:
    X, y = with_factors(2)
    X[31, 237] = value
    stored = STORES[store](X, tmp_path)
    named = "" if store in ("memmap by rows", "zarr") else r" \('gene237'\)"
    kind = "is NaN " if np.isnan(value) else ""
    expected = rf"in column 237{named} \(the first {kind}in row 31\)"
    # The first two take missing values, and no infinity.
    first, rule = EBClassifier(), IndependenceRule()
    if np.isnan(value):
        first = rule = GreenshteinPark()
    with pytest.raises(ValueError, match=expected):
        first.fit(stored, y)
    if named:
        rule.fit(pd.DataFrame(with_factors(2)[0]).add_prefix("gene"), y)
    else:
        rule.fit(with_factors(2)[0], y)
    with pytest.raises(ValueError, match=expected):
        rule.predict(stored)


def test_values_too_large_are_named(tmp_path: Path) -> None:
    X, y = with_factors(2)
    model = EBClassifier().fit(X, y)
    X[:, 5] = 1.5e308
    X[::3, 5] = 1.6e308
    for data in (X, as_zarr(X, tmp_path)):
        with pytest.raises(ValueError, match="too large for their squares in column 5"):
            EBClassifier().fit(data, y)
    model.coef_[:, 5] = 1e9
    for data in (X, as_zarr(X, tmp_path)):
        with pytest.raises(ValueError, match="score of row 0 overflows"):
            model.predict(data)


@pytest.mark.slow
def test_features_are_known_by_name(tmp_path: Path) -> None:
    X, y = with_factors(2)
    stored = as_anndata(X, tmp_path)
    model = EBClassifier().fit(stored, y)
    assert model.feature_names_in_[7] == "gene7"
    cells = [f"cell{i}" for i in range(N)]
    table = pd.DataFrame(X, columns=model.feature_names_in_, index=cells)
    np.testing.assert_array_equal(model.predict(table), model.predict(stored))
    other = anndata.AnnData(table.rename(columns={"gene7": "gene7b"}))
    with pytest.raises(ValueError, match=r"not in adata\.var_names: 'gene7'"):
        model.predict(other)
    backwards = anndata.AnnData(table[table.columns[::-1]])
    np.testing.assert_array_equal(model.predict(backwards), model.predict(stored))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(as_memmap(X, tmp_path))
    twice = anndata.AnnData(table)
    twice.var_names = ["gene0", *twice.var_names[:-1]]
    with pytest.raises(ValueError, match=r"duplicated feature names: 'gene0' \(2"):
        EBClassifier().fit(twice, y)
    unnamed = EBClassifier().fit(X, y)
    np.testing.assert_array_equal(unnamed.predict(stored), model.predict(stored))
    # A second fit without names forgets them.
    assert not hasattr(model.fit(as_memmap(X, tmp_path), y), "feature_names_in_")


@pytest.mark.slow
def test_anndata_of_other_kinds(tmp_path: Path) -> None:
    X, y = with_factors(2)
    want = EBClassifier(covariance="diagonal").fit(X, y)
    in_memory = anndata.AnnData(sparse.csr_matrix(X))
    part = as_anndata(X, tmp_path)[:, :200]
    got = EBClassifier(covariance="diagonal").fit(part, y)
    half = EBClassifier(covariance="diagonal").fit(X[:, :200], y)
    np.testing.assert_allclose(got.coef_, half.coef_, atol=TOLERANCE)
    got = EBClassifier(covariance="diagonal").fit(in_memory, y)
    np.testing.assert_allclose(got.coef_, want.coef_, atol=TOLERANCE)
    with pytest.raises(ValueError, match="the AnnData object has no X"):
        EBClassifier().fit(anndata.AnnData(obs=pd.DataFrame(index=list("abc"))), y)


@pytest.mark.slow
def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    X, y = with_factors(2)
    stored = as_zarr(X, tmp_path)
    with pytest.raises(ValueError, match="X has 48 samples but y has 47 labels"):
        EBClassifier().fit(stored, y[1:])
    model = EBClassifier().fit(stored, y)
    with pytest.raises(ValueError, match="X has 299 features, but EBClassifier"):
        model.predict(as_memmap(X[:, 1:], tmp_path))
    flat = zarr.create_array(tmp_path / "flat", shape=(5,), dtype="f8")
    with pytest.raises(ValueError, match="Array has 1 dimension; X must have tw"):
        EBClassifier().fit(flat, y[:5])
    empty = zarr.create_array(tmp_path / "empty", shape=(5, 0), dtype="f8")
    with pytest.raises(ValueError, match="5 samples and 0 features"):
        EBClassifier().fit(empty, y[:5])
    words = zarr.create_array(tmp_path / "words", shape=(5, 2), dtype="c16")
    with pytest.raises(ValueError, match="complex128, which are no numbers"):
        EBClassifier().fit(words, y[:5])
    missing = [None, *y[1:]]
    with pytest.raises(ValueError, match="1 missing label"):
        EBClassifier().fit(stored, missing)


@override(kept_bytes=0)
def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    X, y = with_factors(2)
    stored = as_zarr(X, tmp_path)
    with pytest.raises(OSError, match=r"48 rows of 300 features.*set TMPDIR"):
        EBClassifier().fit(stored, y)
    # What the error says to use instead.
    EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False).fit(
        stored, y
    )


@override(mapped_bytes=0)
def test_private_maps_keep_what_was_written_to_them(tmp_path: Path) -> None:
    X, y = with_factors(2)
    as_memmap(X, tmp_path)
    path = tmp_path / "X-C.dat"
    changed = np.memmap(path, X.dtype, mode="c", shape=X.shape)
    changed[:, 11] = -X[:, 11]
    model = EBClassifier(covariance="diagonal").fit(changed, y)
    np.testing.assert_array_equal(changed[:, 11], -X[:, 11])
    want = EBClassifier(covariance="diagonal").fit(np.array(changed), y)
    np.testing.assert_allclose(model.coef_, want.coef_, atol=TOLERANCE)


def test_parquet_of_other_kinds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = with_factors(2)
    paths = as_parquet(X, tmp_path)
    table = open_parquet(tmp_path, exclude=["label"])
    assert table.shape == X.shape
    assert table.column("label").tolist() == [str(i) for i in range(N)]
    with pytest.raises(ValueError, match="no column 'y'"):
        table.column("y")
    with pytest.raises(ValueError, match=r"not numeric: 'label' \(string\); leave"):
        open_parquet(paths)
    with pytest.raises(ValueError, match=r"do not have: \['other'\]"):
        open_parquet(paths[0], exclude=["other"])
    # A dataset of pyarrow itself, of whole numbers with a gap.
    counts = {f"g{j}": pa.array([3, 1, 4, 1, 5, 9, 2, 6 + j]) for j in range(3)}
    pq.write_table(pa.table(counts), tmp_path / "whole.parquet")
    whole = pyarrow.dataset.dataset(tmp_path / "whole.parquet")
    codes = np.arange(8) % 2
    want = IndependenceRule().fit(pd.DataFrame(counts), codes)
    got = IndependenceRule().fit(whole, codes)
    np.testing.assert_allclose(got.coef_, want.coef_, atol=TOLERANCE)
    counts["g1"] = pa.array([3, 1, 4, None, 5, 9, 2, 6])
    pq.write_table(pa.table(counts), tmp_path / "gap.parquet")
    gap = open_parquet(tmp_path / "gap.parquet")
    with pytest.raises(ValueError, match=r"column 1 \('g1'\) \(the first is NaN in ro"):
        GreenshteinPark().fit(gap, codes)
    frame = pd.DataFrame({name: column.to_pandas() for name, column in counts.items()})
    want = IndependenceRule().fit(frame, codes)
    got = IndependenceRule().fit(gap, codes)
    np.testing.assert_allclose(got.coef_, want.coef_, atol=TOLERANCE)
    nothing = open_parquet(tmp_path / "gap.parquet", exclude=["g0", "g1", "g2"])
    with pytest.raises(ValueError, match="8 samples and 0 features"):
        IndependenceRule().fit(nothing, codes)
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"pip install 'ebda\[parquet\]'"):
        open_parquet(paths)


@override(block_bytes=8 * 500 * 3)
def test_large_row_groups_are_read_by_columns(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(500, 10))
    columns = {f"g{j}": X[:, j] for j in range(10)}
    pq.write_table(pa.table(columns), tmp_path / "X.parquet")
    table = open_parquet(tmp_path / "X.parquet")
    assert [b.cols.stop - b.cols.start for b in table.plan()] == [3, 3, 3, 1]
    for block in table.plan():
        np.testing.assert_array_equal(table.read(block), X[block.rows, block.cols])


@pytest.mark.parametrize("X", [[[1.0]], np.ones((2, 2)), pa.table({"a": [1]})])
def test_what_is_in_memory_is_left_to_scikit_learn(X: Any) -> None:
    assert as_data(X) is None


def batches(X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    for rows in np.array_split(np.arange(len(X)), 3):
        yield X[rows], y[rows]


@pytest.mark.slow
def test_any_iterable_of_blocks_goes_through_partial_fit(references: Any) -> None:
    X, y = with_factors(2)
    model = EBClassifier()
    for block, labels in batches(X, y):
        model.partial_fit(block, labels, classes=["ctrl", "mild"])
    assert_same_fit(model, references["default", 2])
