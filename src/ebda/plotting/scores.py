"""Scores of samples by class, with the boundary between the classes.

The score of a class is its log-odds against the most probable other class: it is
positive where this class is predicted. For two classes it is the decision function.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import gaussian_kde

from ebda.evaluation.held_out import (
    Evaluation,
    class_codes,
    log_probability,
    margins,
)
from ebda.plotting.display import (
    INK,
    QUIET,
    SMALL,
    Display,
    checked_names,
    look,
    plain,
    shown_class,
    strip_above,
)
from ebda.plotting.labels import label_points
from ebda.typing import FloatArray, IntArray

# Heights within a row of unit height: the density above its line, points below it.
_DENSITY, _POINTS, _LARGEST_STEP = 0.42, 0.40, 0.055
# Letters in a line of a class's name, which may have two.
_WIDE = 24
# Cells that points are piled up in, and values that a density is computed for.
_BINS, _GRID = 60, 400


@dataclass(eq=False, repr=False)
class ScoreDisplay(Display):
    """One row per class: density of the scores, and every sample as a point.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Scores, positive on the right of the boundary.
    codes : ndarray of int of shape (n_samples,)
        True classes, as indices into `classes`.
    classes : ndarray
        Labels of the classes.
    contrast : int, optional
        Index of the class whose scores are shown; without it, each sample has the score
        of its true class.
    names : ndarray, optional
        Names of the samples, to label those on the wrong side.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda.plotting import ScoreDisplay
    >>> display = ScoreDisplay.from_predictions(
    ...     np.array([-2.0, 1.0, 3.0]), np.array(["no", "no", "yes"])
    ... )
    >>> display.wrong
    array([False,  True, False])
    """

    scores: FloatArray
    codes: IntArray
    classes: npt.NDArray[Any]
    contrast: int | None = None
    names: npt.NDArray[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: npt.ArrayLike,
        contrast: Any = None,
        names: npt.ArrayLike | None = None,
    ) -> ScoreDisplay:
        """From the decision function of a fitted classifier.

        Scores of the samples that the model was fitted to are too good;
        `from_evaluation` shows held-out scores.

        Parameters
        ----------
        model : classifier
            Fitted, with ``decision_function``.
        X, y
            Samples and their classes.
        contrast : label of a class, optional
            The class whose score is shown: by default ``classes_[1]`` of two classes,
            and of more the true class of each sample.
        names : array-like of shape (n_samples,), optional
            Names of the samples.
        """
        return cls.from_predictions(
            model.decision_function(X), y, model.classes_, contrast, names
        )

    @classmethod
    def from_predictions(
        cls,
        decision: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        contrast: Any = None,
        names: npt.ArrayLike | None = None,
    ) -> ScoreDisplay:
        """From values of a decision function.

        Parameters
        ----------
        decision : array-like of shape (n_samples,) or (n_samples, n_classes)
            As scikit-learn has it: for two classes positive means the second.
        y : array-like of shape (n_samples,)
            True classes.
        classes : array-like, optional
            Labels in the order of the columns; by default those of y, sorted.
        contrast, names
            As in `from_estimator`.
        """
        labels = np.asarray(y)
        known = np.unique(labels) if classes is None else np.asarray(classes)
        table = np.asarray(decision, dtype=np.float64)
        if table.ndim == 1:
            table = np.stack([np.zeros(len(table)), table], axis=1)
        if table.shape != (len(labels), len(known)):
            raise ValueError(
                f"the decision function has shape {np.shape(decision)}, which does not "
                f"fit {len(labels)} labels of {len(known)} classes"
            )
        codes = class_codes(known, labels)
        return cls._from_table(table, codes, known, contrast, names)

    @classmethod
    def from_evaluation(
        cls,
        evaluation: Evaluation,
        contrast: Any = None,
        names: npt.ArrayLike | None = None,
    ) -> ScoreDisplay:
        """From held-out predictions: the log-odds of their probabilities.

        Probabilities below 1e-300 count as 1e-300, so log-odds end at 691.

        Parameters
        ----------
        evaluation : Evaluation
            Of :func:`ebda.evaluation.cross_validate`.
        contrast, names
            As in `from_estimator`.
        """
        table = log_probability(evaluation.probabilities)
        codes, classes = evaluation.codes, evaluation.classes
        return cls._from_table(table, codes, classes, contrast, names)

    @classmethod
    def _from_table(
        cls,
        table: FloatArray,
        codes: IntArray,
        classes: npt.NDArray[Any],
        contrast: Any,
        names: npt.ArrayLike | None,
    ) -> ScoreDisplay:
        place = shown_class(classes, contrast)
        own = codes if place is None else np.full(len(codes), place)
        if names is not None:
            names = checked_names(names, len(codes), "samples")
        return cls(margins(table, own), codes, classes, place, names)

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        """Samples on the wrong side of the boundary."""
        belongs = True if self.contrast is None else self.codes == self.contrast
        return np.asarray((self.scores > 0) != belongs)

    def plot(self, ax: Any = None, *, n_labels: int = 10) -> ScoreDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        n_labels : int
            How many samples on the wrong side to name, the farthest from the boundary
            first, if there are names.
        """
        k = len(self.classes)
        axes = self._axes(ax, (6.8, 1.6 + 0.95 * max(k, 2)))
        grid = grid_around(self.scores)
        rows = [self.scores[self.codes == place] for place in range(k)]
        densities = np.array([density(row, grid) for row in rows])
        crests = _DENSITY * densities / (densities.max() or 1.0)
        piles = [stack(row, grid[0], grid[-1]) for row in rows]
        step = min(_LARGEST_STEP, _POINTS / (1 + max(p.max(initial=0) for p in piles)))
        height = np.empty(len(self.scores))
        for place, (crest, pile) in enumerate(zip(crests, piles, strict=True)):
            style, base = look(place), k - 1 - place
            own = self.codes == place
            height[own] = base - 0.07 - step * pile
            axes.fill_between(
                grid, base, base + crest, color=style.colour, alpha=0.3, lw=0
            )
            axes.axhline(base, color=QUIET, lw=0.4, zorder=0)
            right = own & ~self.wrong
            axes.plot(
                self.scores[right],
                height[right],
                style.marker,
                ms=4,
                color=style.colour,
                mew=0,
                label=plain(self.classes[place]),
            )
        wrong = self.wrong
        crosses = axes.plot(
            self.scores[wrong],
            height[wrong],
            "x",
            ms=7,
            color=INK,
            mew=1.6,
            label=f"on the wrong side ({np.count_nonzero(wrong)})",
        )
        axes.axvline(0, color=INK, lw=1, ls="--", label="boundary")
        self._write_around(axes, k)
        axes.set(xlim=(grid[0], grid[-1]), ylim=(-0.5, k - 0.45))
        if wrong.any():
            axes.set_ylim(bottom=-0.8)
            axes.legend(
                handles=crosses, loc="lower left", fontsize=SMALL, borderaxespad=0.1
            )
        self.labels_ = self._label_wrong(axes, height, n_labels)
        return self

    def _write_around(self, axes: Any, k: int) -> None:
        """Label the rows with their counts, and the sides of the boundary."""
        counts = np.bincount(self.codes, minlength=k)
        ticks = [
            f"{fill(plain(name, longest=2 * _WIDE), _WIDE)}\nn = {count}"
            for name, count in zip(self.classes, counts, strict=True)
        ]
        axes.set_yticks(np.arange(k)[::-1], ticks)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        name, left, right = "the true class", "wrong", "right"
        if self.contrast is not None:
            name = right = plain(self.classes[self.contrast])
            left = plain(self.classes[1 - self.contrast]) if k == 2 else "another class"
        axes.set_xlabel(f"log-odds of {name}" + " against the best other" * (k > 2))
        strip_above(axes, SMALL + 6).set_axis_off()  # a title stays above the words
        # On either side of the boundary, wherever that lies.
        style = {"fontsize": SMALL, "transform": axes.get_xaxis_transform()}
        axes.text(0, 1.01, f"← predicted {left}  ", ha="right", **style)
        axes.text(0, 1.01, f"  predicted {right} →", ha="left", **style)

    def _label_wrong(self, axes: Any, height: FloatArray, n_labels: int) -> list[Any]:
        if self.names is None:
            return []
        wrong = np.flatnonzero(self.wrong)
        worst = wrong[np.argsort(-np.abs(self.scores[wrong]), kind="stable")][:n_labels]
        x, y, points = self.scores, height, np.stack([self.scores, height], axis=1)
        return label_points(axes, x[worst], y[worst], self.names[worst], points)


def grid_around(scores: FloatArray) -> FloatArray:
    """Values over the range of the scores, with space on either side of zero."""
    low, high = min(scores.min(), 0.0), max(scores.max(), 0.0)
    low, high = min(low, -0.3 * high), max(high, -0.3 * low)
    margin = 0.08 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, _GRID)


def density(values: FloatArray, grid: FloatArray) -> FloatArray:
    """Kernel density of the values; zero where they are too few or all equal."""
    if len(values) < 3 or np.ptp(values) <= 1e-9 * np.ptp(grid):
        return np.zeros(len(grid))
    return np.asarray(gaussian_kde(values)(grid))


def stack(values: FloatArray, low: float, high: float) -> IntArray:
    """Height of each value in a pile of points: how many lie below it.

    >>> stack(np.array([0.1, 5.0, 0.11, 0.12]), 0.0, 10.0)
    array([0, 0, 1, 2])
    """
    cells = np.minimum((values - low) * (_BINS / (high - low)), _BINS - 1).astype(int)
    order = np.lexsort((values, cells))
    ordered = cells[order]
    first = np.searchsorted(ordered, ordered)
    place = np.empty(len(values), dtype=np.intp)
    place[order] = np.arange(len(values)) - first
    return place
