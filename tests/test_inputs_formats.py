"""The other formats: written by the libraries that own them, read back."""

from __future__ import annotations

import gzip
import sys
import tomllib
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anndata
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pytest
import zarr
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import ebda
from ebda import sizes
from ebda.cli import main
from ebda.inputs import read
from ebda.inputs.base import Block, Format, Package, Reading
from ebda.inputs.formats import FORMATS, find_format
from ebda.inputs.zarr_store import is_store

DATA = Path(__file__).parent / "data"
RNG = np.random.default_rng(5)
X = RNG.poisson(1.5, (9, 5)).astype(float)
X[:, 2] += 0.5
Y = np.array(["u", "v", "u", "v", "u", "v", "u", "v", "v"])
SAMPLES = np.array([f"cell{i}" for i in range(9)])
FEATURES = np.array(list("abcde"))


def annotated(values: Any) -> anndata.AnnData:
    obs = pd.DataFrame(
        {"type": pd.Categorical(Y), "batch": np.arange(9) % 2}, index=SAMPLES
    )
    made = anndata.AnnData(values, obs, pd.DataFrame(index=FEATURES))
    made.layers["doubled"] = values * 2
    return made


def write_h5ad(path: Path) -> None:
    annotated(X).write_h5ad(path)


def write_sparse_h5ad(path: Path) -> None:
    annotated(sparse.csc_matrix(X)).write_h5ad(path)


def write_anndata_zarr(path: Path) -> None:
    annotated(sparse.csr_matrix(X)).write_zarr(path)


def write_npz(path: Path) -> None:
    np.savez(path, X=X, type=Y, sample_id=SAMPLES, feature_names=FEATURES)


def write_zarr_group(path: Path) -> None:
    group = zarr.open_group(str(path), mode="w")
    group.create_array("data", data=X)
    group.create_array("type", data=Y)
    group.create_array("sample_names", data=SAMPLES)
    group.create_array("features", data=FEATURES)


def frame() -> pd.DataFrame:
    table = pd.DataFrame(X, SAMPLES, FEATURES)
    return table.assign(type=pd.Categorical(Y))


def write_pandas_parquet(path: Path) -> None:
    frame().to_parquet(path)


def write_polars_parquet(path: Path) -> None:
    pl.DataFrame(frame().reset_index(names="cell")).write_parquet(path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    ("ending", "write", "name"),
    [
        (".h5ad", write_h5ad, "AnnData"),
        (".h5", write_sparse_h5ad, "AnnData"),
        (".zarr", write_anndata_zarr, "Zarr"),
        (".npz", write_npz, "NumPy archive"),
        (".zarr", write_zarr_group, "Zarr"),
        (".parquet", write_pandas_parquet, "Parquet"),
        (".pq", write_polars_parquet, "Parquet"),
    ],
)
def test_every_format_gives_the_same_table(
    tmp_path: Path, ending: str, write: Callable[[Path], None], name: str
) -> None:
    path = tmp_path / f"data{ending}"
    write(path)
    table = read(path, target="type")
    values = table.X.toarray() if sparse.issparse(table.X) else table.X
    np.testing.assert_array_equal(values, X)
    assert table.format == name
    assert table.y is not None
    assert table.y.tolist() == Y.tolist()
    assert table.sample_names.tolist() == SAMPLES.tolist()
    assert table.feature_names.tolist() == FEATURES.tolist()
    assert ("sparse" in table.preview()) == sparse.issparse(table.X)


def test_layers_and_columns_of_obs(tmp_path: Path) -> None:
    path = tmp_path / "cells.h5ad"
    write_sparse_h5ad(path)
    table = read(path, target="batch", layer="doubled")
    np.testing.assert_array_equal(table.X.toarray(), 2 * X)
    assert isinstance(table.X, sparse.csr_array)
    assert table.class_counts == {0: 5, 1: 4}
    with pytest.raises(ValueError, match="no layer 'raw'; there are 'doubled'"):
        read(path, layer="raw")
    with pytest.raises(ValueError, match="did you mean 'batch'"):
        read(path, target="bach")
    bare = tmp_path / "bare.h5ad"
    anndata.AnnData(obs=pd.DataFrame(index=SAMPLES)).write_h5ad(bare)
    with pytest.raises(ValueError, match="there is no X; name a layer"):
        read(bare)


