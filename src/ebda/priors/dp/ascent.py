"""Accelerated ascent of the lower bound.

The state is the (T, 3) statistics of the components
(:mod:`ebda.priors.dp.variational`). A step replaces them by their image under one round
of coordinate ascent, which never lowers the bound. Steps are accelerated by Anderson
extrapolation, which is accepted only if the bound is no lower there (as in Henderson
and Varadhan 2019); otherwise the plain step is taken. The bound therefore rises
monotonically.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln

from ebda.priors.cells import Cells
from ebda.priors.dp.variational import Model, ascend
from ebda.typing import FloatArray, IntArray

# Number of points of the path that an extrapolation combines.
_MEMORY = 10
# Residuals at which a fixed point counts as exact, and as reached; and the number of
# steps without a smaller residual after which the polishing ends.
_POLISHED = 1e-14
_CLOSE = 1e-9
_POLISH_PATIENCE = 12


def _log_stick_evidence(count: FloatArray, alpha: float) -> FloatArray:
    later = np.cumsum(count[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    total: FloatArray = betaln(1 + count[..., :-1], alpha + later).sum(axis=-1)
    return total


def order_by_size(stats: FloatArray, alpha: float) -> IntArray:
    """Permutation to decreasing counts, or the identity if that lowers the bound.

    It can do so because of the last pair of sticks: ``V_T = 1``, and with alpha > 1
    the smaller component is better placed first. Leading axes are a stack of problems.
    """
    count = stats[..., 0]
    identity = np.arange(count.shape[-1])
    if (count[..., 1:] <= count[..., :-1]).all():
        return np.broadcast_to(identity, count.shape)
    order = np.argsort(-count, axis=-1, kind="stable")
    current = _log_stick_evidence(count, alpha)
    ordered = _log_stick_evidence(np.take_along_axis(count, order, -1), alpha)
    return np.where((ordered < current)[..., None], identity, order)


def extrapolate(path: list[tuple[FloatArray, FloatArray]]) -> FloatArray | None:
    """Anderson's extrapolation to the fixed point from points x and images g(x).

    This is the combination of the last images with the smallest residual ``g(x) - x``,
    each component in units of the standard error of its count. None if there is none.
    """
    if len(path) < 2:
        return None
    x = np.array([point for point, _ in path])
    g = np.array([image for _, image in path])
    residual = (g - x) / np.sqrt(1 + x[-1, :, :1])
    change = (residual[1:] - residual[:-1]).reshape(len(x) - 1, -1)
    length = np.sqrt(np.einsum("ij,ij->i", change, change))
    if not (np.isfinite(length).all() and length.all()):
        return None
    share, *_ = np.linalg.lstsq(
        (change / length[:, None]).T, residual[-1].ravel(), rcond=1e-8
    )
    along = (share / length) @ (g[1:] - g[:-1]).reshape(len(change), -1)
    guess: FloatArray = g[-1] - along.reshape(g[-1].shape)
    outside = (guess[:, :2] <= 0).any(axis=1)
    guess[outside] = 0.0
    return guess if np.isfinite(guess).all() else None


class Ascent:
    """State of the ascent: the statistics, their image, and the bound at them."""

    def __init__(self, cells: Cells, model: Model, stats: FloatArray) -> None:
        self.cells, self.model = cells, model
        self.jump_to(stats[order_by_size(stats, model.alpha)])
        self.bounds = [self.bound]
        self.leaping = False
        self.longest = 16.0  # longest leap; adapts to what succeeds

    def _image(self, stats: FloatArray) -> tuple[FloatArray, float]:
        image, bound = ascend(stats, self.cells, self.model)
        return image, float(bound)

    def _move_to(
        self, stats: FloatArray, image: FloatArray | None = None, bound: float = 0.0
    ) -> None:
        if image is None:
            image, bound = self._image(stats)
        self.stats, self.image, self.bound = stats, image, bound

    def jump_to(
        self, stats: FloatArray, image: FloatArray | None = None, bound: float = 0.0
    ) -> None:
        """Move to other statistics, and forget the path to the present ones."""
        self._move_to(stats, image, bound)
        self.path: list[tuple[FloatArray, FloatArray]] = []

    def try_jump(self, stats: FloatArray) -> bool:
        """Move to these statistics, sorted by size, if the bound is higher there."""
        ordered = stats[order_by_size(stats, self.model.alpha)]
        image, bound = self._image(ordered)
        if bound <= self.bound:
            return False
        self.jump_to(ordered, image, bound)
        self.bounds.append(bound)
        return True

    def step(self) -> None:
        """Move to the extrapolation unless the bound is lower there."""
        order = order_by_size(self.image, self.model.alpha)
        self.path = [(x[order], g[order]) for x, g in self.path[-_MEMORY:]]
        self.path.append((self.stats[order], self.image[order]))
        if self.leaping:
            self._leap()
            return
        guess = extrapolate(self.path)
        if guess is None:
            self._move_to(self.path[-1][1])
            return
        image, bound = self._image(guess)
        if bound >= self.bound:
            self._move_to(guess, image, bound)
        else:
            self._leap()

    def _leap(self) -> None:
        """A plain step, and a longer one in its direction if that is higher still.

        Near a saddle point, extrapolation leads back to it; long steps in the direction
        of ascent lead away from it. The step length is that of SQUAREM.
        """
        first, second = self.path[-1]
        self.jump_to(second)
        velocity = second - first
        acceleration = self.image - second - velocity
        curvature = float(np.linalg.norm(acceleration))
        wanted = (
            float(np.linalg.norm(velocity)) / curvature if curvature > 0 else np.inf
        )
        length = min(wanted, self.longest)
        self.leaping = False
        if length <= 1:
            return
        guess = first + 2 * length * velocity + length**2 * acceleration
        guess[(guess[:, :2] <= 0).any(axis=1)] = 0.0
        image, bound = self._image(guess)
        if bound >= self.bound:
            self.jump_to(guess, image, bound)
            self.leaping = True
            self.longest *= 4 if length < wanted else 1
        else:
            self.longest = max(length / 4, 2.0)

    def gain(self, share: float) -> float:
        """A share of the bound or of the number of values, whichever is smaller.

        For z-scores the two are similar, but an outlier can make the bound very large.
        """
        return share * min(abs(self.bound), float(self.cells.count.sum()))

    def climb(self, tol: float, max_iter: int) -> bool:
        """Step until the bound gains less than `tol`; whether it did in `max_iter`."""
        while len(self.bounds) <= max_iter:
            before = self.bound
            self.step()
            self.bounds.append(self.bound)
            if self.bound - before <= tol:
                return True
        return False

    def _residual(self, stats: FloatArray, image: FloatArray) -> float:
        """Largest difference between statistics and their image, relative to counts."""
        return float(np.abs((image - stats) / (1 + stats[:, :1])).max())

    def polish(self) -> bool:
        """Iterate to the fixed point, to the last digits; whether it was reached.

        Near the maximum the bound changes only by the square of what the atoms move,
        so the residual decides instead. Where the fixed point is not isolated, the
        residual stops falling, and the best point is kept.
        """
        best = self._residual(self.stats, self.image)
        stats, image, bound = self.stats, self.image, self.bound
        path = [(stats, image)]
        left = _POLISH_PATIENCE
        while best > _POLISHED and left > 0:
            guess = extrapolate(path[-_MEMORY:])
            stats = image if guess is None else guess
            image, bound = self._image(stats)
            path.append((stats, image))
            residual = self._residual(stats, image)
            left -= 1
            if residual < best and bound >= self.bound - self.gain(1e-12):
                best, left = residual, _POLISH_PATIENCE
                self.jump_to(stats, image, bound)
        return best < _CLOSE
