"""Sections, figures and tables: what the parts of the page are made of."""

from __future__ import annotations

from ebda.report.markup import Markup, tag

# Widths that drawings are made for: a desk, a tablet or paper, and a phone.
WIDTHS = {"wide": 1010, "middle": 640, "narrow": 316}
# The same for a drawing that has half of a page.
HALF_WIDTHS = {"wide": 480, "middle": 316, "narrow": 316}


def section(anchor: str, title: str, *children: object) -> Markup:
    """A part of the page under its heading."""
    heading = tag("h2", title, id=f"{anchor}-title")
    return tag(
        "section", heading, *children, id=anchor, aria_labelledby=f"{anchor}-title"
    )


def figure(drawing: Markup, caption: object, class_: str | None = None) -> Markup:
    """A drawing over its caption."""
    return tag("figure", drawing, tag("figcaption", caption), class_=class_)


def table(
    head: list[object], rows: list[list[object]], caption: str, class_: str
) -> Markup:
    """A table whose first column names its rows."""
    titles = tag("tr", *[tag("th", title, scope="col") for title in head])
    body = [
        tag("tr", tag("th", row[0], scope="row"), *[tag("td", c) for c in row[1:]])
        for row in rows
    ]
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", titles),
            tag("tbody", *body),
            class_=class_,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
