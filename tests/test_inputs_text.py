"""Tables of text, as R, pandas, spreadsheets and people write them."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ebda.datasets import load_golub
from ebda.inputs import Table, read

DATA = Path(__file__).parent / "data"
GENES = ["M23197_at", "X95735_at", "M84526_at"]


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


@pytest.fixture(scope="module")
def golub() -> Table:
    """What every file of tests/data holds, from the embedded data themselves."""
    return read(DATA / "r_write_csv.csv", target="type")


def test_the_fixtures_hold_the_golub_data(golub: Table) -> None:
    whole = load_golub()
    columns = [list(whole.feature_names).index(n) for n in golub.feature_names]
    known = {
        tuple(row): t
        for row, t in zip(whole.data[:, columns], whole.target, strict=True)
    }
    assert [known[tuple(row)] for row in golub.X] == golub.y.tolist()  # type: ignore[union-attr]
    assert golub.class_counts == {"ALL": 12, "AML": 8}


@pytest.mark.parametrize(
    ("name", "options", "orientation", "unit"),
    [
        ("r_write_csv.csv", {"target": "type"}, "rows", 1),
        (
            "r_write_table.txt",
            {"labels": DATA / "phenotype.tsv", "target": "type"},
            "columns",
            1,
        ),
        ("genepattern.gct", {"labels": DATA / "genepattern.cls"}, "columns", 1),
        (
            "genepattern.gct",
            {"labels": DATA / "phenotype.tsv", "target": "type"},
            "columns",
            1,
        ),
        ("cmap_1.3.gct", {"target": "type"}, "columns", 1),
        ("excel_de.csv", {"target": "type"}, "columns", 100),
        ("excel_de_1252.csv", {"target": "type"}, "columns", 100),
    ],
)
def test_files_of_other_programs_give_the_same_table(
    golub: Table, name: str, options: dict[str, Any], orientation: str, unit: float
) -> None:
    table = read(DATA / name, **options)
    np.testing.assert_allclose(table.X, golub.X / unit, rtol=1e-12)
    assert table.y is not None
    assert golub.y is not None
    assert table.y.tolist() == golub.y.tolist()
    assert table.sample_names.tolist() == golub.sample_names.tolist()
    assert table.feature_names.tolist() == golub.feature_names.tolist()
    assert table.orientation == orientation


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
@pytest.mark.parametrize("orientation", ["rows", "columns"])
@pytest.mark.parametrize("packed", [False, True])
def test_pandas_both_ways_round(
    tmp_path: Path, golub: Table, separator: str, orientation: str, packed: bool
) -> None:
    frame = pd.DataFrame(golub.X, golub.sample_names, golub.feature_names)
    frame.insert(3, "type", golub.y)
    if orientation == "columns":
        frame = frame.T
    path = tmp_path / ("table.txt.gz" if packed else "table.txt")
    frame.to_csv(path, sep=separator)
    table = read(path, target="type")
    assert table.orientation == orientation
    np.testing.assert_array_equal(table.X, golub.X)
    assert table.feature_names.tolist() == golub.feature_names.tolist()
    assert table.sample_names.tolist() == golub.sample_names.tolist()
    words = {"rows": "column", "columns": "row"}[orientation]
    assert f"the {words} 'type' has the classes" in table.preview()
    assert "2 classes: ALL 12, AML 8" in table.preview()


@pytest.mark.slow
def test_the_whole_golub_table_with_genes_in_rows(tmp_path: Path) -> None:
    whole = load_golub()
    frame = pd.DataFrame(whole.data.T, index=whole.feature_names)
    labels = pd.DataFrame({"id": frame.columns, "leukemia": whole.target})
    frame.to_csv(tmp_path / "golub.csv", index_label="probe")
    labels.to_csv(tmp_path / "labels.csv", index=False)
    table = read(tmp_path / "golub.csv", labels=tmp_path / "labels.csv")
    np.testing.assert_array_equal(table.X, whole.data)
    assert (table.y == whole.target).all()
    assert "--log" in table.notes[-1]


def test_utf16_and_old_line_ends_and_comments(tmp_path: Path) -> None:
    text = "name\ta\tb\nx\t1\t2\ny\t3\t4\nz\t5\t6\n"
    expected = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    for content in (
        text.encode("utf-16"),
        text.replace("\n", "\r").encode(),
        text.replace("\n", "\r\n").encode(),
        b"# made by hand\n# in 1999\n" + text.encode(),
        b"# made by hand\n#" + text.encode(),
    ):
        path = tmp_path / "table.txt"
        path.write_bytes(content)
        table = read(path, orient="rows")
        assert table.X.tolist() == expected
        assert table.sample_names.tolist() == ["x", "y", "z"]
        assert table.feature_names.tolist() == ["a", "b"]


def test_names_in_quotes_may_hold_anything(tmp_path: Path) -> None:
    text = '"id","a, ""b""","c\nd","type"\n"s,1",1,2,"x y"\n"s2",3,4,"z;"\n'
    table = read(write(tmp_path / "q.csv", text), target="type")
    assert table.feature_names.tolist() == ['a, "b"', "c\nd"]
    assert table.sample_names.tolist() == ["s,1", "s2"]
    assert table.y is not None
    assert table.y.tolist() == ["x y", "z;"]
    assert table.X.tolist() == [[1, 2], [3, 4]]


