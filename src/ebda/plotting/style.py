"""Colours that stay apart in print and for colour-blind readers (Okabe and Ito)."""

DATA = "#c9ced6"
FIT = "#0072b2"
NULL = "#d55e00"
SPARSE = "#009e73"
QUIET = "#6b7280"
