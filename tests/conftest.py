"""Shared by the tests: fewer hypothesis examples by default, many when asked.

``HYPOTHESIS_PROFILE=thorough make test`` draws forty times as many.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("default", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
