"""Files as GEO and Cell Ranger write them, with their quirks, at realistic sizes."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from ebda.cli import main
from ebda.inputs import read
from ebda.inputs.formats import find_format

GENES, SAMPLES = 3000, 24


def geo_lines(X: np.ndarray) -> list[str]:
    """As GEO writes them: quotes, a tab at the end, and keys that change places."""

    def line(name: str, cells: list[str]) -> str:
        return "\t".join([name, *(f'"{cell}"' for cell in cells)])

    ids = [f"GSM{900 + i}" for i in range(SAMPLES)]
    state = ["ill" if i % 3 else "well" for i in range(SAMPLES)]
    sex = ["sex: F" if i % 2 else "sex: M" for i in range(SAMPLES)]
    # Where a sample has no sex, its age moves up.
    age = [f"age (years): {40 + i}" for i in range(SAMPLES)]
    sex[4], age[4] = age[4], ""
    return [
        '!Series_title\t"Blood of ""cases"" and controls: a study"',
        '!Series_geo_accession\t"GSE1"',
        "",
        line("!Sample_title", [f"patient {i}, blood" for i in range(SAMPLES)]),
        line("!Sample_geo_accession", ids),
        line("!Sample_source_name_ch1", ["blood"] * SAMPLES),
        line("!Sample_characteristics_ch1", [f"disease state: {s}" for s in state]),
        line("!Sample_characteristics_ch1", sex),
        line("!Sample_characteristics_ch1", age),
        line("!Sample_data_processing", ["RMA, log2; 3' probes"] * SAMPLES),
        "!series_matrix_table_begin",
        line('"ID_REF"', ids) + "\t",
        *(
            "\t".join([f'"{1000 + j}_s_at"', *(f"{v:.4f}" for v in row)]) + "\t"
            for j, row in enumerate(X.T)
        ),
        "!series_matrix_table_end",
        "",
    ]


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.normal(8, 2, (SAMPLES, GENES))
    X[np.arange(SAMPLES) % 3 > 0, :30] += 2
    return X.round(4)


@pytest.mark.parametrize("ending", [".txt", ".txt.gz"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_series_matrix(
    tmp_path: Path, values: np.ndarray, ending: str, newline: str
) -> None:
    path = tmp_path / f"GSE1_series_matrix{ending}"
    text = newline.join(geo_lines(values)).encode()
    path.write_bytes(gzip.compress(text) if ending.endswith("gz") else text)
    table = read(path, target="disease state")
    np.testing.assert_array_equal(table.X, values)
    assert table.class_counts == {"ill": 16, "well": 8}
    assert table.sample_names[:2].tolist() == ["GSM900", "GSM901"]
    assert table.feature_names[0] == "1000_s_at"
    assert table.format == "GEO series matrix"
    # What may be classes comes first, what is the same for all last.
    assert table.candidates[:2] == ("disease state", "sex")
    assert table.candidates[-1] == "source_name_ch1"
    known = read(path, target="sex", aside=["age (years)"])
    assert known.n_samples == SAMPLES - 1
    assert known.aside["age (years)"] == [str(40 + i) for i in range(24) if i != 4]
    assert "left out 1 sample without a label: 'GSM904'" in known.notes


def test_from_a_series_matrix_to_an_error(
    tmp_path: Path, values: np.ndarray, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "matrix.txt"
    path.write_text("\n".join(geo_lines(values)))
    assert main(["fit", str(path)]) == 1
    said = capsys.readouterr().err
    assert "say with --target" in said
    assert "'disease state', 'sex'" in said
    quick = ["--covariance", "diagonal", "--shrinkage", "mean", "--folds", "2"]
    assert main(["fit", str(path), "--target", "disease state", *quick]) == 0
    assert "2 classes: ill 16, well 8" in capsys.readouterr().out


def test_values_that_a_series_matrix_lacks(tmp_path: Path, values: np.ndarray) -> None:
    lines = geo_lines(values)
    path = tmp_path / "m.txt"
    cells = lines[12].split("\t")
    cells[1], cells[2] = "", "null"
    path.write_text("\n".join([*lines[:12], "\t".join(cells), *lines[13:]]))
    table = read(path, target="disease state", keep_missing=True)
    assert np.argwhere(np.isnan(table.X)).tolist() == [[0, 0], [1, 0]]
    cells[1] = "low"
    path.write_text("\n".join([*lines[:12], "\t".join(cells), *lines[13:]]))
    with pytest.raises(ValueError, match="'low' in row '1000_s_at', column 'GSM900'"):
        read(path)
    path.write_text("\n".join([*lines[:12], *lines[-2:]]))
    with pytest.raises(ValueError, match="24 samples and no values; those of seq"):
        read(path)
    path.write_text("\n".join(lines[:100]))
    with pytest.raises(ValueError, match="table_end' is missing; is the file cut off"):
        read(path)
    path.write_text("\n".join(lines[:8]))
    with pytest.raises(ValueError, match="is it a series matrix"):
        read(path)
    lines[6] = lines[6].rsplit("\t", 1)[0]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match="ch1' has 23 cells, and there are 24 samples"):
        read(path)
    path.write_text("^DATABASE = GeoMiame\n!Database_name = GEO\n")
    with pytest.raises(ValueError, match="a SOFT file of GEO: take the series matrix"):
        read(path)


CELLS = 200


def write_10x(
    folder: Path, counts: sparse.csc_array, packed: bool, old: bool, prefix: str = ""
) -> None:
    """As Cell Ranger writes it: version 2 (old) or 3."""
    folder.mkdir(exist_ok=True)
    end = ".gz" if packed else ""
    opener = gzip.open if packed else open
    n = counts.shape[0]
    names = [f"GENE{j}" for j in range(n)]
    names[7] = names[3]
    kinds = ["Gene Expression"] * (n - 2) + ["Antibody Capture"] * 2
    rows = [[f"ENSG{j:011d}", names[j], kinds[j]] for j in range(n)]
    if old:
        rows = [row[:2] for row in rows]
    with opener(folder / f"{prefix}matrix.mtx{end}", "wb") as stream:
        io.mmwrite(stream, counts, comment='metadata_json: {"format_version": 2}')
    kind = "genes" if old else "features"
    with opener(folder / f"{prefix}{kind}.tsv{end}", "wt") as stream:
        stream.writelines("\t".join(row) + "\n" for row in rows)
    with opener(folder / f"{prefix}barcodes.tsv{end}", "wt") as stream:
        stream.writelines(f"{barcode}\n" for barcode in barcodes())


def barcodes() -> list[str]:
    letters = np.random.default_rng(0).choice([*"ACGT"], (CELLS, 16))
    return ["".join(row) + "-1" for row in letters]


@pytest.fixture(scope="module")
def counts() -> sparse.csc_array:
    rng = np.random.default_rng(1)
    mean = np.exp(rng.normal(-3, 2, GENES))
    X = rng.poisson(rng.gamma(2, 0.5, (CELLS, 1)) * mean)
    X[::2, :40] += rng.poisson(2, (CELLS // 2, 40))
    return sparse.csc_array(X.T)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("packed", "prefix"), [(True, ""), (False, "GSM7_s1_")])
def test_a_folder_of_10x(
    tmp_path: Path, counts: sparse.csc_array, old: bool, packed: bool, prefix: str
) -> None:
    folder = tmp_path / "filtered_feature_bc_matrix"
    write_10x(folder, counts, packed, old, prefix)
    labels = tmp_path / "clusters.csv"
    lines = [f"{b},{'T' if i % 2 else 'B'}\n" for i, b in enumerate(barcodes())]
    labels.write_text("Barcode,Cluster\n" + "".join(lines[::-1]))
    table = read(folder, labels=labels)
    p = GENES if old else GENES - 2
    assert sparse.issparse(table.X)
    np.testing.assert_array_equal(table.X.toarray(), counts.toarray().T[:, :p])
    assert table.feature_names[[0, 3, 7]].tolist() == [
        "GENE0", "GENE3 (ENSG00000000003)", "GENE3 (ENSG00000000007)"
    ]  # fmt: skip
    assert table.class_counts == {"B": 100, "T": 100}
    assert any("whole numbers" in note for note in table.notes)
    left = "left out 2 features of other types: 'Antibody Capture'"
    assert (left in table.notes) == (not old)
    (matrix,) = folder.glob("*matrix.mtx*")
    assert find_format(matrix).name == "10x"
    assert read(matrix, labels=labels).n_samples == CELLS


def test_folders_that_are_not_whole(tmp_path: Path, counts: sparse.csc_array) -> None:
    folder = tmp_path / "run"
    write_10x(folder, counts, packed=False, old=False)
    (folder / "barcodes.tsv").write_text("A-1\n")
    with pytest.raises(ValueError, match="has 200 barcodes, and the list of them 1;"):
        read(folder)
    (folder / "barcodes.tsv").unlink()
    with pytest.raises(ValueError, match=r"matrix.mtx, and no barcodes.tsv beside it"):
        read(folder)
    (folder / "matrix.mtx").write_text("%%MatrixMarket matrix array real general\n2 2")
    with pytest.raises(ValueError, match="no sparse matrix in Matrix Market format"):
        read(folder)
    huge = "%%MatrixMarket matrix coordinate integer general\n9 9 900000000000\n1 1 1\n"
    (folder / "matrix.mtx").write_text(huge)
    with pytest.raises(ValueError, match="takes up more than"):
        read(folder)
    (folder / "other_matrix.mtx").write_text(huge)
    with pytest.raises(ValueError, match="is a folder, and no Zarr store"):
        read(folder)
