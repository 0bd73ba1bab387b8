"""The report: one self-contained HTML page about a fitted model.

`write_report` writes it, `render` returns it. The page says how well the model
predicts, which features matter, which samples are doubtful, what was fitted and why,
and what to be careful about. It loads nothing: fonts, scripts, styles and data are in
the file, and its Content-Security-Policy forbids anything else.
"""

from __future__ import annotations

from ebda.report.page import render, write_report

__all__ = ["render", "write_report"]
