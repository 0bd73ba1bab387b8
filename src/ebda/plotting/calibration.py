"""Calibration: whether events with a probability of 0.8 occur in 80 % of the cases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.evaluation.held_out import (
    CalibrationBins,
    Evaluation,
    calibration_bins,
    predicted_event,
)
from ebda.plotting.display import (
    DATA,
    FIT,
    QUIET,
    SMALL,
    Display,
    plain,
    shown_class,
    strip_above,
)
from ebda.typing import FloatArray, IntArray

_HISTOGRAM = 20


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """Observed share against predicted probability, with intervals.

    Parameters
    ----------
    bins : CalibrationBins
        Predicted probabilities, observed shares with their intervals, and counts.
    probabilities : ndarray of shape (n_samples,)
        The probabilities of all samples.
    hits : ndarray of bool of shape (n_samples,)
        Whether the event occurred.
    event : str
        The event that the probabilities are of.

    Attributes
    ----------
    histogram_
        Axes of the histogram, after `plot`.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.plotting import CalibrationDisplay
    >>> display = CalibrationDisplay.from_predictions(
    ...     [0.1, 0.1, 0.9, 0.9], [False, False, True, False], n_bins=2
    ... )
    >>> display.bins.predicted, display.bins.observed
    (array([0.1, 0.9]), array([0. , 0.5]))
    """

    bins: CalibrationBins
    probabilities: FloatArray
    hits: npt.NDArray[np.bool_]
    event: str

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        contrast: Any = None,
        *,
        n_bins: int | None = None,
        level: float = 0.95,
    ) -> CalibrationDisplay:
        """From held-out predictions.

        Parameters
        ----------
        evaluation : Evaluation
            Of :func:`ebda.evaluation.cross_validate`.
        contrast : label of a class, optional
            The class whose probability is shown: by default the second of two classes;
            of more, the predicted class of each sample.
        n_bins, level
            As in `from_predictions`.
        """
        place = shown_class(evaluation.classes, contrast)
        event = "the predicted class"
        if place is not None:
            event = plain(evaluation.classes[place])
        p, hits = predicted_event(evaluation.probabilities, evaluation.codes, place)
        return cls.from_predictions(p, hits, n_bins=n_bins, level=level, event=event)

    @classmethod
    def from_predictions(
        cls,
        probabilities: npt.ArrayLike,
        hits: npt.ArrayLike,
        *,
        n_bins: int | None = None,
        level: float = 0.95,
        event: str = "the event",
    ) -> CalibrationDisplay:
        """From probabilities and outcomes.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples,)
            Between 0 and 1.
        hits : array-like of bool of shape (n_samples,)
            Whether the event occurred.
        n_bins, level
            As in :func:`ebda.evaluation.calibration_bins`, which has bins of equal
            counts.
        event : str
            The event that the probabilities are of.
        """
        bins = calibration_bins(probabilities, hits, n_bins, level)
        return cls(
            bins, np.asarray(probabilities, float), np.asarray(hits, bool), event
        )

    def plot(self, ax: Any = None) -> CalibrationDisplay:
        """Draw into the given axes, or into new ones.

        Points of fewer than ten samples are open.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; the histogram of the probabilities goes above them, inside
            the same figure.
        """
        axes = self._axes(ax, (5.2, 5.4))
        bins = self.bins
        axes.plot([0, 1], [0, 1], color=QUIET, ls="--", lw=1, label="as predicted")
        axes.plot(bins.predicted, bins.observed, color=FIT, lw=1.2)
        arms = np.maximum([bins.observed - bins.low, bins.high - bins.observed], 0.0)
        few = bins.few_samples
        for chosen, face in ((~few, FIT), (few, "white")):
            if chosen.any():
                axes.errorbar(
                    bins.predicted[chosen],
                    bins.observed[chosen],
                    yerr=arms[:, chosen],
                    fmt="o",
                    color=FIT,
                    mfc=face,
                    ms=6,
                    lw=1.2,
                    capsize=3,
                    label=f"observed, {_extent(bins.counts[chosen])} samples each",
                )
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04), ylabel="observed share")
        axes.set_xlabel(f"predicted probability of {self.event}")
        axes.legend(loc="lower right", frameon=False)
        self.histogram_ = strip = strip_above(axes, 60, gap=10)
        strip.hist(
            [self.probabilities[self.hits], self.probabilities[~self.hits]],
            bins=np.linspace(0, 1, _HISTOGRAM + 1),
            stacked=True,
            color=[FIT, DATA],
            edgecolor="white",
            lw=0.4,
            label=["came true", "did not"],
        )
        strip.set(xlim=axes.get_xlim(), xticks=[], ylabel="samples")
        strip.set_ylim(top=1.5 * strip.get_ylim()[1])  # room for the legend
        strip.yaxis.label.set_size(SMALL)
        strip.legend(loc="upper center", fontsize=SMALL, frameon=False, ncols=2)
        return self


def _extent(counts: IntArray) -> str:
    """The smallest and the largest count.

    >>> _extent(np.array([10, 11])), _extent(np.array([7]))
    ('10 to 11', '7')
    """
    return " to ".join(map(str, np.unique([counts.min(), counts.max()])))
