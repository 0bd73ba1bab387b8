"""The one error of a file that cannot be loaded."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file is no model file, or a damaged, truncated, hostile or newer one.

    The message names the file, says what is wrong with it, and what to do.
    """


class FormatError(Exception):
    """What is wrong inside a file; the door adds its name and what to do."""
