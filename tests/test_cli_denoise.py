"""``ebda denoise``, as a user sees it."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import faults
from ebda import NormalMeans
from ebda.cli import main
from ebda.cli.output import WRITERS

DESEQ2 = Path(__file__).parent / "data" / "deseq2.csv"
ESTIMATES = ["--estimate", "log2FoldChange", "--se", "lfcSE"]
ADDED = [
    "posterior_mean",
    "posterior_sd",
    "prob_zero",
    "lfsr",
    "q_value",
    "s_value",
    "lower",
    "upper",
]


def test_the_results_of_deseq2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.csv"
    arguments = ["denoise", str(DESEQ2), *ESTIMATES, "--missing", "keep"]
    assert main([*arguments, "--out", str(out), "--level", "0.9"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "58 estimates." in printed.err
    assert f"Written: {out}" in printed.err
    before = pl.read_csv(DESEQ2, infer_schema_length=0)
    after = pl.read_csv(out, infer_schema_length=0)
    assert after.columns == [*before.columns, *ADDED]
    # What was there is there unchanged, to the letter.
    assert after.select(before.columns).equals(before)
    results = after.select(pl.col(ADDED).cast(pl.Float64))
    empty = results["lfsr"].is_null().to_numpy()
    assert np.flatnonzero(empty).tolist() == [4, 17]
    x, se = (before[c].cast(pl.Float64, strict=False) for c in ESTIMATES[1::2])
    means = NormalMeans(random_state=0)
    means.fit(x.drop_nulls().to_numpy(), se.drop_nulls().to_numpy())
    found = results.drop_nulls()
    lower, upper = means.interval(0.9)
    for name, expected in (
        ("posterior_mean", means.posterior_mean_),
        ("posterior_sd", means.posterior_sd_),
        ("prob_zero", means.prob_zero_),
        ("lfsr", means.lfsr_),
        ("q_value", means.q_value_),
        ("s_value", means.s_value_),
        ("lower", lower),
        ("upper", upper),
    ):
        np.testing.assert_allclose(found[name], expected, rtol=1e-12)


def test_z_scores_to_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "z.tsv"
    z = np.round(np.random.default_rng(0).normal(size=50), 3)
    path.write_text("gene\tz\n" + "".join(f"g{i}\t{v}\n" for i, v in enumerate(z)))
    arguments = ["denoise", str(path), "--estimate", "z", "--prior", "normal"]
    assert main([*arguments, "--quiet", "--prefix", "eb_"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    table = pl.read_csv(printed.out.encode())
    assert table.columns == ["gene", "z", *(f"eb_{name}" for name in ADDED)]
    assert table.height == 50
    np.testing.assert_array_equal(table["z"], z)
    assert (table["eb_posterior_mean"].abs().to_numpy() <= np.abs(z) + 1e-12).all()


@pytest.mark.parametrize("ending", WRITERS)
def test_the_ending_says_how_it_is_written(tmp_path: Path, ending: str) -> None:
    from ebda.inputs import read

    out = tmp_path / f"out{ending}"
    arguments = ["denoise", str(DESEQ2), *ESTIMATES, "--missing", "keep", "--quiet"]
    assert main([*arguments, "--prior", "normal", "--out", str(out)]) == 0
    table = read(out, orient="rows", keep_missing=True)
    assert "lfsr" in table.feature_names.tolist()
    assert table.n_samples == 60


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,z\nx,1\n", ["--estimate", "b"], "no column 'b'; there are 'a', 'z'"),
        ("a,z\nx,1\ny,\n", ["--estimate", "z"], "wrong in row 2; correct them, or let"),
        ("a,z\nx,1\ny,<2\n", ["--estimate", "z"], "the first '<2' in row 2"),
        ("a,z\nx,1\ny,inf\n", ["--estimate", "z"], "must be finite"),
        ("z,s\n1,1\n2,0\n", ["--estimate", "z", "--se", "s"], "must be positive"),
        ("z,lfsr\n1,1\n2,0\n", ["--estimate", "z"], "a column 'lfsr' already"),
        ("z,z\n1,1\n2,0\n", ["--estimate", "z"], "more than one column is named 'z'"),
        ("z,a\nNA,1\n", ["--estimate", "z", "--missing", "keep"], "no row has an"),
        ("1 1:2\n", ["--estimate", "z"], "denoise takes a table"),
        ("z,a\n1,2\n", ["--estimate", "z", "--out", "o.pdf"], "ending is none of"),
        ("z,a\n1,2\n", ["--estimate", "z", "--out", "no/o.csv"], "there is no folder"),
    ],
)
def test_input_at_fault(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(text)
    assert main(["denoise", "t.csv", *options]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ebda denoise: ")
    assert printed.err.count("\n") == 1
    assert message in printed.err


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("z\n1\n-4\n")
    Path("out.csv").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert main(["denoise", "t.csv", "--estimate", "z", "--out", "out.csv"]) == 1
    assert Path("out.csv").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.csv", "t.csv"]


def test_special_files_are_written_to(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("z\n1\n-4\n")
    arguments = ["denoise", str(path), "--estimate", "z", "--quiet"]
    assert main(arguments) == 0
    expected = capfdbinary.readouterr().out
    assert main([*arguments, "--out", "/dev/stdout"]) == 0
    assert capfdbinary.readouterr().out == expected
    folder = tmp_path / "folder"
    folder.mkdir()
    null = faults.device(folder, "null")
    assert main([*arguments, "--out", str(null)]) == 0
    assert stat.S_ISCHR(null.stat().st_mode)
    full = faults.device(folder, "full")
    assert main([*arguments, "--out", str(full)]) == 1
    assert b"No space left" in capfdbinary.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "t.csv"]


def said(
    x: np.ndarray, options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> str:
    """What is said of these estimates."""
    path, out = folder / "x.csv", folder / "out.csv"
    pl.DataFrame({"x": x}).write_csv(path)
    assert (
        main(["denoise", str(path), "--estimate", "x", "--out", str(out), *options])
        == 0
    )
    return " ".join(capsys.readouterr().err.split())


def test_nothing_is_said_to_differ_in_noise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of permuted labels it was said that 2000 of 2000 have a sign."""
    rng = np.random.default_rng(0)
    x = 0.2 + 1.3 * rng.normal(size=2000)
    words = said(x, [], tmp_path, capsys)
    assert "None can be told from the bulk: there is nothing to list." in words
    assert "bulk of them lies +0." in words
    table = pl.read_csv(tmp_path / "out.csv")
    assert table["s_value"].min() > 0.05