def test_repeated_genes_in_anndata(tmp_path: Path) -> None:
    path = tmp_path / "cells.h5ad"
    made = annotated(X)
    made.var_names = ["a", "b", "a", "b", "c"]
    made.write_h5ad(path)
    with pytest.raises(ValueError, match=r"2 feature names occur .* once: 'a', 'b'"):
        read(path)
    table = read(path, target="type", duplicates="number")
    assert table.feature_names.tolist() == ["a", "b", "a.1", "b.1", "c"]


def test_npz_as_in_the_shared_data(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=Y, y3=np.arange(9) % 3, source="somewhere")
    assert read(path).class_counts == {"u": 4, "v": 5}
    assert read(path, target="y3").class_counts == {0: 3, 1: 3, 2: 3}
    assert read(path).feature_names.tolist() == ["1", "2", "3", "4", "5"]
    np.savez(path, data=X.T, target=Y)
    turned = read(path)
    np.testing.assert_array_equal(turned.X, X)
    assert turned.orientation == "columns"
    np.savez(path, values_of_all=X.T)
    np.testing.assert_array_equal(read(path, orient="columns").X, X)


def test_npz_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "data.npz"
    np.savez(path, X=X, y=np.array(["u", None], dtype=object))
    with pytest.raises(ValueError, match="array 'y' holds Python objects"):
        read(path)
    np.savez(path, a=X, b=X)
    with pytest.raises(ValueError, match="no table of values named X or"):
        read(path)
    np.savez(path, X=np.array([["a", "b"]]))
    with pytest.raises(ValueError, match="holds <U1, not numbers"):
        read(path)


@pytest.mark.parametrize("orient", ["auto", "columns"])
def test_a_sparse_npz_with_labels_by_order(tmp_path: Path, orient: str) -> None:
    path, labels = tmp_path / "data.npz", tmp_path / "labels.csv"
    matrix = sparse.csr_matrix(X if orient == "auto" else X.T)
    sparse.save_npz(path, matrix)
    labels.write_text("type\n" + "\n".join(Y) + "\n")
    table = read(path, labels=labels, orient=orient)
    np.testing.assert_array_equal(table.X.toarray(), X)
    assert "by order, because the data have no names" in table.preview()
    labels.write_text("type\nu\nv\n")
    with pytest.raises(ValueError, match="has 2 labels, and the data 9 samples"):
        read(path, labels=labels, orient=orient)


def test_a_zarr_array_with_labels(tmp_path: Path) -> None:
    path, labels = tmp_path / "data.zarr", tmp_path / "labels.csv"
    zarr.create_array(str(path), data=X)
    assert is_store(path)
    labels.write_text("type\n" + "\n".join(Y) + "\n")
    table = read(path, labels=labels)
    np.testing.assert_array_equal(table.X, X)
    assert table.class_counts == {"u": 4, "v": 5}


@pytest.mark.parametrize("zero_based", [False, True])
def test_libsvm_keeps_the_indices_of_the_file(tmp_path: Path, zero_based: bool) -> None:
    path = tmp_path / "data.txt"
    values = X.copy()
    values[0, 0] = 3.0
    dump_svmlight_file(values, (Y == "v").astype(int), str(path), zero_based=zero_based)
    table = read(path)
    assert table.format == "LIBSVM"
    assert table.class_counts == {0: 4, 1: 5}
    np.testing.assert_array_equal(table.X.toarray(), values)
    first = 0 if zero_based else 1
    assert table.feature_names.tolist() == [str(first + j) for j in range(5)]
    assert table.absent_is_zero


def test_libsvm_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    path.write_text("spam 1:0.5\n")
    with pytest.raises(ValueError, match="not LIBSVM text"):
        read(path)


