"""The estimated prior of the differences: its atoms or density, and the mass at zero.

The mass at zero is usually most of the prior, and everything else would be too small to
see beside it: it has a bar of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.plotting.display import (
    DATA,
    FIT,
    NULL,
    SMALL,
    Display,
    check_has,
    strip_above,
)
from ebda.plotting.labels import label_points
from ebda.typing import FloatArray

_MOST_WRITTEN = 12  # atoms whose weights are written beside them
_BAR = {
    "below zero": {"color": FIT, "hatch": "\\\\\\"},
    "zero": {"color": DATA, "hatch": ""},
    "above zero": {"color": FIT, "hatch": "///"},
    "elsewhere": {"color": FIT, "hatch": "///"},
}
_REACH = 4.4  # standard deviations of a slab: 99.8 % of a Laplace distribution


@dataclass(eq=False, repr=False)
class PriorDisplay(Display):
    """The prior of the differences eta, below a bar that shows the mass at zero.

    Parameters
    ----------
    masses : dict of str to float
        Share of the prior below zero, at zero, and so on.
    atoms, weights : ndarray
        Point masses away from zero.
    grid, density : ndarray
        Density of the mass that is not at zero.
    is_marginal : bool
        Whether the density is that of z, which includes noise, because that of eta is
        not known.

    Attributes
    ----------
    bar_
        Axes of the bar, after `plot`.

    Examples
    --------
    >>> from ebda.plotting import PriorDisplay
    >>> from ebda.priors import DiscretePrior
    >>> prior = DiscretePrior([-2, 0, 3], [0.1, 0.75, 0.15])
    >>> display = PriorDisplay.from_prior(prior)
    >>> display.masses["zero"], display.atoms
    (0.75, array([-2.,  3.]))
    """

    masses: dict[str, float]
    atoms: FloatArray = field(default_factory=lambda: np.empty(0))
    weights: FloatArray = field(default_factory=lambda: np.empty(0))
    grid: FloatArray = field(default_factory=lambda: np.empty(0))
    density: FloatArray = field(default_factory=lambda: np.empty(0))
    is_marginal: bool = False

    @classmethod
    def from_estimator(cls, model: Any) -> PriorDisplay:
        """From a fitted EBClassifier, NormalMeans or prior estimator.

        A model with more than two classes has one prior for all contrasts.
        """
        check_has(model, "prior_")
        return cls.from_prior(model.prior_, getattr(model, "z_", None))

    @classmethod
    def from_prior(cls, prior: Any, z: npt.ArrayLike | None = None) -> PriorDisplay:
        """From a prior.

        Parameters
        ----------
        prior : Prior
            Discrete priors, which have ``atoms``, are shown by these; a point mass with
            a slab, which has ``slab_density``, by the density of the slab, and by its
            other atoms if there are any; all others, such as a kernel estimate, by the
            part of the density of z that is not null.
        z : array-like, optional
            The values that the prior was fitted to, for a prior that has neither atoms
            nor a slab, nor ``values`` of its own.
        """
        if hasattr(prior, "atoms"):
            atoms, weights, away = prior.atoms, prior.weights, prior.atoms != 0
            below, above = weights[atoms < 0].sum(), weights[atoms > 0].sum()
            masses = {"below zero": below, "zero": prior.pi0, "above zero": above}
            return cls(masses, atoms[away], weights[away])
        if hasattr(prior, "slab_density"):
            return cls._of_slab(prior)
        given = getattr(prior, "values", z)
        if given is None:
            raise TypeError(
                f"a {type(prior).__name__} has neither atoms nor a slab to draw; give "
                "z, the values that it was fitted to"
            )
        values = np.asarray(given, dtype=np.float64).ravel()
        grid = np.linspace(values.min(), values.max(), 501)
        zero = float(prior.posterior(values).prob_zero.mean())
        density = np.exp(prior.logpdf(grid)) * (1 - prior.posterior(grid).prob_zero)
        masses = {"zero": zero, "elsewhere": 1 - zero}
        return cls(masses, grid=grid, density=density, is_marginal=True)

    @classmethod
    def _of_slab(cls, prior: Any) -> PriorDisplay:
        """A point mass at zero, a density, and perhaps some more atoms."""
        points = getattr(prior, "point_masses", np.empty(0))
        away = np.isfinite(points) & (points != 0)
        atoms = points[away]
        weights = np.exp(prior.log_weights[away]) if len(atoms) else np.empty(0)
        slab = max(1 - prior.pi0 - weights.sum(), 0.0)
        reach = _REACH * prior.slab_sd or 1.0
        grid = np.linspace(-reach, reach, 501)
        below = slab * getattr(prior, "share_below", 0.5) + weights[atoms < 0].sum()
        above = max(1 - prior.pi0 - below, 0.0)
        masses = {"below zero": below, "zero": prior.pi0, "above zero": above}
        density = slab * prior.slab_density(grid)
        if len(atoms) and not density.any():
            grid, density = np.empty(0), np.empty(0)
        return cls(masses, atoms, weights, grid, density)

    def plot(self, ax: Any = None) -> PriorDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; the bar goes above them, inside the same figure.
        """
        axes = self._axes(ax)
        if len(self.grid):
            self._draw_density(axes)
        if len(self.atoms):
            self._draw_atoms(axes.twinx() if len(self.grid) else axes)
        eta = "normalised difference z" if self.is_marginal else "difference eta"
        axes.set(xlabel=eta, ylim=(0, None))
        axes.axvline(0, color=NULL, lw=1, ls=":", zorder=0)
        self._draw_bar(axes)
        return self

    def _draw_atoms(self, axes: Any) -> None:
        atoms, weights = self.atoms, self.weights
        few = len(atoms) <= _MOST_WRITTEN
        axes.vlines(atoms, 0, weights, color=FIT, lw=2 if few else 1)
        axes.plot(atoms, weights, "o", ms=6 if few else 3, color=FIT, label="atoms")
        if few:
            heaviest = np.argsort(-weights)
            texts = [f"{weights[i]:.2g}" for i in heaviest]
            points = np.stack([atoms, weights], axis=1)
            label_points(axes, atoms[heaviest], weights[heaviest], texts, points)
        reach = 1.15 * max(1.0, np.abs(atoms).max())
        axes.set(xlim=(-reach, reach), ylim=(0, 1.18 * weights.max()))
        axes.set_ylabel("weight of the atom")
        axes.set_autoscale_on(False)

    def _draw_density(self, axes: Any) -> None:
        grid, density = self.grid, self.density
        axes.fill_between(grid, density, color=FIT, alpha=0.25, lw=0)
        what = "part of f(z) that is not null" if self.is_marginal else "density"
        axes.plot(grid, density, color=FIT, label=what)
        axes.set(ylabel=what, xlim=(grid[0], grid[-1]))

    def _draw_bar(self, axes: Any) -> None:
        """The shares of the prior below, at and above zero."""
        self.bar_ = bar = strip_above(axes, 14, gap=22)
        left = 0.0
        for name, share in self.masses.items():
            look = {**_BAR[name], "edgecolor": "white", "lw": 0.5}
            bar.barh(0, share, left=left, label=name, **look)
            left += share
        bar.set(xlim=(0, 1), ylim=(-0.4, 0.4), xticks=[], yticks=[])
        bar.spines[:].set_visible(False)
        parts = self.masses.items()
        texts = [f"{share:.1%} {name.removesuffix(' zero')}" for name, share in parts]
        bar.set_xlabel(",  ".join(texts), fontsize=SMALL, labelpad=2)
