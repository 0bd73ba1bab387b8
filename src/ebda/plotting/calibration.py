"""Calibration: whether what was given a probability of 0.8 came true in 80 %."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import binomtest

from ebda.evaluation import Evaluation
from ebda.plotting.classes import class_place
from ebda.plotting.display import Display, strip_above
from ebda.plotting.style import DATA, FIT, QUIET, SMALL, plain
from ebda.typing import FloatArray, IntArray

# Unless told: so many samples to a bin on average, and so few or many bins.
_PER_BIN, _FEWEST, _MOST = 15, 5, 10
_HISTOGRAM = 20


class CalibrationDisplay(Display):
    """Observed share against predicted probability, with intervals.

    Parameters
    ----------
    predicted, observed : ndarray of shape (n_bins,)
        Mean probability of each bin that holds any sample, and the share of it that
        came true.
    low, high : ndarray of shape (n_bins,)
        Wilson's interval of that share.
    counts : ndarray of int of shape (n_bins,)
        Samples to a bin.
    probabilities : ndarray of shape (n_samples,)
        All of them.
    hits : ndarray of bool of shape (n_samples,)
        Which came true.
    event : str
        What the probabilities are of.

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
    >>> display.predicted, display.observed
    (array([0.1, 0.9]), array([0. , 0.5]))
    """

    histogram_: Any

    def __init__(
        self,
        predicted: FloatArray,
        observed: FloatArray,
        low: FloatArray,
        high: FloatArray,
        counts: IntArray,
        probabilities: FloatArray,
        hits: npt.NDArray[np.bool_],
        event: str,
    ) -> None:
        self.predicted = predicted
        self.observed = observed
        self.low = low
        self.high = high
        self.counts = counts
        self.probabilities = probabilities
        self.hits = hits
        self.event = event

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
            Whose probability is meant: by default the second of two classes; of more,
            the one that each sample was given.
        n_bins, level
            As in `from_predictions`.
        """
        classes = evaluation.classes
        if contrast is None and len(classes) > 2:
            place, event = evaluation.predicted, "the class that was called"
        else:
            label = classes.tolist()[1] if contrast is None else contrast
            place = np.full(len(evaluation.codes), class_place(classes, label))
            event = plain(label)
        own = evaluation.probabilities[np.arange(len(place)), place]
        hits = evaluation.codes == place
        return cls.from_predictions(own, hits, n_bins=n_bins, level=level, event=event)

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
        """From probabilities and what came true.

        Parameters
        ----------
        probabilities : array-like of shape (n_samples,)
            Between 0 and 1.
        hits : array-like of bool of shape (n_samples,)
            Whether the event came true.
        n_bins : int, optional
            Bins of equal width; by default 5 to 10, by the number of samples.
        level : float
            Of the intervals, which take the samples as independent.
        event : str
            What the probabilities are of.
        """
        p = np.asarray(probabilities, dtype=np.float64)
        came = np.asarray(hits, dtype=bool)
        if p.ndim != 1 or p.shape != came.shape or not len(p):
            raise ValueError(
                f"probabilities and hits must be vectors of one length, at least one "
                f"each; got shapes {p.shape} and {came.shape}"
            )
        if not ((p >= 0) & (p <= 1 + 1e-9)).all():
            row = int(np.argmax(~((p >= 0) & (p <= 1 + 1e-9))))
            raise ValueError(
                f"probabilities must lie between 0 and 1; that of sample {row} is "
                f"{p[row]}"
            )
        size = n_bins or int(np.clip(len(p) // _PER_BIN, _FEWEST, _MOST))
        cell = np.minimum((p * size).astype(np.intp), size - 1)
        all_counts = np.bincount(cell, minlength=size)
        used = all_counts > 0
        counts = all_counts[used]
        hit_counts = np.bincount(cell, weights=came, minlength=size)[used].astype(int)
        predicted = np.bincount(cell, weights=p, minlength=size)[used] / counts
        ends = [
            binomtest(int(k), int(n)).proportion_ci(level, method="wilson")
            for k, n in zip(hit_counts, counts, strict=True)
        ]
        low, high = np.array(ends, dtype=np.float64).T
        return cls(predicted, hit_counts / counts, low, high, counts, p, came, event)

    def plot(self, ax: Any = None) -> CalibrationDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; the histogram of the probabilities goes above them, inside
            the same figure.
        """
        axes = self._axes(ax, (5.2, 5.4))
        axes.plot([0, 1], [0, 1], color=QUIET, ls="--", lw=1, label="as it should be")
        axes.errorbar(
            self.predicted,
            self.observed,
            yerr=np.maximum([self.observed - self.low, self.high - self.observed], 0.0),
            fmt="o-",
            color=FIT,
            ms=6,
            lw=1.2,
            capsize=3,
            label="observed, with interval",
        )
        # At the end of the bar that points to the middle of the picture.
        upper = self.observed > 0.5
        ends = np.where(upper, self.low, self.high)
        for i, count in enumerate(self.counts):
            axes.annotate(
                f"{count}",
                (self.predicted[i], ends[i]),
                xytext=(0, -3 if upper[i] else 3),
                textcoords="offset points",
                ha="center",
                va="top" if upper[i] else "bottom",
                fontsize=SMALL,
                color=QUIET,
            )
        axes.set(
            xlim=(-0.04, 1.04),
            ylim=(-0.04, 1.04),
            xlabel=f"predicted probability of {self.event}",
            ylabel="share that came true",
        )
        axes.legend(loc="lower right", frameon=False)
        self._draw_histogram(axes)
        return self

    def _draw_histogram(self, axes: Any) -> None:
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
