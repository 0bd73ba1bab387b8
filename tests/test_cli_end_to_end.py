"""From files of other programs to a model, a page and predictions, nothing replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ebda.cli import main
from ebda.datasets import load_golub

DATA = Path(__file__).parent / "data"


def ebda(*arguments: str | Path) -> None:
    assert main([str(a) for a in arguments]) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("r_write_csv.csv", ["--target", "type"]),
        (
            "r_write_table.txt",
            ["--labels", DATA / "phenotype.tsv", "--target", "type"],
        ),
        ("genepattern.gct", ["--labels", DATA / "genepattern.cls"]),
        ("cmap_1.3.gct", ["--target", "type"]),
        ("excel_de.csv", ["--target", "type"]),
    ],
)
def test_files_of_other_programs(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    options: list[str | Path],
) -> None:
    model, page, out = (tmp_path / n for n in ("m.ebda", "page.html", "out.csv"))
    ebda(
        "fit", DATA / name, *options, "--log", "--model", model, "--report", page,
        "--json", "--cv", "3",
    )  # fmt: skip
    record = json.loads(capsys.readouterr().out)
    assert record["evaluation"]["error"] < record["evaluation"]["chance_error"]
    assert "M23197_at" in page.read_text()
    # Predictions for a file that another program wrote, the other way round.
    other = "r_write_table.txt" if name == "r_write_csv.csv" else "r_write_csv.csv"
    if name != "excel_de.csv":  # which has other units
        ebda("predict", model, DATA / other, "--out", out)
        assert pl.read_csv(out).height == 20
        assert "as for the fit" in capsys.readouterr().err
    again = tmp_path / "again.html"
    labels = options if "--labels" in options else []
    ebda("report", model, DATA / name, *labels, "--out", again)
    assert "M23197_at" in again.read_text()


@pytest.mark.slow
def test_golub_with_genes_in_rows(tmp_path: Path) -> None:
    """The whole way as a user goes it, in processes of its own."""
    golub = load_golub()
    for split in ("train", "test"):
        here = golub.split == split
        frame = pl.DataFrame({"gene": golub.feature_names.astype(str)})
        frame = frame.with_columns(
            pl.Series(f"P{i}", golub.data[i]) for i in np.flatnonzero(here)
        )
        frame.write_csv(tmp_path / f"{split}.tsv", separator="\t")
    labels = [f"P{i},{t}" for i, t in enumerate(golub.target)]
    (tmp_path / "labels.csv").write_text("\n".join(["patient,leukemia", *labels]))
    command = [sys.executable, "-m", "ebda"]
    fit = subprocess.run(
        [
            *command, "fit", "train.tsv", "--labels", "labels.csv", "--log", "--model",
            "golub.ebda", "--report", "golub.html", "--cv", "0", "--test", "test.tsv",
        ],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "of 34 samples wrong" in fit.stdout
    assert "X04085_rna1_at" in fit.stdout
    assert "M23197_at" in (tmp_path / "golub.html").read_text()
    predicted = subprocess.run(
        [*command, "predict", "golub.ebda", "test.tsv"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    table = pl.read_csv(predicted.stdout.encode())
    truth = golub.target[[int(name[1:]) for name in table["sample"]]]
    assert (table["predicted"].to_numpy() == truth).mean() > 0.85


def test_a_file_that_is_no_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.ebda"
    path.write_bytes(b"nothing of the kind")
    for command in ("predict", "report"):
        assert main([command, str(path), str(DATA / "r_write_csv.csv")]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.count("\n") == 1
        assert "m.ebda" in printed.err
