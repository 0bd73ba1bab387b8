"""The estimated prior of the differences: its atoms or density, and the mass at zero.

The mass at zero is most of the prior as a rule, and would press everything else to the
ground: it has a bar of its own, in full scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import laplace, norm

from ebda.plotting.display import Display, check_has, strip_above
from ebda.plotting.labels import label_points
from ebda.plotting.style import DATA, FIT, NULL, SMALL
from ebda.priors import DiscretePrior, PointLaplacePrior, PointNormalPrior
from ebda.priors.kernel import KernelPrior
from ebda.priors.posterior import Prior
from ebda.typing import FloatArray

_MOST_WRITTEN = 12  # atoms whose weights are written beside them
_BAR = {
    "below zero": (FIT, "\\\\\\"),
    "zero": (DATA, ""),
    "above zero": (FIT, "///"),
    "elsewhere": (FIT, "///"),
}
_TAIL = 0.999  # of a slab's mass is shown


def _nothing() -> FloatArray:
    return np.empty(0)


@dataclass(frozen=True, eq=False)
class PriorShape:
    """What is drawn of a prior.

    Parameters
    ----------
    masses : dict of str to float
        Share of the prior by where it lies; "zero" is among them.
    atoms, weights : ndarray
        Point masses away from zero.
    grid, density : ndarray
        Density away from zero, of the mass that is not at zero.
    is_marginal : bool
        Whether the density is that of z, noise included, for want of one of eta.
    """

    masses: dict[str, float]
    atoms: FloatArray = field(default_factory=_nothing)
    weights: FloatArray = field(default_factory=_nothing)
    grid: FloatArray = field(default_factory=_nothing)
    density: FloatArray = field(default_factory=_nothing)
    is_marginal: bool = False


@singledispatch
def prior_shape(prior: Any, z: FloatArray | None) -> PriorShape:
    """What to draw of a prior: by its kind, to which a new family may register.

    A kind that is not known has no density that could be asked for, but that of z.
    """
    if z is None:
        raise TypeError(
            f"a {type(prior).__name__} does not say where its mass is: give z, the "
            "values that it was fitted to"
        )
    return _marginal_shape(prior, z)


def _marginal_shape(prior: Any, z: FloatArray) -> PriorShape:
    grid = np.linspace(z.min(), z.max(), 501)
    zero = float(prior.posterior(z).prob_zero.mean())
    density = np.exp(prior.logpdf(grid)) * (1 - prior.posterior(grid).prob_zero)
    masses = {"zero": zero, "elsewhere": 1 - zero}
    return PriorShape(masses, grid=grid, density=density, is_marginal=True)


def _three(below: float, zero: float, above: float) -> dict[str, float]:
    return {"below zero": below, "zero": zero, "above zero": above}


@prior_shape.register
def _(prior: DiscretePrior, z: FloatArray | None) -> PriorShape:
    away = prior.atoms != 0
    below = float(prior.weights[prior.atoms < 0].sum())
    above = float(prior.weights[prior.atoms > 0].sum())
    return PriorShape(
        _three(below, prior.pi0, above), prior.atoms[away], prior.weights[away]
    )


def _slab_shape(pi0: float, slab: Any) -> PriorShape:
    end = slab.ppf(_TAIL)
    grid = np.linspace(-end, end, 501)
    half = (1 - pi0) / 2
    return PriorShape(
        _three(half, pi0, half), grid=grid, density=(1 - pi0) * slab.pdf(grid)
    )


@prior_shape.register
def _(prior: PointNormalPrior, z: FloatArray | None) -> PriorShape:
    return _slab_shape(prior.pi0, norm(scale=prior.tau))


@prior_shape.register
def _(prior: PointLaplacePrior, z: FloatArray | None) -> PriorShape:
    return _slab_shape(prior.pi0, laplace(scale=1 / prior.rate))


@prior_shape.register
def _(prior: KernelPrior, z: FloatArray | None) -> PriorShape:
    return _marginal_shape(prior, prior.values)


class PriorDisplay(Display):
    """The prior of the differences eta, and above it a bar of the mass at zero.

    Parameters
    ----------
    shape : PriorShape
        Masses, atoms and density.

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
    >>> display.shape.masses["zero"], display.shape.atoms
    (0.75, array([-2.,  3.]))
    """

    bar_: Any

    def __init__(self, shape: PriorShape) -> None:
        self.shape = shape

    @classmethod
    def from_estimator(cls, model: Any) -> PriorDisplay:
        """From what has a ``prior_``: EBClassifier, NormalMeans, a prior estimator.

        All contrasts of a model with more than two classes have one prior.
        """
        check_has(model, "prior_")
        return cls.from_prior(model.prior_, getattr(model, "z_", None))

    @classmethod
    def from_prior(cls, prior: Prior, z: npt.ArrayLike | None = None) -> PriorDisplay:
        """From a prior.

        Parameters
        ----------
        prior : Prior
            Discrete priors show atoms; a point mass with a slab, the slab's density;
            all others, among them a kernel estimate, the density of z that is not
            null.
        z : array-like, optional
            The values that it was fitted to, for a prior of a kind not known here.
        """
        values = None if z is None else np.asarray(z, dtype=np.float64).ravel()
        return cls(prior_shape(prior, values))

    def plot(self, ax: Any = None) -> PriorDisplay:
        """Draw into the given axes, or into new ones.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; the bar goes above them, inside the same figure.
        """
        axes = self._axes(ax)
        if len(self.shape.atoms):
            self._draw_atoms(axes)
        elif len(self.shape.grid):
            self._draw_density(axes)
        eta = "normalised difference z" if self.shape.is_marginal else "difference eta"
        axes.set(xlabel=eta, ylim=(0, None))
        axes.axvline(0, color=NULL, lw=1, ls=":", zorder=0)
        self._draw_bar(axes)
        return self

    def _draw_atoms(self, axes: Any) -> None:
        atoms, weights = self.shape.atoms, self.shape.weights
        few = len(atoms) <= _MOST_WRITTEN
        axes.vlines(atoms, 0, weights, color=FIT, lw=2 if few else 1)
        axes.plot(atoms, weights, "o", ms=6 if few else 3, color=FIT, label="atoms")
        if few:
            heaviest = np.argsort(-weights)
            texts = [f"{weights[i]:.2g}" for i in heaviest]
            points = np.stack([atoms, weights], axis=1)
            label_points(axes, atoms[heaviest], weights[heaviest], texts, points)
        reach = 1.15 * max(1.0, np.abs(atoms).max())
        axes.set(
            xlim=(-reach, reach),
            ylim=(0, 1.18 * weights.max()),
            ylabel="weight of the atom",
        )
        axes.set_autoscale_on(False)

    def _draw_density(self, axes: Any) -> None:
        grid, density = self.shape.grid, self.shape.density
        axes.fill_between(grid, density, color=FIT, alpha=0.25, lw=0)
        what = "part of f(z) that is not null" if self.shape.is_marginal else "density"
        axes.plot(grid, density, color=FIT, label=what)
        axes.set(ylabel=what, xlim=(grid[0], grid[-1]))

    def _draw_bar(self, axes: Any) -> None:
        """Where the prior lies, in shares of all of it."""
        self.bar_ = bar = strip_above(axes, 14, gap=22)
        left = 0.0
        for name, share in self.shape.masses.items():
            colour, hatch = _BAR[name]
            bar.barh(
                0,
                share,
                left=left,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                lw=0.5,
                label=name,
            )
            left += share
        bar.set(xlim=(0, 1), ylim=(-0.4, 0.4), xticks=[], yticks=[])
        bar.spines[:].set_visible(False)
        parts = self.shape.masses.items()
        text = ",  ".join(
            f"{share:.1%} {name.removesuffix(' zero')}" for name, share in parts
        )
        bar.set_xlabel(text, fontsize=SMALL, labelpad=2)
