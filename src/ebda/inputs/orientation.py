"""Which way round a table is, and what its margins are.

Samples are in rows, as statistics has it, or in columns, as expression tables come.
What is known decides: where the name of the labels stands, where the sample names of a
file of labels stand, where the features of a model stand. Only where nothing of this
is known does the shape of the table.
"""

from __future__ import annotations

from ebda.inputs.blocks import Block, Sheet
from ebda.inputs.grid import Known
from ebda.inputs.margins import MARGINS, has_row_names

ORIENTATIONS = ("auto", "rows", "columns")


def to_block(sheet: Sheet, orient: str, known: Known, source: str) -> Block:
    """Find samples, features and labels of a table.

    Parameters
    ----------
    sheet : Sheet
        The cells.
    orient : {"auto", "rows", "columns"}
        Where the samples are.
    known : Known
        What helps to decide.
    source : str
        The file, for messages.
    """
    evidence = "as --orient says"
    if orient == "auto":
        orient, evidence = guess(sheet, known)
    return MARGINS[orient](sheet, known, source, evidence)


def guess(sheet: Sheet, known: Known) -> tuple[str, str]:
    """Where the samples are, and why.

    Examples
    --------
    >>> import polars as pl
    >>> sheet = Sheet(["gene", "s1"], pl.DataFrame({"a": ["g1", "type"], "b": "1"}))
    >>> guess(sheet, Known(target="type"))
    ('columns', "the row 'type' has the classes")
    """
    header, below = set(sheet.names), set(sheet.column(0))
    if known.target is not None and known.target in header:
        return "rows", f"the column {known.target!r} has the classes"
    if known.target is not None and known.target in below:
        return "columns", f"the row {known.target!r} has the classes"
    for words, names, if_header in (
        ("the features of the model", known.features or frozenset(), "rows"),
        ("the samples of the file of labels", known.samples, "columns"),
    ):
        across, down = len(header.intersection(names)), len(below.intersection(names))
        if across > down:
            return if_header, f"{words} are in the header"
        if down > across:
            other = "columns" if if_header == "rows" else "rows"
            return other, f"{words} are in the first column"
    long = sheet.frame.height > sheet.frame.width
    if long and sheet.frame.width > 1 and has_row_names(sheet, known):
        return "columns", "a guess: more rows than columns, and the first holds names"
    return "rows", "a guess: nothing speaks for samples in columns"