def test_blanks_around_cells_do_not_matter(tmp_path: Path) -> None:
    text = "id, a, b, type\ns, 1.5, 2, u\nt, 3, NA , v\n"
    table = read(write(tmp_path / "b.csv", text), target="type", impute="median")
    assert table.X.tolist() == [[1.5, 2.0], [3.0, 2.0]]
    assert table.class_counts == {"u": 1, "v": 1}


@pytest.mark.parametrize(
    ("header", "cells", "named"),
    [
        ("", ["5", "7", "2"], True),  # R's write.csv
        ("Unnamed: 0", ["5", "7", "2"], True),  # pandas, read and written again
        ("Sample ID", ["5", "7", "2"], True),
        ("patient", ["5", "7", "2"], True),
        ("anything", ["p", "q", "r"], True),
        ("anything", ["1", "2", "3", "4", "5"], True),  # a running number
        ("anything", ["0", "1", "2", "3", "4"], True),
        ("anything", ["5", "7", "2"], False),
        ("anything", ["1", "2", "2"], False),
    ],
)
def test_the_column_of_names(
    tmp_path: Path, header: str, cells: list[str], named: bool
) -> None:
    lines = [f"{header},a,type"] + [f"{c},{i / 2},u" for i, c in enumerate(cells)]
    table = read(write(tmp_path / "t.csv", "\n".join(lines)), target="type")
    expected = ["a"] if named else [header, "a"]
    assert table.feature_names.tolist() == expected
    running = [str(i + 1) for i in range(len(cells))]
    assert table.sample_names.tolist() == (cells if named else running)


def test_text_and_running_numbers_are_left_out_and_said(tmp_path: Path) -> None:
    text = (
        "id,a,sex,nr,type,b\ns1,1,m,1,u,5\ns2,2,f,2,u,5\ns3,4,m,3,v,5\ns4,4,f,4,v,5\n"
        "s5,3,f,5,v,5\n"
    )
    table = read(write(tmp_path / "t.csv", text), target="type")
    assert table.feature_names.tolist() == ["a", "b"]
    preview = table.preview()
    assert "left out 1 column of text: 'sex'" in preview
    assert "left out 1 column of running numbers: 'nr'" in preview
    assert "1 feature is constant" in preview
    assert "the samples are named by the column 'id'" in preview


def test_rows_of_text_beside_the_genes(tmp_path: Path) -> None:
    text = (
        "gene,symbol,s1,s2,s3\nsex,,m,f,m\ntype,,u,v,v\ng1,ABC,1,2,3\ng2,DEF,4,5,7\n"
        "g3,GHI,4,4,7\n"
    )
    path = write(tmp_path / "t.csv", text)
    table = read(path, target="type")
    assert table.X.tolist() == [[1, 4, 4], [2, 5, 4], [3, 7, 7]]
    assert table.sample_names.tolist() == ["s1", "s2", "s3"]
    assert "left out 1 row of text: 'sex'" in table.preview()
    assert "left out 1 column of text: 'symbol'" in table.preview()
    assert read(path, target="sex").class_counts == {"m": 2, "f": 1}
    dropped = read(path, target="type", drop=["g2", "s2"])
    assert dropped.feature_names.tolist() == ["g1", "g3"]
    assert dropped.sample_names.tolist() == ["s1", "s3"]