def test_what_lies_beyond_is_counted_by_its_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.append(np.random.default_rng(0).normal(size=500), [9.0, 8.0, -9.0])
    words = said(x, [], tmp_path, capsys)
    assert "3 lie beyond it, 2 above and 1 below (s_value at most 0.05" in words
    assert "holds the true value with probability 95%, for rows that were" in words


def test_degrees_of_freedom_are_a_number_or_a_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.random.default_rng(0).standard_t(4, size=1000)
    assert "None can be told" in said(x, ["--df", "4"], tmp_path, capsys)
    by_number = pl.read_csv(tmp_path / "out.csv")
    path = tmp_path / "two.csv"
    pl.DataFrame({"x": x, "d": np.full(1000, 4)}).write_csv(path)
    arguments = ["denoise", str(path), "--estimate", "x", "--df", "d", "--quiet"]
    assert main(arguments) == 0
    by_column = pl.read_csv(capsys.readouterr().out.encode())
    np.testing.assert_allclose(by_column["lfsr"], by_number["lfsr"], rtol=1e-9)
    assert main([*arguments[:-2], "-1"]) == 1
    assert "degrees of freedom must be positive" in capsys.readouterr().err


def test_the_point_null_is_there_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    x = 0.5 + np.random.default_rng(0).normal(size=2000)
    assert "The bulk" not in said(x, ["--null", "point"], tmp_path, capsys)


def test_standard_errors_of_one_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [*ESTIMATES[:2], "--prior", "normal", "--missing", "keep"]
    out = ["--out", str(tmp_path / "out.csv")]
    assert main(["denoise", str(DESEQ2), *arguments, *out]) == 0
    assert "taken as 1, as z-scores have them; is" in (err := capsys.readouterr().err)
    assert "--se lfcSE?" in err
    plain = tmp_path / "z.csv"
    pl.read_csv(DESEQ2).select("log2FoldChange").write_csv(plain)
    assert main(["denoise", str(plain), *arguments, *out]) == 0
    assert "taken as 1, as z-scores have them." in capsys.readouterr().err
    assert main(["denoise", str(DESEQ2), *arguments, "--se", "lfcSE", *out]) == 0
    assert "taken as 1" not in capsys.readouterr().err
