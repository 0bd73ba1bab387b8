"""QuanDA (Tang, Gu and Wang, NeurIPS 2025) as a peer, around its authors' solver.

The labels, 1 for the rare class, are made continuous by adding uniform numbers, and a
quantile near the share of the other class is regressed on the features with an elastic
net. Each level gets its penalty by the area under the ROC curve of held-out samples,
coefficients are averaged over several draws of the uniform numbers, and the level with
the best held-out area is taken. (The script of the authors' simulations takes the level
by the area on the *test* samples; :attr:`QuanDA.path_` has all of them for that.)

The regression is the Fortran of the R package hdqr, which is not part of this
repository: HDQR_SOURCE names the unpacked package, and gfortran must be there.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

Array = NDArray[Any]
# As in the authors' script and package.
PENALTIES: Array = 10 ** np.linspace(1, -4, 30)
RIDGE, FOLDS, SMOOTHING, STEP = 0.01, 5, 0.125, 0.05
TOL, TOL_FOLDS, MAX_ITER = 1e-7, 1e-5, 10_000
# The package prints through R from a subroutine that is never called here.
_STUB = "subroutine dblepr(a, n, x, k)\ninteger n, k\nend subroutine\n"


def source() -> Path | None:
    """The unpacked R package, or None if there is none or no compiler."""
    folder = os.environ.get("HDQR_SOURCE")
    if not folder or shutil.which("gfortran") is None:
        return None
    path = Path(folder) / "src" / "lqr_hd.f90"
    return path.parent if path.exists() else None


@cache
def _solver() -> Any:
    where = source()
    if where is None:
        raise RuntimeError("set HDQR_SOURCE to the R package hdqr; gfortran is needed")
    out = Path(tempfile.mkdtemp(prefix="hdqr-"))
    (out / "stub.f90").write_text(_STUB)
    files = [where / "lqr_hd.f90", where / "utilities.f90", out / "stub.f90"]
    command = ["gfortran", "-O2", "-fPIC", "-shared", "-J", out, "-o", out / "hdqr.so"]
    subprocess.run([*command, *files], check=True)
    return ctypes.CDLL(str(out / "hdqr.so")).lqr_hd_


def quantile_path(
    X: Array, z: Array, tau: float, penalties: Array, tol: float
) -> Array:
    """Intercepts and coefficients, one row per penalty, largest first."""
    n, p = X.shape
    most = min(int((p + 1) * 1.2), p)
    number = len(penalties)
    ints = {"ibeta": most, "nbeta": number, "npass": number}
    whole = {name: np.zeros(size, dtype=np.int32) for name, size in ints.items()}
    b0, used = np.zeros(number), np.zeros(number)
    beta = np.zeros((most, number), order="F")
    found, error = ctypes.c_int(0), ctypes.c_int(0)
    double, integer = ctypes.c_double, ctypes.c_int
    arguments = [
        *(double(-1.0), double(RIDGE), double(SMOOTHING), integer(n), integer(p)),
        *(np.array(X, order="F"), np.array(z, dtype=float), double(tau)),
        *(np.zeros(1, dtype=np.int32), integer(1), np.ones(p), np.ones(p)),
        *(integer(p + 1), integer(most), integer(number), double(1.0)),
        *(np.sort(penalties)[::-1].copy(), double(tol), integer(1), integer(MAX_ITER)),
        *(found, b0, beta, whole["ibeta"], whole["nbeta"], used, whole["npass"]),
        *(error, double(STEP), integer(0)),
    ]
    _solver()(
        *(
            a.ctypes.data_as(ctypes.c_void_p)
            if isinstance(a, np.ndarray)
            else ctypes.byref(a)
            for a in arguments
        )
    )
    if error.value > 0:
        raise RuntimeError(f"hdqr: error {error.value}")
    rows = np.zeros((number, p + 1))
    for k in range(found.value):
        size = whole["nbeta"][k]
        rows[k, 0] = b0[k]
        rows[k, whole["ibeta"][:size]] = beta[:size, k]
    # Where the iterations ran out, the last solution stands for the rest.
    rows[found.value :] = rows[max(found.value - 1, 0)]
    return rows


class QuanDA:
    """The classifier; only the order of its decisions has a meaning.

    Parameters
    ----------
    levels : sequence of float, optional
        Quantiles that are tried; by default 0.05 about the share of the common class
        in steps of 0.01, as published.
    n_draws : int
        Draws of the uniform numbers; 10 as published.
    seed : int
        For these and for the folds.
    """

    def __init__(
        self, levels: list[float] | None = None, n_draws: int = 10, seed: int = 0
    ) -> None:
        self.levels, self.n_draws, self.seed = levels, n_draws, seed

    def fit(self, X: Array, y: Array) -> Self:
        """Fit; `y` is 1 for the rare class and 0 for the other."""
        self._mean, self._sd = X.mean(axis=0), X.std(axis=0)
        self._sd[self._sd == 0] = 1.0
        X = (X - self._mean) / self._sd
        levels = self.levels
        if levels is None:
            near = 1 - y.mean() + np.arange(-5, 6) / 100
            levels = [float(t) for t in near if 0 < t < 0.9999]
        coef = np.zeros((len(levels), X.shape[1] + 1))
        area = np.zeros(len(levels))
        for draw in range(self.n_draws):
            rng = np.random.default_rng([self.seed, draw])
            z = y + rng.random(len(y))
            fold = rng.permutation(np.arange(len(y)) % FOLDS)
            for k, tau in enumerate(levels):
                areas = self._held_out(X, y, z, fold, tau)
                best = PENALTIES[areas >= areas.max()].max()
                path = np.linspace(best + 2, best, 5)
                coef[k] += quantile_path(X, z, tau, path, TOL)[-1] / self.n_draws
                area[k] += areas.max() / self.n_draws
        self.levels_, self.area_, self.path_ = levels, area, coef
        self.coef_ = coef[int(np.argmax(area))]
        return self

    def _held_out(self, X: Array, y: Array, z: Array, fold: Array, tau: float) -> Array:
        scores = np.zeros((len(PENALTIES), len(y)))
        for f in range(FOLDS):
            out = fold == f
            rows = quantile_path(X[~out], z[~out], tau, PENALTIES, TOL_FOLDS)
            scores[:, out] = rows[:, :1] + rows[:, 1:] @ X[out].T
        return np.array([roc_auc_score(y, row) for row in scores])

    def decisions(self, X: Array, coef: Array | None = None) -> Array:
        """Scores of samples, larger for the rare class."""
        chosen = self.coef_ if coef is None else coef
        scores: Array = ((X - self._mean) / self._sd) @ chosen[1:] + chosen[0]
        return scores
