"""A plan as a result: numbers, and what they mean in words."""

from __future__ import annotations

from dataclasses import dataclass

from ebda.tables import html_table
from ebda.typing import FloatArray

# Standard errors that the held-out separation must be above zero.
_SIGNIFICANT = 2.0


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The error to expect with n samples per class; ``print(plan)`` shows it in words.

    Parameters
    ----------
    n : ndarray of shape (n_sizes,)
        Samples per class, on average over the classes: their shares stay the same.
    error : ndarray of shape (n_sizes,)
        Expected error.
    low, high : ndarray of shape (n_sizes,)
        Ends of the interval.
    level : float
        Its probability.
    n_test : int, optional
        The interval is for the share of errors among so many new samples; without it
        for the error rate.
    current : float
        Samples per class at hand, on average.
    fitted_to : float
        Samples per class that the folds left for each fit.
    n_errors, n_samples, n_folds : int
        How many of the samples were wrong when they were held out, and in how many
        folds.
    separation, separation_error : float
        Held-out separation and its standard error.
    chance_error : float
        Error of always predicting the most frequent class.
    """

    n: FloatArray
    error: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    n_test: int | None
    current: float
    fitted_to: float
    n_errors: int
    n_samples: int
    n_folds: int
    separation: float
    separation_error: float
    chance_error: float

    @property
    def separated(self) -> bool:
        """Whether the held-out samples show that the classes are told apart at all."""
        return is_separated(self.separation, self.separation_error)

    def words(self) -> str:
        """What is planned for, and what is assumed."""
        what = (
            "the error rate among new samples like these"
            if self.n_test is None
            else f"the share of errors among {self.n_test} new samples like these"
        )
        start = (
            f"{self.n_errors} of {self.n_samples} samples were wrong when they were "
            f"held out in {self.n_folds} folds, fitted to {self.fitted_to:.3g} samples "
            "per class."
        )
        if self.separated:
            promise = (
                "It assumes that more samples separate the classes better, from hardly "
                "at all to in proportion to their number."
            )
        else:
            promise = (
                "The held-out samples do not show that the classes are told apart: "
                f"separation {self.separation:.2f}, standard error "
                f"{self.separation_error:.2f}. No gain from more samples is promised: "
                "the expected error is what it is now, but at most that of always "
                f"saying the largest class, {_percent(self.chance_error)}."
            )
        return (
            f"{start} The interval is for {what}, after a fit to n samples per class, "
            f"with the same shares of the classes. {promise} No error below "
            f"{_percent(1 / (self.n_samples + 2))} can be expected from "
            f"{self.n_samples} samples."
        )

    def table(self) -> str:
        """One line per size."""
        head = f"  samples per class   error   {self.level:.0%} interval"
        rows = zip(self.n, self.error, self.low, self.high, strict=True)
        lines = [
            f"  {n:17.5g}  {_percent(error):>6}   {_percent(low)} to {_percent(high)}"
            for n, error, low, high in rows
        ]
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        head = ["samples per class", "error", f"{self.level:.0%} interval", "to"]
        rows = [
            [f"{n:.5g}", *map(_percent, ends)]
            for n, *ends in zip(self.n, self.error, self.low, self.high, strict=True)
        ]
        return html_table(self.words(), head, rows)

    def __repr__(self) -> str:
        return f"{self.words()}\n{self.table()}"


def is_separated(separation: float, standard_error: float) -> bool:
    """Whether a held-out separation shows that the classes are told apart at all."""
    return separation > _SIGNIFICANT * standard_error


def _percent(share: float) -> str:
    return f"{share:.1%}" if share else "0%"
