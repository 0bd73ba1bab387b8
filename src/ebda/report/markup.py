"""HTML that is safe by construction: whatever is not markup is escaped.

Names of features, classes and samples come from other people's files. Whatever is put
into an element or an attribute here is escaped, unless it was itself made by `tag`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

# Characters that no page can hold as they are, and lone halves of surrogate pairs.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
# What ends a script element, or a line of JavaScript, within a JSON string.
_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
_VOID = {"meta", "link", "br", "input"}

# Widths that drawings are made for: a desk, a tablet or paper, and a phone.
WIDTHS = {"wide": 1010, "middle": 640, "narrow": 316}
# The same for a drawing that has half of a page.
HALF_WIDTHS = {"wide": 480, "middle": 316, "narrow": 316}

# Title and cells of a column of a table.
Column = tuple[object, Sequence[object]]


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def plain(value: object) -> str:
    r"""A value as text that a page can hold.

    >>> plain("a\x00b")
    'a\ufffdb'
    """
    return _UNPRINTABLE.sub("\ufffd", str(value))


def text(value: object) -> Markup:
    """A value as HTML text; markup is left as it is.

    >>> text('<b> "quoted" & more')
    '&lt;b&gt; &quot;quoted&quot; &amp; more'
    """
    return value if isinstance(value, Markup) else Markup(escape(plain(value)))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element.

    Parameters
    ----------
    name : str
        Of the element.
    *children
        Its content: markup, or anything else as escaped text; None is nothing.
    **attributes
        With a trailing underscore where Python has the word (``class_``), and
        underscores for dashes. Those that are None are left out, True stands alone,
        and floats (places in a drawing) have one decimal.

    Examples
    --------
    >>> tag("p", "1 < 2", tag("br"), class_="note", hidden=True, id=None)
    '<p class="note" hidden>1 &lt; 2<br></p>'
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None:
            continue
        parts.append(" " + key.rstrip("_").replace("_", "-"))
        if value is not True:
            shown = f"{value:.1f}" if isinstance(value, float) else value
            parts.append(f'="{text(shown)}"')
    parts.append(">")
    if name not in _VOID:
        parts += [text(child) for child in children if child is not None]
        parts.append(f"</{name}>")
    return Markup("".join(parts))


def join(parts: Any, separator: str = "") -> Markup:
    """Pieces of markup or text, joined.

    >>> join(["a", tag("b", "c")], " ")
    'a <b>c</b>'
    """
    return Markup(separator.join(text(part) for part in parts))


def name(value: object) -> Markup:
    """A name from the data, isolated from the text direction around it.

    >>> name("<i>")
    '<bdi>&lt;i&gt;</bdi>'
    """
    return tag("bdi", value)


def embedded_json(value: object) -> Markup:
    r"""JSON that may stand within a script element.

    >>> embedded_json(["</script>"])
    '["\\u003c/script\\u003e"]'
    """
    dumped = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(dumped.translate(_IN_SCRIPT))


def section(anchor: str, title: str, *children: object) -> Markup:
    """A part of the page under its heading."""
    heading = tag("h2", title, id=f"{anchor}-title")
    return tag(
        "section", heading, *children, id=anchor, aria_labelledby=f"{anchor}-title"
    )


def figure(drawing: Markup, caption: object, class_: str | None = None) -> Markup:
    """A drawing over its caption."""
    return tag("figure", drawing, tag("figcaption", caption), class_=class_)


def table(columns: Sequence[Column], caption: str, class_: str) -> Markup:
    """A table of columns, of which the first names the rows."""
    titles = tag("tr", *[tag("th", title, scope="col") for title, _ in columns])
    body = [
        tag("tr", tag("th", first, scope="row"), *[tag("td", cell) for cell in others])
        for first, *others in zip(*[cells for _, cells in columns], strict=True)
    ]
    parts = (tag("caption", caption), tag("thead", titles), tag("tbody", *body))
    whole = tag("table", *parts, class_=class_)
    reached = {"class_": "scroll", "tabindex": "0", "role": "region"}
    return tag("div", whole, **reached, aria_label=caption)


def widths(draw: Callable[[int], Markup], sizes: Mapping[str, int]) -> Markup:
    """A drawing for each width; the style sheet shows the one that fits."""
    return join(tag("div", draw(size), class_=class_) for class_, size in sizes.items())
