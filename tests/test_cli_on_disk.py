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
    obs["batch"] = np.where(np.arange(N) % 5 < 2, "b1", "b2")
    obs["who"] = [f"p{i // 2}" for i in rng.permutation(N)]
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
    assert "Cross-validation in 5 folds: " in said
    record = ebda.modelfile.load_record(model)
    assert record.evaluation is not None
    assert record.data is not None
    assert record.data["fitted_to"] != record.data["evaluated_on"]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [STORES[0], STORES[1], STORES[2], STORES[5]])
def test_the_error_and_the_page_are_those_of_memory(
    folder: Path,
    tmp_path: Path,
    arguments: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = []
    quick = ["--covariance", "diagonal", "--shrinkage", "mean", "--folds", "3"]
    whole = ("x.h5ad", "--target", "state")
    for given in ([*arguments, "--on-disk"], whole):
        model, page = tmp_path / "m.ebda", tmp_path / "page.html"
        out = tmp_path / "held.csv"
        places = [str(folder / a) if (folder / a).exists() else a for a in given]
        files = ["--model", str(model), "--report", str(page), "--out", str(out)]
        assert main(["fit", *places, *files, *quick]) == 0
        said = capsys.readouterr().out
        assert "of 48 samples wrong" in said
        records.append((ebda.modelfile.load_record(model), page.read_text(), out))
        assert out.read_text().count("\n") == N + 1
        out.unlink()
    (one, page_one, _), (two, page_two, _) = records
    assert one.evaluation is not None
    assert two.evaluation is not None
    np.testing.assert_allclose(
        one.evaluation.probabilities, two.evaluation.probabilities, atol=1e-9
    )
    assert one.training is not None
    assert two.training is not None
    np.testing.assert_allclose(one.training.high, two.training.high, atol=1e-12)
    assert len(page_one) == pytest.approx(len(page_two), rel=0.05)


@pytest.mark.slow
def test_the_error_is_that_of_the_samples_that_are_kept(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    quick = ["--covariance", "diagonal", "--shrinkage", "mean", "--report", str(page)]
    words = "the error is estimated from 24 of the 48 samples, those kept for the folds"
    for store in STORES:
        places = [str(folder / a) if (folder / a).exists() else a for a in store]
        arguments = ["fit", *places, "--on-disk"]
        with sizes.override(kept_samples=24, most_kept=24, kept_per_class=8):
            assert main([*arguments, *quick]) == 0
        said = capsys.readouterr().out
        assert words in said
        assert "of 24 samples wrong" in said
        assert words in page.read_text()
    arguments = ["fit", str(folder / "x.h5ad"), "--target", "state", "--on-disk"]
    # Adjusted samples are not those of the file: these are read once more.
    folds = ["--folds", "3", "--covariance", "diagonal", "--shrinkage", "mean"]
    assert main([*arguments, *folds, "--covariates", "batch", "--groups", "who"]) == 0
    both = capsys.readouterr().out
    assert (
        main([*arguments[:-1], *folds, "--covariates", "batch", "--groups", "who"]) == 0
    )
    first, second = (
        next(line for line in text.split("\n") if "samples wrong" in line)
        for text in (both, capsys.readouterr().out)
    )
    assert first == second


def test_samples_that_do_not_fit_in_memory_are_fewer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ebda.cli import kept

    table = on_disk.open_table(folder / "x.parquet", "state")
    watched = kept.Watched.of(table)
    assert watched is not None
    found = watched.kept()
    assert found is not None
    assert found.n_samples == N
    monkeypatch.setattr(kept, "free_bytes", lambda: 8 * 6 * P * 18)
    found = watched.kept()
    assert found is not None
    assert found.class_counts == {"ill": 6, "well": 12}
    assert "of the data read" in watched.words()
    monkeypatch.setattr(kept, "free_bytes", lambda: 0)
    assert watched.kept() is None
    assert kept.Watched.of(read(folder / "x.h5ad", "state")) is None


def test_arrays_need_no_flag(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = tmp_path / "y.npy"
    np.save(labels, pd.read_csv(folder / "y.csv")["state"].to_numpy(dtype=str))
    quick = ["--covariance", "diagonal", "--shrinkage", "mean", "--folds", "2"]
    for y in (folder / "y.csv", labels):
        assert main(["fit", str(folder / "x.npy"), "--labels", str(y), *quick]) == 0
        said = capsys.readouterr().out
        assert "in blocks" not in said
        assert "2 classes: ill 16, well 32" in said
    turned = tmp_path / "turned.npy"
    np.save(turned, np.load(folder / "x.npy").T)
    table = read(turned, orient="columns", labels=labels)
    np.testing.assert_array_equal(table.X, np.load(folder / "x.npy"))
    with pytest.raises(ValueError, match=r"an array of shape \(48,\) is no table"):
        read(labels)
    with pytest.raises(ValueError, match="holds no labels"):
        read(folder / "x.npy", labels=folder / "x.npy")


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
        (("x.h5ad",), "there are 'state', 'age', 'batch', 'who'"),
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
    assert "1 of 48 samples without a label" in capsys.readouterr().err


def test_a_folder_without_parquet_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder, and no Zarr store, Parquet"):
        on_disk.open_table(tmp_path, "type")
    (tmp_path / "part.parquet").write_bytes(b"PAR1")
    assert find_format(tmp_path).name == "Parquet files"
    with pytest.raises(ValueError, match="can be read in blocks only: --on-disk"):
        read(tmp_path)
