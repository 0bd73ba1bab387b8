"""How many examples the property tests draw: few by default, many when asked.

``HYPOTHESIS_PROFILE=thorough make test`` draws forty times as many.
"""

from __future__ import annotations

import os
from math import ceil
from typing import Any

from hypothesis import settings

DEFAULT_EXAMPLES = 25
THOROUGH_EXAMPLES = 40 * DEFAULT_EXAMPLES


def load_profile() -> None:
    """Use the profile that the environment names."""
    settings.register_profile("default", max_examples=DEFAULT_EXAMPLES, deadline=None)
    settings.register_profile("thorough", max_examples=THOROUGH_EXAMPLES, deadline=None)
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def examples(number: float, **others: Any) -> settings:
    """Settings of a test that draws this many examples by default.

    They grow with the profile as those of all other tests do.
    """
    factor = settings.default.max_examples / DEFAULT_EXAMPLES
    return settings(max_examples=ceil(number * factor), **others)
