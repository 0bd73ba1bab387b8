"""The one error of a file that cannot be loaded."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A file is not a model file, or it is damaged, truncated, hostile or newer.

    The message names the file, says what is wrong with it, and what to do.
    """


class FormatError(Exception):
    """What is wrong inside a file; whoever reads it adds the name of the file."""
