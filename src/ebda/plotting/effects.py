"""Volcano plot: effect against the probability of no effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.plotting.display import (
    DATA,
    INK,
    QUIET,
    Display,
    Look,
    check_has,
    checked_names,
    contrast_name,
    contrast_row,
    is_of_means,
    legend_above,
    look,
    plain,
)
from ebda.plotting.labels import label_points
from ebda.priors.posterior import Posterior
from ebda.rule.ranking import tail_average
from ebda.typing import FloatArray, IntArray

# Effects in words, and computed from a fitted model, with one row per contrast.
EFFECTS: dict[str, tuple[str, Callable[[Any], FloatArray]]] = {
    "difference": (
        "difference of the means",
        lambda model: model.contrasts_.z * model.contrasts_.scale,
    ),
    "posterior_mean": (
        "normalised difference after shrinkage",
        lambda model: np.atleast_2d(model.posterior_mean_),
    ),
}
_MEASURES = {
    "p_value": "p-value",
    "prob_zero": "probability of no difference",
    "lfsr": "local false sign rate",
}
# Up to so many names in the legend, and the letters that each may have.
_LETTERS = ((4, 40), (12, 26), (np.inf, 18))
# Smaller probabilities are drawn here; beyond it they say nothing about the data.
_FLOOR = 1e-16


@dataclass(eq=False, repr=False)
class EffectDisplay(Display):
    """Effect of each feature against the probability that it has none.

    Parameters
    ----------
    effect : ndarray of shape (n_features,)
        What the horizontal axis shows.
    prob_zero, q_value : ndarray of shape (n_features,)
        Probability that there is no effect; expected share of false discoveries.
    order : ndarray of int
        Features, those with the strongest evidence first.
    names : sequence, optional
        Names of the features; without them, features are labelled by their column.
    sides : ndarray of int of shape (n_features,)
        Index into `side_names` of each feature.
    side_names : sequence of str
        Names of the groups in the legend.
    effect_name : str
        Label of the horizontal axis.
    lfsr : ndarray of shape (n_features,), optional
        Local false sign rates, where a posterior gives them.
    p_value : ndarray of shape (n_features,), optional
        p-values, where there are some.
    side_looks : sequence of Look, optional
        Colour and marker of each group; by default those of the first series of a plot.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda import NormalMeans
    >>> from ebda.plotting import EffectDisplay
    >>> x = np.append(np.random.default_rng(0).normal(size=200), [9.0, -8.0])
    >>> display = EffectDisplay.from_posterior(NormalMeans().fit(x).posterior_)
    >>> display.order[:2]
    array([200, 201])
    """

    effect: FloatArray
    prob_zero: FloatArray
    q_value: FloatArray
    order: IntArray
    names: Sequence[Any] | npt.NDArray[Any] | None
    sides: IntArray
    side_names: Sequence[str]
    effect_name: str = "effect"
    lfsr: FloatArray | None = None
    p_value: FloatArray | None = None
    side_looks: Sequence[Look] | None = None

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        contrast: Any = None,
        *,
        effect: str = "difference",
        beyond_factors: bool = False,
        names: npt.ArrayLike | None = None,
    ) -> EffectDisplay:
        """From a fitted classifier, or from `NormalMeans`.

        Parameters
        ----------
        model : EBClassifier or NormalMeans
            Fitted. Of `NormalMeans` the posterior means are shown, by the probability
            of belonging to the null.
        contrast : label of a class, optional
            For more than two classes: the class whose differences from the mean of all
            samples are shown. By default each feature is shown for the class with the
            strongest evidence.
        effect : {"difference", "posterior_mean"}
            "difference": the difference of the means, in the units of the data.
            "posterior_mean": the normalised difference after shrinkage, adjusted for
            common factors. For two classes it is a function of z, as P(zero) is, and
            the plot is a curve.
        beyond_factors : bool
            Which of the two lists of `ranking_` gives the p- and q-values: that of
            features that differ between the classes, or beyond the common factors.
        names : array-like of shape (n_features,), optional
            Names to use instead of those that the model was fitted with.
        """
        if is_of_means(model):
            return cls._of_means(model, names)
        check_has(model, "posterior_", "contrasts_")
        if effect not in EFFECTS:
            raise ValueError(f"effect must be one of {sorted(EFFECTS)}, got {effect!r}")
        row = contrast_row(model.classes_, contrast)
        ranking = model.ranking_
        found = ranking.conditional if beyond_factors else ranking.marginal
        title, values = EFFECTS[effect]
        p = model.n_features_in_
        rows = found.strongest if row is None else np.full(p, row)

        def of(table: FloatArray) -> FloatArray:
            return np.asarray(np.atleast_2d(table)[rows, np.arange(p)])

        shown = of(values(model))
        # Long names of many classes would leave no room for the plot.
        many = 1 if row is not None else len(model.classes_)
        longest = next(letters for most, letters in _LETTERS if many <= most)
        classes = [plain(name, longest) for name in model.classes_]
        if row is None:
            rates = found.log_p_over_classes, found.lfdr_over_classes
            log_p, zero, q, order = *rates, found.q_over_classes, found.order
        else:
            log_p, zero, q = of(found.log_p), of(found.lfdr), of(found.q_value)
            order = found.order_in(row)
        # A class has the same colour in every plot.
        looks = [look(place) for place in range(len(classes))]
        if row is None:
            sides, side_names = rows, classes
        else:
            sides = (shown < 0).astype(np.intp)
            if len(classes) == 2:
                side_names = [f"higher in {name}" for name in reversed(classes)]
                looks.reverse()
            else:
                side_names = [f"{way} in {classes[row]}" for way in ("higher", "lower")]
                looks = [looks[row], looks[row]._replace(colour=INK, marker="_")]
        given = ranking.names if names is None else checked_names(names, p, "features")
        title = f"{title}, {contrast_name(model.classes_, row)}"
        p_value = np.exp(np.maximum(log_p, np.log(_FLOOR) - 1))
        return cls(
            shown,
            zero,
            q,
            order,
            given,
            sides,
            side_names,
            title,
            p_value=p_value,
            side_looks=looks,
        )

    @classmethod
    def _of_means(cls, model: Any, names: npt.ArrayLike | None) -> EffectDisplay:
        n = len(model.x_)
        given = np.array([f"row {i + 1}" for i in range(n)]) if names is None else names
        there = ~np.isnan(model.posterior_mean_)
        found = checked_names(given, n, "estimates")[there]
        mean, lfsr = model.posterior_mean_[there], model.lfsr_[there]
        z = (model.x_[there] - model.mode_) / model.scale_[there] - model.null_loc_
        return cls(
            mean,
            model.prob_zero_[there],
            model.s_value_[there],
            np.lexsort((-np.abs(z), lfsr)),
            found,
            (z < 0).astype(np.intp),
            ["above the others", "below the others"],
            "posterior mean",
            lfsr=lfsr,
        )

    @classmethod
    def from_posterior(
        cls, posterior: Posterior, names: npt.ArrayLike | None = None
    ) -> EffectDisplay:
        """From the posterior of several values, such as ``NormalMeans().posterior_``.

        Parameters
        ----------
        posterior : Posterior
            Its means are the effects.
        names : array-like, optional
            Names of the values.
        """
        mean, lfsr = posterior.mean, posterior.lfsr
        order = np.lexsort((-np.abs(mean), lfsr))
        if names is not None:
            names = checked_names(names, len(mean), "features")
        return cls(
            mean,
            posterior.prob_zero,
            tail_average(lfsr),
            order,
            names,
            (mean < 0).astype(np.intp),
            ["above zero", "below zero"],
            "posterior mean",
            lfsr,
        )

    def plot(
        self,
        ax: Any = None,
        *,
        n_labels: int = 10,
        level: float = 0.05,
        measure: str | None = None,
    ) -> EffectDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.
        n_labels : int
            How many features to name, those with the strongest evidence first. Names
            for which there is no room are left out.
        level : float
            Features with a q-value of at most this are coloured.
        measure : {"p_value", "prob_zero", "lfsr"}, optional
            What the vertical axis shows: by default the p-value where there is one,
            else the probability of no difference, or the local false sign rate where
            the prior has no mass at zero.
        """
        known = [name for name in _MEASURES if getattr(self, name) is not None]
        if measure is None:
            usual = "prob_zero" if self.prob_zero.any() else "lfsr"
            measure = "p_value" if "p_value" in known else usual
        if measure not in known:
            raise ValueError(f"measure must be one of {sorted(known)}, got {measure!r}")
        looks = self.side_looks or [look(k) for k in range(len(self.side_names))]
        axes = self._axes(ax, (7.2, 5.2 + 0.06 * len(looks)))
        height = np.maximum(getattr(self, measure), _FLOOR)
        notable = self.q_value <= level
        # As pixels even in vector files, which thousands of points would make large.
        axes.plot(
            self.effect[~notable],
            height[~notable],
            ".",
            ms=4,
            color=DATA,
            mec=QUIET,
            mew=0.2,
            rasterized=True,
            label=f"q-value above {level:g} ({np.count_nonzero(~notable)})",
        )
        for place, (name, style) in enumerate(zip(self.side_names, looks, strict=True)):
            chosen = notable & (self.sides == place)
            axes.plot(
                self.effect[chosen],
                height[chosen],
                style.marker,
                ms=5,
                color=style.colour,
                mec=style.colour if style.marker == "_" else "white",
                mew=1.4 if style.marker == "_" else 0.4,
                label=f"{name} ({np.count_nonzero(chosen)})",
            )
        axes.axvline(0, color=QUIET, lw=0.6, zorder=0)
        reach = 1.2 * np.abs(self.effect).max() or 1.0
        cut = getattr(self, measure).min() < _FLOOR
        note = f"\n(smaller ones drawn at {_FLOOR:g})" if cut else ""
        top = min(height.min(), 0.1)
        axes.set(
            xlim=(-reach, reach),
            yscale="log",
            ylim=(1.6, top**1.12),
            xlabel=self.effect_name,
            ylabel=_MEASURES[measure] + note,
        )
        legend_above(axes)
        best = self.order[:n_labels]
        best = best[notable[best]]
        names = [self._name(j) for j in best]
        others = np.stack([self.effect[notable], height[notable]], axis=1)
        x, y = self.effect[best], height[best]
        self.labels_ = label_points(axes, x, y, names, others)
        return self

    def _name(self, column: int) -> str:
        """The name of a feature; in real data some have none."""
        name = "" if self.names is None else str(self.names[column]).strip()
        return name or f"feature {column}"
