"""What the package says of versions is what is tested."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_classifiers_name_the_pythons_that_are_tested() -> None:
    """The oldest by ``make test``, the others by ``make test-python-...``."""
    oldest, *others = re.findall(
        r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"])
    )
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(f">={oldest}")
    makefile = (ROOT / "Makefile").read_text()
    (tested,) = re.findall(r"^PYTHONS := (.*)$", makefile, flags=re.MULTILINE)
    assert others == tested.split()


def test_the_lowest_versions_are_those_of_the_bounds() -> None:
    script = [sys.executable, str(ROOT / "tools" / "lowest_versions.py"), "all", "test"]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    pins = {pin.name: pin for pin in map(Requirement, done.stdout.splitlines())}
    extras = PROJECT["optional-dependencies"]
    (every,) = extras["all"]
    names = ["test", *Requirement(every).extras]
    bounds = PROJECT["dependencies"] + [text for name in names for text in extras[name]]
    assert len(pins) == len(bounds)
    for bound in map(Requirement, bounds):
        pin = pins[bound.name]
        assert pin.extras == bound.extras
        assert str(pin.specifier) == str(bound.specifier).replace(">=", "==")
