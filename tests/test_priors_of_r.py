"""Families of R's ashr and ebnm: likelihoods and squared errors as these have them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils import Bunch

from ebda.datasets import make_normal_means
from ebda.datasets.normal_means import DESIGNS
from ebda.priors import NPMLE, Horseshoe, NormalMixture, PointNormal, Unimodal

REFERENCE = Path(__file__).parent / "reference" / "normal_means.csv"
# Factor between the variances on ebnm's grid, which has a Kullback-Leibler divergence
# of 1/n to any scale mixture of normals.
FACTOR = {200: 2.53130080026585, 2000: 1.6165950167218321}


def draws(design: str, p: int) -> Iterator[Bunch]:
    """The draws that R was given."""
    rng = np.random.default_rng([list(DESIGNS).index(design), p, 7])
    while True:
        yield make_normal_means(design, p, rng)
        rng.permutation(p)


def cases(method: str) -> list[Any]:
    with REFERENCE.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return [
            (r["design"], int(r["p"]), int(r["rep"]), float(r["ll"]), float(r["mse"]))
            for r in rows
            if r["method"] == method
        ]


def grid_of_ebnm(sim: Bunch) -> np.ndarray:
    factor, least = FACTOR[len(sim.x)], sim.scale.min()
    top = max((sim.x**2).max() / least**2, 1) + 1
    count = int(np.ceil(np.log(top) / np.log(factor)))
    return np.asarray(least * np.sqrt(factor ** np.arange(1, count + 1) - 1))


Make = Callable[[Bunch], Any]
FAMILIES: dict[str, tuple[Make, float]] = {
    "ash_hu": (lambda sim: Unimodal(), 0.01),
    "ebnm_nsm": (lambda sim: NormalMixture(sds=grid_of_ebnm(sim)), 0.1),
    "ebnm_horseshoe": (lambda sim: Horseshoe(), 0.01),
    # Ours has a least width of the slab; where it does not matter they agree.
    "ebnm_pn": (lambda sim: PointNormal(min_sd=1e-3), 0.1),
}


@pytest.mark.parametrize("method", FAMILIES)
def test_likelihoods_and_errors_are_those_of_r(method: str) -> None:
    make, within = FAMILIES[method]
    found = cases(method)
    assert len(found) >= 21
    for design, p, rep, log_likelihood, error in found:
        if method == "ebnm_horseshoe" and p > 200:
            continue
        stream = draws(design, p)
        sim = [next(stream) for _ in range(rep)][-1]
        family = make(sim).fit(sim.x, sim.scale)
        words = f"{design}, {p} values, draw {rep}"
        # R's solvers stop early where nothing differs: ours is never below.
        assert family.log_likelihood_ > log_likelihood - within, words
        if design != "null":
            assert family.log_likelihood_ < log_likelihood + within, words
            mean = family.prior_.posterior(sim.x, sim.scale).mean
            assert np.mean((mean - sim.eta) ** 2) == pytest.approx(error, rel=0.02)


@pytest.mark.parametrize("method", ["ebnm_nsm", "ebnm_npmle"])
def test_finer_grids_are_at_least_as_likely(method: str) -> None:
    for design, p, rep, log_likelihood, _ in cases(method):
        stream = draws(design, p)
        sim = [next(stream) for _ in range(rep)][-1]
        family = NormalMixture() if method == "ebnm_nsm" else NPMLE(n_grid=600)
        found = family.fit(sim.x, sim.scale)
        assert found.log_likelihood_ > log_likelihood - 0.1
        assert found.duality_gap_ <= 1e-8
