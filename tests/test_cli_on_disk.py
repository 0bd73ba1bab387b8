"""``ebda fit`` on data that are read in blocks: the model is that of memory."""

from __future__ import annotations

from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import zarr

import ebda
from ebda import sizes
from ebda.cli import main
from ebda.inputs import on_disk, read
from ebda.inputs.formats import find_format

N, P = 48, 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same data in every store that can be read in blocks."""
    path = tmp_path_factory.mktemp("stores")
    rng = np.random.default_rng(0)
    y = np.where(np.arange(N) % 3 == 0, "ill", "well")
    X = rng.normal(size=(N, P)) + rng.normal(size=(N, 1)) * rng.normal(size=P)
    X[y == "ill", :15] += 1.5
    names = [f"g{j}" for j in range(P)]
    np.save(path / "x.npy", X)
    pd.DataFrame({"state": y}).to_csv(path / "y.csv", index=False)
    obs = pd.DataFrame({"state": y, "age": 1}, index=[f"s{i}" for i in range(N)])
    matrix = anndata.AnnData(X, obs=obs, var=pd.DataFrame(index=names))
    matrix.layers["other"] = 2 * X
    matrix.write_h5ad(path / "x.h5ad")
    obs.reset_index(names="sample").iloc[::-1].to_csv(path / "obs.csv", index=False)
    frame = pd.DataFrame(X, columns=names).assign(state=y)
    (path / "parts").mkdir()
    frame[:20].to_parquet(path / "parts" / "a.parquet")
    frame[20:].to_parquet(path / "parts" / "b.parquet")
    frame.to_parquet(path / "x.parquet")
    store = zarr.create_array(
        path / "x.zarr", shape=X.shape, dtype="f8", chunks=(9, 70)
    )
    store[:] = X
    group = zarr.create_group(path / "group.zarr")
    group.create_array("values", shape=(2, 2), dtype="f8")
    return path


def fit(folder: Path, tmp_path: Path, *arguments: str) -> ebda.EBClassifier:
    model = tmp_path / "m.ebda"
    places = [str(folder / a) if (folder / a).exists() else a for a in arguments]
    assert main(["fit", *places, "--model", str(model), "--quiet"]) == 0
    loaded: ebda.EBClassifier = ebda.load(model)
    return loaded


STORES = [
    ("x.npy", "--labels", "y.csv"),
    ("x.zarr", "--labels", "y.csv"),
    ("x.h5ad", "--target", "state"),
    ("x.h5ad", "--labels", "obs.csv", "--target", "state"),
    ("x.parquet", "--target", "state"),
    ("parts", "--target", "state"),
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", STORES, ids=lambda a: " ".join(a))
def test_the_model_is_that_of_memory(
    folder: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    model = fit(folder, tmp_path, *arguments, "--on-disk")
    want = fit(folder, tmp_path, "x.h5ad", "--target", "state", "--cv", "0")
    np.testing.assert_allclose(model.coef_, want.coef_, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, want.intercept_, atol=1e-10)
    assert model.classes_.tolist() == ["ill", "well"]
    named = arguments[0] not in ("x.npy", "x.zarr")
    assert model.feature_names_in_[1] == ("g1" if named else "2")


@pytest.mark.slow
def test_large_data_are_read_in_blocks_unasked(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    h5ad = str(folder / "x.h5ad")
    assert main(["fit", h5ad, "--target", "state", "--cv", "0"]) == 0
    assert "in blocks" not in capsys.readouterr().out
    model = str(tmp_path / "m.ebda")
    with sizes.override(on_disk_percent=0):
        assert main(["fit", h5ad, "--target", "state", "--model", model]) == 0
        # Text cannot be read in blocks, however large it is.
        assert not on_disk.is_large(folder / "y.csv")
    said = capsys.readouterr().out
    assert "read in blocks, not into memory" in said
    assert "The error is not known" in said
    record = ebda.load_record(model)
    assert record.data["fitted_to"] == record.data["evaluated_on"]


def test_a_system_that_does_not_tell_its_memory(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown)
    assert not on_disk.is_large(folder / "x.npy")


@pytest.mark.slow
def test_a_layer_of_anndata(folder: Path, tmp_path: Path) -> None:
    arguments = ("x.h5ad", "--target", "state", "--on-disk")
    plain = fit(folder, tmp_path, *arguments)
    layer = fit(folder, tmp_path, *arguments, "--layer", "other")
    np.testing.assert_allclose(2 * layer.coef_, plain.coef_, rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x.npy",), "say with --target"),
        (("x.h5ad",), "there are 'state', 'age'"),
        (("x.npy", "--target", "state"), "an array without columns; give --labels"),
        (("x.h5ad", "--target", "stat"), "nothing is named 'stat'"),
        (("x.h5ad", "--target", "state", "--layer", "no"), "there is no layer 'no'"),
        (
            ("y.csv", "--target", "state"),
            "cannot be read in blocks; what can",
        ),
        (("group.zarr", "--labels", "y.csv"), "name the array in it, one of"),
        (("nothing.npy", "--target", "state"), "there is no such file"),
        (("x.npy", "--labels", "y.csv", "--log"), "--log cannot be used"),
        (
            ("x.npy", "--labels", "y.csv", "--orient", "columns"),
            "--orient columns cannot be used",
        ),
    ],
)
def test_what_cannot_be_done_is_said(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    places = [str(folder / a) if (folder / a).exists() else a for a in arguments]
    assert main(["fit", *places, "--on-disk"]) == 1
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert not said.out


def test_every_sample_needs_a_label(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = pd.read_csv(folder / "y.csv")
    labels.loc[3, "state"] = None
    few = tmp_path / "few.csv"
    labels.assign(row=range(N)).to_csv(few, index=False)
    arguments = ["fit", str(folder / "x.npy"), "--labels", str(few)]
    assert main([*arguments, "--target", "state", "--on-disk"]) == 1
    assert "1 of 48 samples have no label" in capsys.readouterr().err


def test_a_folder_without_parquet_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder, and no Zarr store"):
        on_disk.open_table(tmp_path, "type")
    (tmp_path / "part.parquet").write_bytes(b"PAR1")
    assert find_format(tmp_path).name == "Parquet files"
    with pytest.raises(ValueError, match="can be read in blocks only: --on-disk"):
        read(tmp_path)
