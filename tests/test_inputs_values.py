"""Labels, missing values, hints, and the features of a model in other data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ebda.inputs import Table, match_features, read
from ebda.inputs.labels import align, as_classes
from ebda.inputs.logarithms import LOGARITHMS
from ebda.inputs.matching import by_name
from ebda.inputs.names import number_duplicates
from ebda.inputs.values import (
    cells_where,
    constant_features,
    fill,
    hint_about_log,
    medians,
    refuse,
)

DATA = Path(__file__).parent / "data"
KINDS = [np.asarray, sparse.csr_array]
TEXT = "id,a,b\ns1,1,2\ns2,3,4\ns3,5,7\ns4,5,8\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "data.csv", TEXT)


def test_labels_are_matched_by_the_name_of_the_sample(
    tmp_path: Path, data: Path
) -> None:
    labels = write(
        tmp_path / "labels.csv", "age,who,type\n1,s4,v\n2,s1,u\n3,s9,u\n4,s3,u\n"
    )
    table = read(data, target="type", labels=labels)
    assert table.sample_names.tolist() == ["s1", "s3", "s4"]
    assert table.y is not None
    assert table.y.tolist() == ["u", "u", "v"]
    assert table.X.tolist() == [[1, 2], [5, 7], [5, 8]]
    preview = table.preview()
    assert "left out 1 sample without a label: 's2'" in preview
    assert "column 'type' of labels.csv, which has 1 further sample" in preview
    assert "the samples of the file of labels are in the first column" in preview


def test_labels_without_a_header(tmp_path: Path, data: Path) -> None:
    labels = write(tmp_path / "labels.csv", "s1,u\ns2,v\ns3,u\ns4,v\n")
    table = read(data, labels=labels)
    assert table.y is not None
    assert table.y.tolist() == ["u", "v", "u", "v"]


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("id,type\nx1,u\nx2,v\n", None, "no column has names of samples"),
        ("id,type,sex\ns1,u,m\ns2,v,f\n", None, "several columns; say with --target"),
        ("id,type,sex\ns1,u,m\ns2,v,f\n", "tipe", "did you mean 'type'?"),
        ("id,type\ns1,u\ns2,v\ns1,v\n", None, "'s1' occurs twice, with the labels"),
    ],
)
def test_labels_that_do_not_fit(
    tmp_path: Path, data: Path, text: str, target: str | None, message: str
) -> None:
    labels = write(tmp_path / "labels.csv", text)
    with pytest.raises(ValueError, match=r"labels\.csv") as error:
        read(data, target=target, labels=labels, orient="rows")
    assert message in str(error.value)


def test_labels_come_from_tables_only(data: Path) -> None:
    with pytest.raises(ValueError, match="not GCT: CSV or TSV"):
        read(data, labels=DATA / "genepattern.gct")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 2 1\nu v\n0 1 0 1\n", "three lines"),
        ("5 2 1\n# u v\n0 1 0 1\n", "promises 5 samples, and line 3 has 4"),
        ("4 3 1\n# u v w\n0 1 0 1\n", "names 3 classes, and line 3 has 2"),
        ("4 2 1\n# u v\n1 0 1 0\n", "'u' by the order of classes and 'v' by their"),
    ],
)
def test_cls_that_is_wrong(tmp_path: Path, data: Path, text: str, message: str) -> None:
    labels = write(tmp_path / "labels.cls", text)
    with pytest.raises(ValueError, match=message):
        read(data, labels=labels)


@pytest.mark.parametrize("line", ["0 1 0 1", "u v u v", "a b a b"])
def test_cls_with_numbers_or_names(tmp_path: Path, data: Path, line: str) -> None:
    labels = write(tmp_path / "labels.cls", f"4 2 1\n# u v\n{line}\n")
    table = read(data, labels=labels, orient="rows")
    assert table.y is not None
    assert table.y.tolist() == ["u", "v", "u", "v"]


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1))
def test_whole_numbers_are_the_same_class_however_written(numbers: list[int]) -> None:
    for written in (numbers, map(str, numbers), map(float, numbers)):
        assert as_classes(list(written), "x").tolist() == numbers


def test_fractions_may_be_classes_where_they_are_few() -> None:
    labels = as_classes(["0.5", "1.5", "0.5", "1.5"], "x")
    assert labels.tolist() == ["0.5", "1.5", "0.5", "1.5"]


def test_labels_of_other_samples_take_the_type_of_the_classes() -> None:
    assert align(np.array([2, 1]), np.array([1, 2]), "st", "f").tolist() == [2, 1]
    with pytest.raises(ValueError, match="sample 't' has the class 'w'"):
        align(np.array(["u", "w"]), np.array(["u", "v"]), ["s", "t"], "f")


@given(st.lists(st.sampled_from(["a", "b", "a.1", "a.2", "b.1"]), max_size=12))
def test_numbered_names_are_unique_and_first_ones_stay(names: list[str]) -> None:
    made = number_duplicates(np.array(names, dtype=np.str_)).tolist()
    assert len(set(made)) == len(made)
    for place, name in enumerate(names):
        if name not in names[:place]:
            assert made[place] == name


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_found_counted_and_filled(kind: Any) -> None:
    X = kind(np.array([[1.0, np.nan, 0.0], [4.0, 2.0, np.nan], [7.0, 9.0, 0.0]]))
    rows, columns = cells_where(X)
    assert sorted(zip(rows.tolist(), columns.tolist(), strict=True)) == [(0, 1), (1, 2)]
    found = medians(X, np.arange(3), "abc", "f")
    assert found.tolist() == [4.0, 5.5, 0.0]
    filled = fill(X, found)
    assert dense(filled).tolist() == [[1, 5.5, 0], [4, 2, 0], [7, 9, 0]]
    assert np.isnan(dense(X)).sum() == 2  # what was given is not changed
    assert fill(filled, found) is filled


@pytest.mark.parametrize("kind", KINDS)
def test_the_logarithm_keeps_zero_and_sign(kind: Any) -> None:
    X = np.array([[-3.0, 0.0], [np.e - 1, 5.0]])
    found = dense(LOGARITHMS["natural"].of(kind(X)))
    np.testing.assert_allclose(found, [[-np.log(4), 0], [1, np.log(6)]])


@pytest.mark.parametrize("kind", KINDS)
def test_infinite_values_and_constant_features(kind: Any) -> None:
    X = np.array([[1.0, 0.0, 3.0], [1.0, 0.0, np.inf]])
    with pytest.raises(ValueError, match="sample 't', feature 'c'"):
        refuse(kind(X), "infinite", "st", "abc", "f", "correct it")
    X[1, 2] = 4.0
    refuse(kind(X), "infinite", "st", "abc", "f", "correct it")
    assert constant_features(kind(X)) == 2


def test_hints_about_the_logarithm() -> None:
    rng = np.random.default_rng(0)
    normal = rng.normal(8, 2, (30, 40))
    raw = np.exp(normal)
    assert hint_about_log(normal, log=False) is None
    assert "logarithms are not" in (hint_about_log(raw, log=False) or "")
    signed = raw - np.median(raw) / 10  # the background was subtracted
    assert "raw intensities" in (hint_about_log(signed, log=False) or "")
    assert hint_about_log(raw, log=True) is None
    assert "logarithms already" in (hint_about_log(normal, log=True) or "")
    counts = sparse.csr_array(rng.negative_binomial(0.3, 0.003, (30, 40)))
    assert "--log" in (hint_about_log(counts, log=False) or "")
    percent = rng.uniform(0, 100, (30, 40))  # large, but not skewed
    assert hint_about_log(percent, log=False) is None
    assert hint_about_log(np.full((3, 3), 7.0), log=False) is None
    assert hint_about_log(np.full((3, 3), np.nan), log=False) is None


def test_impute_and_log_are_said(tmp_path: Path) -> None:
    text = "id,a,b,y\ns1,1,2,u\ns2,,4,u\ns3,5,NA,v\ns4,5,9,v\n"
    path = write(tmp_path / "data.csv", text)
    with pytest.raises(ValueError, match=r"2 of 8 values are missing.*--impute median"):
        read(path, target="y")
    table = read(path, target="y", impute="median", log=True)
    assert table.transformation == (
        "sign(x) log(1 + |x|), 2 missing values replaced by the median"
    )
    np.testing.assert_allclose(table.X[1, 0], np.log(6))  # the median of 1, 5, 5
    whole = read(write(path, text.replace(",,", ",3,").replace("NA", "3")), target="y")
    assert whole.transformation == "none"


def named(X: Any, names: str, **more: Any) -> Table:
    samples = np.array([f"s{i}" for i in range(X.shape[0])])
    return Table(X, None, samples, np.array(list(names)), "f.csv", "text", **more)


@pytest.mark.parametrize("kind", KINDS)
def test_features_in_any_order_with_others_between(kind: Any) -> None:
    X = np.arange(8.0).reshape(2, 4)
    match = match_features(named(kind(X), "cxab", n_ignored=2), list("abc"))
    np.testing.assert_array_equal(dense(match.X), X[:, [2, 3, 0]])
    assert (match.missing, match.n_extra, match.n_filled) == ([], 3, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_is_named_or_stood_in_for(kind: Any) -> None:
    X = np.array([[1.0, np.nan], [3.0, 4.0]])
    table = named(kind(X), "ca")
    values = np.array([10.0, 20.0, 30.0])
    with pytest.raises(ValueError, match="1 feature of the model is missing: 'b'"):
        match_features(table, list("abc"))
    with pytest.raises(ValueError, match="1 feature of the model is missing: 'b'"):
        match_features(table, list("abc"), values)
    with pytest.raises(ValueError, match="1 of 4 values is missing: sample 's0', feat"):
        match_features(table, list("ac"))
    match = match_features(table, list("abc"), values, absent=True)
    assert dense(match.X).tolist() == [[10, 20, 1], [4, 20, 3]]
    assert (match.missing, match.n_filled) == (["b"], 1)
    with pytest.raises(ValueError, match="none of the 2 features"):
        match_features(table, list("yz"))


def test_what_libsvm_does_not_write_is_zero() -> None:
    table = named(sparse.csr_array(np.eye(2)), "ac", absent_is_zero=True)
    match = match_features(table, list("abc"))
    assert sparse.issparse(match.X)
    assert dense(match.X).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert match.missing == []


def test_a_fingerprint_knows_values_and_names() -> None:
    X = np.arange(4.0).reshape(2, 2)
    prints = {
        named(X, "ab").fingerprint(),
        named(X, "ac").fingerprint(),
        named(X + 1, "ab").fingerprint(),
        named(sparse.csr_array(X), "ab").fingerprint(),
    }
    assert len(prints) == 4
    assert named(X.copy(order="F"), "ab").fingerprint() in prints


def test_many_classes_are_counted_not_listed() -> None:
    table = named(np.zeros((40, 1)), "a")
    table = Table(**{**vars(table), "y": np.arange(40)})
    assert "40 classes: 0 1, 1 1" in table.preview()
    assert "and 28 more" in table.preview()


def test_only_the_warning_about_names_is_silenced() -> None:
    import warnings

    with by_name():
        warnings.warn("X does not have valid feature names, but ...", stacklevel=1)
    with pytest.warns(UserWarning, match="other"), by_name():
        warnings.warn("other", stacklevel=1)


@pytest.mark.parametrize(
    "written",
    [
        ["1_1", "1_2", "11"],
        ["01", "1", "001"],
        ["1", "infinity", "nan "],
        ["\u0661", "1", "2"],  # a digit of another script
        ["1", "0x1", "1d0"],
    ],
)
def test_labels_that_only_python_takes_for_numbers_stay_as_written(
    tmp_path: Path, written: list[str]
) -> None:
    assert as_classes(written, "x").tolist() == [label.strip() for label in written]
    lines = [f"s{i},{i * i},{label}" for i, label in enumerate(written[:2])]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id,a,type", *lines]))
    assert list(read(path, target="type").class_counts) == sorted(written[:2])
