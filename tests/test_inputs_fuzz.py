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
                impute=draw.choice(["median", None]),
            )
        except (ValueError, OSError) as error:
            refused.append((name, str(error)))
        else:
            assert table.X.shape == (len(table.sample_names), len(table.feature_names))
            assert str(table.n_samples) in table.preview()
    assert 0 < len(refused) < 150
    for name, message in refused:
        assert "\n" not in message
        assert name in message
