"""The README does what it says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from ebda.cli import main
from ebda.datasets import load_golub

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_names_the_two_commands() -> None:
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL):
        exec(block, names)
    plt.close("all")
    assert (tmp_path / "model.ebda").exists()
    assert names["result"].error < names["result"].chance_error / 4
    golub, model, test = names["golub"], names["model"], names["test"]
    assert model.score(names["X"][test], golub.target[test]) > 0.85
    found = names["genes"].selected()
    assert 0 < found.sum() < len(golub.feature_names)
    error = np.mean((names["means"].posterior_mean_ - names["eta"]) ** 2)
    stated = re.search(r"# ([\d.]+): denoised", README)
    assert stated is not None
    assert round(float(error), 2) == float(stated[1])


@pytest.mark.slow
def test_the_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From an expression table and an annotation file to all that they promise."""
    golub = load_golub()
    genes = np.r_[1700:1850]
    names = [f"patient {i}" for i in golub.sample_id]
    frame = pd.DataFrame(golub.data[:, genes].T, golub.feature_names[genes], names)
    train = golub.split == "train"
    monkeypatch.chdir(tmp_path)
    frame.loc[:, train].to_csv("expression.csv", index_label="gene")
    frame.loc[:, ~train].to_csv("new.csv", index_label="gene")
    known = {"sample": names, "age": 50, "diagnosis": golub.target}
    pd.DataFrame(known).iloc[::-1].to_excel("annotation.xlsx", index=False)
    (block,) = re.findall(r"```\n(pip install.*?)```", README, flags=re.DOTALL)
    commands = block.replace("\\\n", " ").splitlines()
    lines = [line for line in commands if line.startswith("ebda ")]
    assert len(lines) == 3
    for line in lines:
        assert main([*shlex.split(line)[1:], "--quiet"]) == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert written >= {
        "genes.xlsx", "model.ebda", "report.html", "panel.xlsx", "panel.png",
        "predictions.csv",
    }  # fmt: skip
    predicted = pd.read_csv("predictions.csv")
    assert (predicted["predicted"] == golub.target[~train]).mean() > 0.8
    table = pd.read_excel("genes.xlsx")
    assert len(table) == len(genes)
    assert table["q_value"].is_monotonic_increasing
    assert 0 < len(pd.read_excel("panel.xlsx")) < len(genes)


def test_links_lead_somewhere() -> None:
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if "://" not in target:
            assert (root / target).exists(), target
