"""Excel workbooks as people keep them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from ebda.cli import main
from ebda.inputs import read

GENES, SAMPLES = 400, 30


def workbook(path: Path, rows: list[list[Any]], *others: str) -> Path:
    book = openpyxl.Workbook()
    book.active.title = "expression"
    for row in rows:
        book.active.append(row)
    for name in others:
        book.create_sheet(name).append([name])
    book.save(path)
    return path


@pytest.fixture
def rows() -> list[list[Any]]:
    """Genes in rows below the classes, with an empty column and empty lines after."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(3, 3, (GENES, SAMPLES)))
    X[:, ::2] *= 1.3
    names = [f"s{i}" for i in range(SAMPLES)]
    table = [["Gene symbol", *names, None], ["type", *(["ill", "well"] * 15), None]]
    table += [[f"g{j}", *values, None] for j, values in enumerate(X.tolist())]
    return [*table, [None] * (SAMPLES + 2), [None] * (SAMPLES + 2)]


def test_a_sheet_is_read_with_all_digits(tmp_path: Path, rows: list[list[Any]]) -> None:
    rows[2][1] = 1.234567890123456e-12
    rows[3][2] = 2**52 + 1
    path = workbook(tmp_path / "table.xlsx", rows, "notes")
    table = read(path, target="type")
    # What another reader finds there; openpyxl writes sixteen digits of seventeen.
    there = openpyxl.load_workbook(path)["expression"].iter_rows(values_only=True)
    want = np.array([row[1 : SAMPLES + 1] for row in [*there][2 : GENES + 2]], float).T
    assert want[0, 0] == 1.234567890123456e-12
    assert np.array_equal(table.X, want)
    assert table.sample_names.tolist() == rows[0][1:-1]
    assert table.feature_names.tolist() == [f"g{j}" for j in range(GENES)]
    assert table.class_counts == {"ill": 15, "well": 15}
    assert table.format == "Excel"
    assert "the sheet 'expression'; others are 'notes'" in table.notes[0]


def test_cells_that_are_no_numbers(tmp_path: Path, rows: list[list[Any]]) -> None:
    rows[2][3], rows[4][5] = None, "#N/A"
    path = workbook(tmp_path / "gaps.xlsx", rows)
    table = read(path, target="type", keep_missing=True)
    assert np.argwhere(np.isnan(table.X)).tolist() == [[2, 0], [4, 2]]
    rows[6][7] = "low"
    path = workbook(tmp_path / "text.xlsx", rows)
    with pytest.raises(ValueError, match="'low' in row 'g4', column 's6'"):
        read(path, target="type")


def test_genes_that_became_dates_are_named(
    tmp_path: Path, rows: list[list[Any]]
) -> None:
    rows[5][0] = datetime.date(2026, 9, 2)
    path = workbook(tmp_path / "dates.xlsx", rows)
    notes = read(path, target="type").notes
    assert any(
        "1 name looks like dates, such as '2026-09-02'" in note for note in notes
    )


def test_sheets_by_name(tmp_path: Path, rows: list[list[Any]]) -> None:
    path = workbook(tmp_path / "two.xlsx", [["title"]], "data")
    book = openpyxl.load_workbook(path)
    del book["data"]
    sheet = book.create_sheet("data")
    for row in rows:
        sheet.append(row)
    book.save(path)
    assert read(path, target="type", layer="data").n_features == GENES
    with pytest.raises(ValueError, match="no sheet 'dta'; there are 'expression', 'd"):
        read(path, target="type", layer="dta")


def test_samples_labels_and_numbers_of_samples(tmp_path: Path) -> None:
    """Numbers in columns of text keep the form that names have elsewhere."""
    rows = [["id", "state", "a"], [101, "x", 1.5], [102, 1, True], ["103b", "x", 0]]
    path = workbook(tmp_path / "labels.xlsx", [row[:2] for row in rows])
    data = tmp_path / "data.csv"
    data.write_text("id,a,b\n101,1,2\n102,3,4\n103b,5,7\n")
    table = read(data, labels=path)
    assert table.y is not None
    assert table.y.tolist() == ["x", "1", "x"]
    wide = [["id", "state", "a", "b"], *([*row, 2.5] for row in rows[1:])]
    path = workbook(tmp_path / "flags.xlsx", wide)
    with pytest.raises(ValueError, match="'true' in row '102', column 'a'"):
        read(path, target="state")


def test_empty_and_damaged_workbooks(
    tmp_path: Path, rows: list[list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    path = workbook(tmp_path / "empty.xlsx", [])
    with pytest.raises(ValueError, match="the sheet 'expression' is empty"):
        read(path)
    whole = workbook(tmp_path / "whole.xlsx", rows[:12]).read_bytes()
    rng = np.random.default_rng(0)
    damaged = tmp_path / "damaged.xlsx"
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), 3):
            content[place] = rng.integers(256)
        damaged.write_bytes(
            content[: rng.integers(len(content) // 2, len(content) + 1)]
        )
        status = main(["fit", str(damaged), "--target", "type", "--folds", "0"])
        printed = capsys.readouterr()
        assert status in (0, 1)
        assert "Traceback" not in printed.err
        if status:
            assert printed.err.count("\n") == 1
