"""Damaged files: a table or one sentence, never another error.

``.h5ad`` is not among them: the HDF5 library itself may hang on a damaged file.
"""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import zarr

from ebda.cli import main
from ebda.inputs import read

DATA = Path(__file__).parent / "data"
PIECES = [
    b",", b";", b"\t", b"\n", b'"', b"\r\n", b"NA", b"1e999", b"-inf", b"\0", b"\xff",
    b"#", b"#1.2\n", b" ", b"  ", b"type", b"\n\n\n",
]  # fmt: skip


def mutated(content: bytes, draw: random.Random) -> bytes:
    """A few bytes changed, cut off, put in, doubled or taken out."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at, to = draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)
        change = draw.randrange(5)
        if change == 0 and at < len(data):
            data[at] = draw.randrange(256)
        elif change == 1:
            del data[max(at, to) :]
        elif change == 2:
            data[at:at] = draw.choice(PIECES)
        elif change == 3:
            data[at:at] = data[min(at, to) : max(at, to)][:500]
        else:
            del data[at : at + draw.randint(1, 30)]
    return bytes(data)


def originals(folder: Path) -> dict[str, bytes]:
    found = {p.name: p.read_bytes() for p in DATA.iterdir() if p.suffix != ".md"}
    found["packed.csv.gz"] = gzip.compress(found["r_write_csv.csv"])
    found["few.svm"] = b"1 1:0.5 3:2\n-1 2:1 4:3\n"
    X = np.arange(24.0).reshape(6, 4)
    np.savez(folder / "a.npz", X=X, type=list("uvuvuv"))
    pl.DataFrame(X).with_columns(type=pl.lit("u")).write_parquet(folder / "a.parquet")
    for name in ("a.npz", "a.parquet"):
        found[name] = (folder / name).read_bytes()
    return found


def mutated_labels(
    folder: Path, files: dict[str, bytes], draw: random.Random
) -> Path | None:
    if draw.random() < 0.7:
        return None
    name = draw.choice(["genepattern.cls", "phenotype.tsv"])
    path = folder / f"labels.{name}"
    path.write_bytes(mutated(files[name], draw))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_file_is_read_or_refused_in_one_line(
    tmp_path: Path, seed: int
) -> None:
    files = originals(tmp_path)
    draw = random.Random(seed)
    refused: list[tuple[str, str]] = []
    for _ in range(150):
        name = draw.choice(sorted(files))
        path = tmp_path / name
        path.write_bytes(mutated(files[name], draw))
        try:
            table = read(
                path,
                target=draw.choice(["type", None]),
                orient=draw.choice(["auto", "auto", "rows", "columns"]),
                labels=mutated_labels(tmp_path, files, draw),
                impute=draw.choice(["median", None]),
                drop=draw.choice([[], ["type"], ["s1"]]),
                features=draw.choice([None, None, ["M23197_at", "a"], ["none"]]),
                decimal=draw.choice([None, None, "point", "comma"]),
            )
        except (ValueError, OSError) as error:
            refused.append((name, str(error)))
        else:
            assert table.X.shape == (len(table.sample_names), len(table.feature_names))
            assert str(table.n_samples) in table.preview()
    assert 0 < len(refused) < 150
    for name, message in refused:
        assert "\n" not in message
        assert name in message or "labels." in message


def stores(folder: Path) -> tuple[Path, dict[str, bytes]]:
    """Data in what can be read in blocks; each file of the Zarr stores by itself."""
    X = np.random.default_rng(0).poisson(2.0, (30, 40)).astype(float)
    y = ["u", "v"] * 15
    np.save(folder / "b.npy", X)
    pl.DataFrame(X).with_columns(type=pl.Series(y)).write_parquet(folder / "b.parquet")
    zarr.create_array(str(folder / "b.zarr"), data=X, chunks=(9, 9))
    group = zarr.open_group(str(folder / "group.zarr"), mode="w")
    group.create_array("X", data=X)
    group.create_array("y", data=np.arange(30) % 2)
    (folder / "labels.csv").write_text("\n".join(["type", *y]))
    found = [path for path in folder.rglob("*") if path.is_file()]
    found.remove(folder / "labels.csv")
    return folder / "labels.csv", {str(path): path.read_bytes() for path in found}


def fit(store: Path, labels: Path) -> int:
    """The exit status of a fit, in blocks where that can be done."""
    command = ["fit", str(store), "--cv", "0", "--covariance", "diagonal", "--quiet"]
    command += [] if store.name == "group.zarr" else ["--on-disk"]
    if store.suffix == ".parquet":
        return main([*command, "--target", "type"])
    return main([*command, "--labels", str(labels)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_store_is_fitted_to_or_refused_in_one_line(
    tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    labels, files = stores(tmp_path)
    # Many a file is a part of one store.
    of = {name: tmp_path / Path(name).relative_to(tmp_path).parts[0] for name in files}
    assert [fit(store, labels) for store in sorted(set(of.values()))] == [0, 0, 0, 0]
    draw = random.Random(seed)
    refused = 0
    for _ in range(60):
        name = draw.choice(sorted(files))
        Path(name).write_bytes(mutated(files[name], draw))
        refused += fit(of[name], labels)
        assert capsys.readouterr().err.count("\n") <= 1
        Path(name).write_bytes(files[name])
    assert refused > 10