def test_parquet_leaves_out_what_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    table = pl.DataFrame({"a": [1, 4], "day": ["2020-01-01", "2020-01-02"]})
    table = table.with_columns(
        pl.col("day").str.to_date(), pl.Series("many", [[1], [2]]), y=pl.Series([0, 1])
    )
    table.write_parquet(path)
    found = read(path, target="y")
    assert found.feature_names.tolist() == ["a"]
    assert "left out columns of lists: 'many'" in found.preview()
    assert "left out 1 column of text: 'day'" in found.preview()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("12\t20", "12\t21"), "promises 21 samples"),
        (lambda text: text.replace("12\t20", "13\t20"), "promises 13 features"),
        (lambda text: text.replace("12\t20", "many\t20"), "should have 2 numbers"),
        (lambda text: text.replace("\t774\t", "\tx\t"), "'x' in row 'M23197_at'"),
        (lambda text: text.replace("#1.2", "#1.9"), "begins with #1.2 or #1.3"),
    ],
)
def test_gct_that_is_damaged(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    path = tmp_path / "data.gct"
    path.write_text(change((DATA / "genepattern.gct").read_text()))
    with pytest.raises(ValueError, match=r"data\.gct") as error:
        read(path)
    assert message in str(error.value)


def test_gct_1_3_promises_four_numbers(tmp_path: Path) -> None:
    path = tmp_path / "data.gct"
    path.write_text((DATA / "cmap_1.3.gct").read_text().replace("12\t20\t1\t2", "12"))
    with pytest.raises(ValueError, match="should have 4 numbers"):
        read(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xd0\xcf\x11\xe0 old", "an old Excel workbook: save it as .xlsx"),
        (b"\x80\x04K\x01.", "a Python pickle"),
        (b"RDX3\nX\n", "an R workspace"),
        (b"BZh91AY", "unpack it first"),
        (b"\x00\x01\x02\x03", "none of the formats"),
        (b"PAR1 and nothing", "cannot be read as Parquet"),
        (b"\x89HDF\r\n\x1a\n and nothing", "cannot be read as AnnData"),
        (b"PK\x03\x04 X.npy and nothing", "cannot be read as NumPy archive"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"data\.bin") as error:
        read(path)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_an_excel_workbook_a_folder_and_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.xlsx"
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(ValueError, match="none of the formats"):
        read(path)
    with pytest.raises(ValueError, match="is a folder, and no Zarr store, Parquet"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such file"):
        read(tmp_path / "nothing.csv")


def test_the_registry_knows_each_format_once() -> None:
    assert [form.name for form in FORMATS.values()] == list(FORMATS)
    assert find_format(DATA / "genepattern.gct").name == "GCT"
    assert find_format(DATA / "excel_de.csv").name == "text"


@pytest.mark.parametrize(
    ("package", "extra", "write", "ending"),
    [
        ("anndata", "anndata", write_h5ad, ".h5ad"),
        ("zarr", "zarr", write_zarr_group, ".zarr"),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_missing_package_is_said_with_its_extra(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    extra: str,
    write: Callable[[Path], None],
    ending: str,
) -> None:
    path = tmp_path / f"data{ending}"
    write(path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'ebda\[{extra}\]'"):
        read(path)


def test_the_extras_that_formats_need_exist() -> None:
    path = Path(__file__).parent.parent / "pyproject.toml"
    extras = tomllib.loads(path.read_text())["project"]["optional-dependencies"]
    for form in FORMATS.values():
        for package in form.packages:
            requirements = extras[package.extra]
            assert any(r.startswith(package.module) for r in requirements), form


def test_each_format_can_do_something() -> None:
    for form in FORMATS.values():
        assert form.load or form.open or form.labels
        assert form.line


@pytest.mark.parametrize(
    "text", ["1_1 1:0.5\n0 2:1\n", "1 1_0:0.5\n0 2:1\n", "1 1:1_0\n0 2:1\n"]
)
def test_libsvm_has_no_underscores_in_numbers(tmp_path: Path, text: str) -> None:
    path = tmp_path / "data.svm"
    path.write_text(text)
    with pytest.raises(ValueError, match="a number with an underscore"):
        read(path)
    path.write_text("1 1:0.5 # a_comment\n0 2:1\n")
    assert read(path).n_features == 2


# --- what a file may take up


def test_a_large_index_of_libsvm_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "data.svm"
    path.write_text("1 1:0.5 20000000:3\n0 2:1 2147483646:1\n")
    tracemalloc.start()
    try:
        table = read(path)
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert table.feature_names.tolist() == ["1", "2", "20000000", "2147483646"]
    np.testing.assert_array_equal(table.X.toarray(), [[0.5, 0, 3, 0], [0, 1, 0, 1]])


def write_large_gz(path: Path) -> None:
    path.write_bytes(gzip.compress(b"id,a,type\n" + b"s,0,u\n" * 200_000))


def write_large_npz(path: Path) -> None:
    np.savez_compressed(path, X=np.zeros((1000, 1000)))


def write_large_sparse_npz(path: Path) -> None:
    sparse.save_npz(path, sparse.coo_array(([1.0], ([0], [5])), (10**9, 10)))


def write_large_parquet(path: Path) -> None:
    pl.DataFrame({"a": np.zeros(10**6)}).write_parquet(path)


def write_large_zarr(path: Path) -> None:
    zarr.create_array(
        str(path), shape=(10**5, 10**5), chunks=(10**4, 10**4), dtype="f8"
    )


def write_many_chunks(path: Path) -> None:
    zarr.create_array(str(path), shape=(10**5, 10**5), chunks=(1, 1), dtype="i1")


def write_large_h5ad(path: Path) -> None:
    write_h5ad(path)
    with h5py.File(path, "r+") as file:
        file.create_dataset("uns/rest", (10**6, 10**6), "f8", chunks=(1000, 1000))


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("data.csv.gz", write_large_gz),
        ("data.npz", write_large_npz),
        ("sparse.npz", write_large_sparse_npz),
        ("data.parquet", write_large_parquet),
        ("data.zarr", write_large_zarr),
        ("many.zarr", write_many_chunks),
        ("data.h5ad", write_large_h5ad),
    ],
)
def test_what_takes_up_far_more_than_its_file_is_refused(
    tmp_path: Path, name: str, write: Callable[[Path], None]
) -> None:
    path = tmp_path / name
    write(path)
    tracemalloc.start()
    try:
        with (
            sizes.override(unpacked_bytes=10**5),
            pytest.raises(ValueError, match="--max-memory GB") as error,
        ):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 2e7
    finally:
        tracemalloc.stop()
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_refused_was_in_memory_once(tmp_path: Path) -> None:
    path, limit = tmp_path / "data.csv.gz", 5 * 10**7
    path.write_bytes(gzip.compress(b"id,a,type\ns,0,u\n" * (limit // 8), 1))
    tracemalloc.start()
    try:
        with (
            sizes.override(unpacked_bytes=limit),
            pytest.raises(ValueError, match=r"more than 0\.05 GB of mem"),
        ):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 1.4 * limit
    finally:
        tracemalloc.stop()


def test_the_limit_can_be_lifted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.npz"
    np.savez_compressed(path, X=np.zeros((100, 1000)), y=np.arange(100) % 2)
    with sizes.override(unpacked_bytes=10**5):
        assert read(path, max_memory=10**6).X.shape == (100, 1000)
        assert main(["fit", str(path), "--cv", "0"]) == 1
        assert "--max-memory" in capsys.readouterr().err
        command = ["fit", str(path), "--cv", "0", "--max-memory", "0.01"]
        assert main(command) == 1
        assert "--max-memory" not in capsys.readouterr().err
    # Whatever the file is, the word of the user counts.
    with pytest.raises(ValueError, match="more than 1e-07 GB"):
        read(DATA / "r_write_csv.csv", max_memory=100)
    with pytest.raises(SystemExit):
        main(["fit", str(path), "--max-memory", "0"])


def test_an_h5ad_with_a_false_shape_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "cells.h5ad", tmp_path / "m.ebda"
    write_sparse_h5ad(path)
    for shape in ([9, 8], [12, 5], [9, 4]):
        with h5py.File(path, "r+") as file:
            file["X"].attrs["shape"] = shape
        for way in ([], ["--on-disk"]):
            command = ["fit", str(path), "--target", "type", "--model", str(model)]
            assert main([*command, *way]) == 1
            said = capsys.readouterr().err
            assert "cells.h5ad" in said
            assert said.count("\n") == 1
            assert not model.exists()


# --- a format is one object: a toy


def load_toy(path: Path, how: Reading) -> Block:
    """One sample per line: its class, then its values."""
    lines = [line.split("~") for line in path.read_text().splitlines()[1:]]
    values = np.array([line[1:] for line in lines], dtype=np.float64)
    labels = [line[0] for line in lines]
    return Block(values, annotations={"class": labels}, default_target="class")


def open_toy(path: Path, how: Reading) -> Block:
    return replace(load_toy(path, how), default_target=None)


TOY = Format(
    "Toy",
    "a toy",
    lambda head, path: head.startswith(b"TOY~"),
    endings=(".toy",),
    load=load_toy,
    open=open_toy,
)


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    path = tmp_path / "data.txt"
    lines = ["TOY~1"]
    for i in range(20):
        values = rng.normal(3.0 * (i % 2), 1, 30).round(3)
        lines.append("~".join(["ab"[i % 2], *map(str, values)]))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_new_format_is_one_entry(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = str(tmp_path / "m.ebda"), tmp_path / "out.csv"
    with FORMATS.added(TOY):
        assert main(["fit", str(toy), "--cv", "2", "--model", model]) == 0
        printed = capsys.readouterr().out
        assert "data.txt (Toy)" in printed
        assert "classes         2 classes: a 10, b 10" in printed
        assert main(["predict", model, str(toy), "--out", str(out)]) == 0
        assert pl.read_csv(out)["predicted"].to_list() == 10 * ["a", "b"]
        # Others are still told from it, although text has no mark of its own.
        assert find_format(DATA / "excel_de.csv").name == "text"
        assert find_format(DATA / "genepattern.gct").name == "GCT"
        # By its ending too.
        (tmp_path / "x.toy.gz").write_text("")
        assert find_format(tmp_path / "x.toy.gz") is TOY
    assert ebda.load_record(model).data["format"] == "Toy"
    assert find_format(toy).name == "text"


def test_a_new_format_is_read_in_blocks(
    toy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with FORMATS.added(TOY):
        command = ["fit", str(toy), "--target", "class", "--on-disk"]
        assert main(command) == 0
        assert "read in blocks" in capsys.readouterr().out


def test_a_new_format_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with FORMATS.added(TOY):
        with pytest.raises(SystemExit):
            main(["fit", "--help"])
        assert "a Zarr store or a toy" in " ".join(capsys.readouterr().out.split())


def test_a_new_format_says_what_package_it_needs(toy: Path) -> None:
    missing = Package("no_such_package", "toys", "reading toys")
    with (
        FORMATS.added(replace(TOY, packages=(missing,))),
        pytest.raises(ImportError, match=r"pip install 'ebda\[toys\]'"),
    ):
        read(toy)


def test_labels_in_order_may_have_a_format_of_their_own(toy: Path) -> None:
    form = Format("Order", "labels", endings=(".order",), labels=lambda path: ["a"])
    with FORMATS.added(TOY), FORMATS.added(form):
        labels = toy.with_suffix(".order")
        labels.write_text("")
        with pytest.raises(ValueError, match="has 1 label, and the data 20 samples"):
            read(toy, labels=labels)
        with pytest.raises(ValueError, match="labels can be read for labels only"):
            read(labels)
