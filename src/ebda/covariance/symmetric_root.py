"""Correlations whose powers can be multiplied with a row: contrasts by their root.

Contrasts are decorrelated by ``R^-1/2 z``: of all ways to make noise independent, the
symmetric root keeps each value closest to its feature.
"""

from __future__ import annotations

from ebda.covariance.base import Covariance, Decorrelated
from ebda.kernels.rows import inner_products
from ebda.typing import FloatArray


class SymmetricRoot(Covariance):
    """A correlation that subclasses say the powers of."""

    is_diagonal = False
    n_factors = 0

    def power(self, exponent: float, rows: FloatArray) -> FloatArray:
        """``R^exponent`` times each row.

        Parameters
        ----------
        exponent : float
            -1 is the inverse, -1/2 its symmetric root.
        rows : ndarray of shape (n_rows, n_features)
            What is multiplied; not changed.
        """
        raise NotImplementedError

    def decorrelate(self, z: FloatArray) -> Decorrelated:
        return Decorrelated(self.power(-0.5, z))

    def restore(self, e: FloatArray, values: Decorrelated) -> FloatArray:
        return self.power(0.5, e)

    def solve(self, rows: FloatArray) -> FloatArray:
        return self.power(-1.0, rows)

    def weigh(
        self, e: FloatArray, values: Decorrelated, unit: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        # R^-1 R^1/2 in one step, where the units are those of whole rows.
        if unit.shape[1] == 1:
            rows = e * unit
            return self.power(-0.5, rows), inner_products(rows, rows)
        return super().weigh(e, values, unit)
