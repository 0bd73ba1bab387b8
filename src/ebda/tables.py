"""Results as tables: of pandas, and of notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ebda.listing import escaped


def data_frame(columns: Mapping[str, Any], index: Any, name: str | None = None) -> Any:
    """A table of pandas, which comes with the extra ``ebda[table]``.

    Parameters
    ----------
    columns : mapping of str to array
        Values of each column.
    index : array-like or None
        Labels of the rows; None for numbers.
    name : str, optional
        What the labels are.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install 'ebda[table]'") from None
    rows = None if index is None else pd.Index(index, name=name)
    return pd.DataFrame(columns, index=rows)


def html_table(
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[Any]],
    note: str = "",
    marked: int | None = None,
) -> str:
    """A table as notebooks show it, with a title above and a note below.

    Parameters
    ----------
    title, note : str
        In plain text.
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells; numbers have four digits, unless they are text already.
    marked : int, optional
        A row in bold.

    Examples
    --------
    >>> print(html_table("Genes", ["gene", "t"], [["a<b", 2.0]]))
    <div><p>Genes</p>
    <table><thead><tr><th>gene</th><th>t</th></tr></thead>
    <tbody>
    <tr><td>a&lt;b</td><td>2</td></tr>
    </tbody></table></div>
    """

    def row(cells: Iterable[Any], kind: str) -> str:
        inside = "".join(f"<{kind}>{escape(_shown(c))}</{kind}>" for c in cells)
        return f"<tr>{inside}</tr>"

    body = [row(cells, "th" if i == marked else "td") for i, cells in enumerate(rows)]
    lines = [
        f"<div><p>{escape(title)}</p>",
        f"<table><thead>{row(head, 'th')}</thead>",
        "<tbody>",
        *body,
        "</tbody></table>" + (f"<p>{escape(note)}</p>" if note else "") + "</div>",
    ]
    return "\n".join(lines)


def text_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in plain text: the first column to the left, others to the right.

    >>> print(text_table(["gene", "t"], [["a", 2.0], ["bcd", -10.5]]))
    gene      t
    a         2
    bcd   -10.5
    """
    # What came from a file must not be obeyed by a terminal.
    cells = [list(head), *([escaped(_shown(c)) for c in row] for row in rows)]
    width = [max(len(row[j]) for row in cells) for j in range(len(head))]
    lines = [
        "  ".join(
            c.rjust(w) if j else c.ljust(w)
            for j, (c, w) in enumerate(zip(row, width, strict=True))
        )
        for row in cells
    ]
    return "\n".join(line.rstrip() for line in lines)


def _shown(cell: Any) -> str:
    return (
        cell if isinstance(cell, str) else f"{cell:.4g}" if _real(cell) else f"{cell}"
    )


def _real(cell: Any) -> bool:
    return hasattr(cell, "is_integer") and not isinstance(cell, int)
