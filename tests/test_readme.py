"""The README does what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest

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


def test_links_lead_somewhere() -> None:
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\(([^)]+)\)", README):
        if "://" not in target:
            assert (root / target).exists(), target