def test_a_numeric_annotation_of_genes_has_no_label(tmp_path: Path) -> None:
    text = "gene,length,s1,s2\ntype,,u,v\ng1,900,1,2\ng2,800,4,5\n"
    table = read(write(tmp_path / "t.csv", text), target="type")
    assert table.sample_names.tolist() == ["s1", "s2"]
    assert "left out 1 sample without a label: 'length'" in table.preview()


def test_the_guess_by_shape_and_the_word_of_the_user(tmp_path: Path) -> None:
    lines = ["gene,s1,s2"] + [f"g{j},{j * j},{j + 0.5}" for j in range(9)]
    path = write(tmp_path / "t.csv", "\n".join(lines))
    guessed = read(path)
    assert guessed.X.shape == (2, 9)
    assert "a guess" in guessed.evidence
    said = read(path, orient="rows")
    assert said.X.shape == (9, 2)
    assert said.evidence == "as --orient says"
    assert read(path, features=["s1", "s2"]).X.shape == (9, 2)
    assert read(path, features=["g1", "g5"]).X.shape == (2, 2)
    wide = ["a,b,c,type", "1,2,3,u", "2,2,5,v"]
    assert read(write(tmp_path / "w.csv", "\n".join(wide))).orientation == "rows"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("", {}, "the file is empty"),
        ("a,b\n", {}, "no line of data"),
        ("1.5,2\n3,4\n", {}, "the first line is numbers (1.5, 2, ...)"),
        ("a,b\n1,2\n3,4,5\n", {}, "line 3 has 3 cells; every line needs 2"),
        ('a,b\n"1",2\n3,"4,",5\n', {}, "line 3 has 3 cells; every line needs 2"),
        ("a,b\n1,2,3,4\n", {}, "header has 2 cells, and the line after it 4"),
        ("a,b,c,d\n1,2\n", {}, "header has 4 cells, and the line after it only 2"),
        ("id  a\ns1  1\ns2   2\n", {}, "aligned with several blanks"),
        ("id,a,a\ns,1,2\nt,3,4\n", {}, "1 feature name occurs more than once: 'a'"),
        (",a,b\ns,1,2\ns,3,4\n", {}, "1 sample name occurs more than once: 's'"),
        (
            "id,a,b\ns,1,2\nt,3,<4\nu,5,6\n",
            {},
            "1 cell should be a number and is not: '<4' in row 't', column 'b'",
        ),
        (
            "id,a,b\ns,1,2\nt,,NaN\nu,5,\n",
            {},
            "3 of 6 values are missing: sample 't', ",
        ),
        ("id,a,b\ns,1,\nt,3,\n", {"impute": "median"}, "1 feature has no value at all"),
        (
            "id,a,b\ns,1,inf\nt,3,4\n",
            {},
            "1 of 4 values is infinite: sample 's', feature 'b'",
        ),
        ("id,a,typ\ns,1,u\nt,3,v\n", {"target": "type"}, "did you mean 'typ'?"),
        ("id,a,Type\ns,1,u\nt,3,v\n", {"target": "type"}, "did you mean 'Type'?"),
        ("id,a\ns,1\nt,3\n", {"target": "group"}, "there are 'a'"),
        ("id,a,y\ns,1,\nt,3,NA\n", {"target": "y"}, "no sample has a label"),
        ("id,x,y\ns,u,v\nt,w,z\n", {"orient": "rows"}, "no feature with numbers"),
        ("id,a,y\ns,1,.5\nt,2,.7\nu,3,.9\n", {"target": "y"}, "3 different numbers"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "t.csv", text)
    with pytest.raises(ValueError, match=r"t\.csv") as error:
        read(path, **{"orient": "rows", **options})
    assert message in str(error.value)


