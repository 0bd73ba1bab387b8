"""Shared by the tests: the number of examples that property tests draw."""

from __future__ import annotations

from profiles import load_profile

load_profile()
