"""HYPOTHESIS_PROFILE=thorough makes every property test draw more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from profiles import DEFAULT_EXAMPLES, THOROUGH_EXAMPLES, examples

TESTS = Path(__file__).parent


@pytest.mark.parametrize("number", [5, DEFAULT_EXAMPLES, 50])
def test_a_number_of_examples_grows_with_the_profile(number: int) -> None:
    scale = settings.default.max_examples / DEFAULT_EXAMPLES
    assert examples(number).max_examples == number * scale


def test_the_environment_names_the_profile() -> None:
    code = "import profiles; profiles.load_profile()"
    code += "; print(profiles.examples(5).max_examples)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TESTS,
        env=os.environ | {"HYPOTHESIS_PROFILE": "thorough"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(result.stdout) == 5 * THOROUGH_EXAMPLES / DEFAULT_EXAMPLES == 200


def test_no_test_pins_its_number() -> None:
    for path in TESTS.glob("test_*.py"):
        if path != Path(__file__):
            text = path.read_text()
            assert "max_examples" not in text, f"{path.name}: use profiles.examples"
            assert "settings(" not in text.replace("**settings)", ""), path.name