def test_unknown_names_of_options(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,a\ns,1\n")
    for option in ({"orient": "up"}, {"impute": "mean"}, {"duplicates": "skip"}):
        with pytest.raises(ValueError, match=next(iter(option))):
            read(path, **option)  # type: ignore[arg-type]


def test_the_errors_of_spreadsheets_are_missing_values(tmp_path: Path) -> None:
    text = "id,a\ns,#N/A\nt,#DIV/0!\nu,1\nv,-\nw,3\n"
    table = read(write(tmp_path / "t.csv", text), orient="rows", keep_missing=True)
    assert np.isnan(table.X[:, 0]).tolist() == [True, True, False, True, False]


def test_numbers_as_labels_are_classes_by_their_value(tmp_path: Path) -> None:
    text = "id,a,y\ns,1,1\nt,2,10\nu,3,1.0\nv,4,2\n"
    table = read(write(tmp_path / "t.csv", text), target="y")
    assert table.y is not None
    assert table.y.dtype == np.int64
    assert table.class_counts == {1: 2, 2: 1, 10: 1}


def test_repeated_names_can_be_numbered(tmp_path: Path) -> None:
    text = "id,a,a,b,a\ns,1,2,3,4\nt,5,6,7,9\n"
    table = read(write(tmp_path / "t.csv", text), orient="rows", duplicates="number")
    assert table.feature_names.tolist() == ["a", "a.1", "b", "a.2"]
    assert table.X[0].tolist() == [1, 2, 3, 4]


def test_a_damaged_gzip_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    text = "a,b\n" + "".join(f"{u},{v}\n" for u, v in rng.normal(size=(9000, 2)))
    whole = gzip.compress(text.encode())
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged or cut off"):
        read(path)
    path.write_bytes(whole[:15] + b"\xff\xff\xff\xff" + whole[19:40])
    with pytest.raises(ValueError, match="damaged"):
        read(path)


def test_ten_megabytes_are_read_in_seconds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(8, 2, (100, 5600)).round(14)
    frame = pl.DataFrame(X, schema=[f"gene{j}" for j in range(X.shape[1])])
    labels = pl.Series("type", np.where(np.arange(100) % 3, "u", "v"))
    path = tmp_path / "wide.csv"
    frame.insert_column(0, labels).write_csv(path)
    assert path.stat().st_size > 9e6
    start = time.process_time()
    table = read(path, target="type")
    assert time.process_time() - start < 5  # 0.5 on the machine of 2026
    np.testing.assert_array_equal(table.X, X)


def test_polars_missing_is_said_with_its_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install 'ebda\[cli\]'"):
        read(write(tmp_path / "t.csv", "id,a\ns,1\n"))


# --- decimal signs


def table_of(*cells: str, separator: str = "\t") -> str:
    lines = [f"s{i}{separator}{cell}{separator}u" for i, cell in enumerate(cells)]
    return "\n".join([separator.join(["id", "a", "type"]), *lines]) + "\n"


@pytest.mark.parametrize("separator", ["\t", ";", "|"])
def test_a_comma_that_may_be_either_sign_is_asked_about(
    tmp_path: Path, separator: str
) -> None:
    path = write(tmp_path / "t.txt", table_of("1,729", "2,500", separator=separator))
    with pytest.raises(
        ValueError, match=r"t\.txt: is '1,729' a number of thou"
    ) as error:
        read(path, target="type")
    assert "--decimal point or --decimal comma" in str(error.value)
    assert "\n" not in str(error.value)
    for decimal, expected in (("point", [1729, 2500]), ("comma", [1.729, 2.5])):
        table = read(path, target="type", decimal=decimal)
        assert table.X[:, 0].tolist() == expected
        assert f"decimal {decimal}s" in table.notes[0]


@pytest.mark.parametrize(
    ("cells", "decimal", "expected"),
    [
        (["1,729", "2,5"], None, [1.729, 2.5]),
        (["1,729", "0,123"], None, [1.729, 0.123]),  # thousands do not begin with 0
        (["1,729", "1234,567"], None, [1.729, 1234.567]),
        (["1,729", "1e-3", "-2,5e2"], None, [1.729, 0.001, -250]),
        (["1.729", "2,5"], None, [1729, 2.5]),  # as Germans write
        (["1.729.001,5", "3"], None, [1729001.5, 3]),
        (["1,729", "2.5"], None, [1729, 2.5]),
        (["1,729,001", "12"], None, [1729001, 12]),
        (["-1,729.25", "+12"], None, [-1729.25, 12]),
        (["1.729", "2.500"], None, [1.729, 2.5]),
        (["1.729", "2.500"], "comma", [1729, 2500]),
        (["1.729", "NA", "-", " 2,5 "], "comma", [1729, np.nan, np.nan, 2.5]),
        (["1,729", "#N/A", ".", " 2.5 "], "point", [1729, np.nan, np.nan, 2.5]),
    ],
)
def test_the_decimal_sign_is_what_all_cells_agree_on(
    tmp_path: Path, cells: list[str], decimal: str | None, expected: list[float]
) -> None:
    path = write(tmp_path / "t.tsv", table_of(*cells))
    table = read(path, target="type", keep_missing=True, decimal=decimal)
    np.testing.assert_allclose(table.X[:, 0], expected, rtol=1e-15)


def test_a_number_with_the_wrong_sign_is_named(tmp_path: Path) -> None:
    text = "id\ta\tb\ttype\ns\t1.5\t2\tu\nt\t3\t5\tv\nu\t4\t5\tv\n"
    path = write(tmp_path / "t.tsv", text)
    with pytest.raises(ValueError, match=r"is not: '1\.5' in row 's', column 'a'"):
        read(path, target="type", decimal="comma")
    path = write(tmp_path / "t.csv", text.replace("\t", ",").replace("1.5", "1_000"))
    with pytest.raises(ValueError, match="is not: '1_000' in row 's', column 'a'"):
        read(path, target="type")
    with pytest.raises(ValueError, match="decimal must be one of"):
        read(path, target="type", decimal="dot")


def test_quoted_numbers_of_comma_files_are_read_if_asked(tmp_path: Path) -> None:
    text = 'id,a,type\ns,"1,729",u\nt,"2,5",v\nu,3,v\n'
    path = write(tmp_path / "t.csv", text)
    table = read(path, target="type", decimal="comma")
    assert table.X[:, 0].tolist() == [1.729, 2.5, 3]


def test_labels_of_a_second_file_ask_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,a\ns,1\nt,2\n")
    labels = write(tmp_path / "l.tsv", "id\tsize\ttype\ns\t1,729\tu\nt\t2,500\tv\n")
    assert read(path, "type", labels=labels).class_counts == {"u": 1, "v": 1}


@pytest.mark.parametrize("orient", ["auto", "rows", "columns"])
@pytest.mark.parametrize("features", [None, ["g0"], ["zz", "g0"], ["Name"]])
@pytest.mark.parametrize("target", [None, "g0", "zz"])
def test_a_column_of_names_alone(
    tmp_path: Path, orient: str, features: list[str] | None, target: str | None
) -> None:
    path = write(tmp_path / "t.csv", "Name\ng0\nzz")
    with pytest.raises(ValueError, match=r"^[^\n]*t\.csv: [^\n]+$"):
        read(path, target=target, orient=orient, features=features)


def test_samples_in_rows_can_be_dropped_by_name(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,a,type\ns,1,u\nt,<4,v\nu,3,v\n")
    table = read(path, target="type", drop=["t"])
    assert table.X[:, 0].tolist() == [1, 3]
    # Running numbers are no names.
    path = write(tmp_path / "n.csv", "a,2,type\n4,1,u\n6,1,v\n")
    assert read(path, target="type", drop=["2"]).X.tolist() == [[4], [6]]


def test_a_row_of_labels_tells_nothing_about_the_columns(tmp_path: Path) -> None:
    # With the labels, half of the cells of s2 would be text.
    text = "gene,s1,s2,note\ntype,u,v,\ng1,1,<4,some\n"
    with pytest.raises(ValueError, match="'<4' in row 'g1', column 's2'"):
        read(write(tmp_path / "t.csv", text + "g2,5,6,1\n"), target="type")
    table = read(write(tmp_path / "t.csv", text.replace("<4", "4")), target="type")
    assert table.sample_names.tolist() == ["s1", "s2"]
    assert "left out 1 column of text: 'note'" in table.notes


def test_a_name_of_labels_in_both_margins(tmp_path: Path) -> None:
    text = "id,a,b,type\ns,1,2,3\nt,4,5,6\ntype,u,v,w\n"
    path = write(tmp_path / "t.csv", text)
    # Where samples are in rows the other is a row of text, and said to be left out.
    table = read(path, target="type", orient="rows")
    assert table.X.tolist() == [[1, 2], [4, 5]]
    assert "left out 1 row of text: 'type'" in table.notes
    table = read(path, target="type", orient="columns")
    assert table.sample_names.tolist() == ["a", "b"]
    assert table.class_counts == {"u": 1, "v": 1}


def test_the_wrong_way_round_is_said_before_labels_are_missed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,x,y\ns,u,v\nt,w,z\n")
    with pytest.raises(ValueError, match="wrong way round, say so with --orient"):
        read(path, target="group", orient="rows")
