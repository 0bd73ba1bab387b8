"""What the benchmarks are held to: a number, its limit, and whether it is met."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Bar:
    """A number that must not be above, or below, a limit.

    Parameters
    ----------
    what : str
        What was measured.
    value : float, optional
        None where the records do not have it.
    limit : float
        The largest value that is good enough, or the smallest.
    at_least : bool
        Whether it is the smallest.
    """

    what: str
    value: float | None
    limit: float
    at_least: bool = False

    @property
    def wanted(self) -> str:
        return f"at {'least' if self.at_least else 'most'} {self.limit:.4g}"

    @property
    def found(self) -> str:
        return NOT_MEASURED if self.value is None else f"{self.value:.4f}"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return NOT_MEASURED
        if self.at_least:
            return "met" if self.value >= self.limit else "NOT MET"
        return "met" if self.value <= self.limit else "NOT MET"


def to_markdown(bars: Iterable[Bar]) -> list[str]:
    lines = ["| what | wanted | found | |", "|---|---|---:|---|"]
    for bar in bars:
        lines.append(f"| {bar.what} | {bar.wanted} | {bar.found} | {bar.verdict} |")
    return lines


def to_terminal(bars: Iterable[Bar]) -> list[str]:
    return [f"  {b.what}: {b.found}, {b.wanted}: {b.verdict}" for b in bars]
