"""Components that only these tests know work wherever those of ebda do.

One file and one line add a component: here the file is this one, and the line is
``COVARIANCES.added(ENTRY)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
import pytest
import zarr

from ebda import EBClassifier, NormalMeans, load, save
from ebda.baselines import IndependenceRule
from ebda.covariance import (
    COVARIANCES,
    Covariance,
    CovarianceEstimator,
    Decorrelated,
    Diagonal,
    Summary,
)
from ebda.data import Samples
from ebda.evaluation import cross_validate
from ebda.moments import (
    VARIANCES,
    ClassMoments,
    Variance,
    VarianceEstimator,
    class_contrasts,
    class_moments,
)
from ebda.moments.variance import pooled
from ebda.priors import PRIORS
from ebda.priors.posterior import Posterior
from ebda.registry import Entry, Registry
from ebda.report import render
from ebda.rule.shrinkage import SHRINKAGES, Shrinkage
from ebda.sizes import override

TOLERANCE = 1e-10

# A covariance of one's own: each two features are equally correlated.


@dataclass(frozen=True, eq=False)
class Equicorrelation(Covariance):
    """``R = (1 - a) I + a 1 1'``, skipping features that are constant.

    R is ``1 - a`` times the identity but for the direction of the mean of all features,
    where it is ``1 - a + p a``.
    """

    a: float
    constant: npt.NDArray[np.bool_]
    is_diagonal = False
    n_factors = 0

    def decorrelate(self, z: np.ndarray) -> Decorrelated:
        return Decorrelated(self._power(z, -0.5))

    def restore(self, e: np.ndarray, values: Decorrelated) -> np.ndarray:
        return self._power(e, 0.5)

    def solve(self, rows: np.ndarray) -> np.ndarray:
        return self._power(rows, -1.0)

    def _power(self, rows: np.ndarray, exponent: float) -> np.ndarray:
        varying = rows[:, ~self.constant]
        mean = varying.mean(axis=1, keepdims=True)
        along = (1 - self.a + varying.shape[1] * self.a) ** exponent * mean
        out = np.zeros_like(rows)
        out[:, ~self.constant] = along + (1 - self.a) ** exponent * (varying - mean)
        return out


def equicorrelation(data: Summary) -> Covariance:
    """The mean correlation of two features, or none if it is small."""
    moments, contrasts, samples = data.moments, data.contrasts, data.samples
    assert samples is not None
    whole = np.where(contrasts.constant, -1, 0)  # all features in the first "third"
    sd = np.sqrt(contrasts.variance)
    total = samples.neighbour_sums(moments.means, sd, whole).thirds[:, 0]
    p = np.count_nonzero(~contrasts.constant)
    df = samples.weight.sum() - len(np.unique(samples.codes))
    a = (total @ total / df - p) / (p * (p - 1))
    return Diagonal() if a < 0.05 else Equicorrelation(min(a, 0.95), contrasts.constant)


TOY = CovarianceEstimator(
    "toy", "all features correlated alike", equicorrelation, needs_samples=True
)


# A variance and a shrinkage of one's own.


def offset(moments: ClassMoments) -> Variance:
    """The pooled variances and their median."""
    plain = pooled(moments)
    within = plain.within + np.median(plain.within)
    return Variance(within, within[None, :], plain.degrees_of_freedom)


def soft(z: np.ndarray, posterior: Posterior, kappa: float) -> np.ndarray:
    """The posterior mean, nearer to zero by kappa."""
    mean = posterior.mean
    return np.sign(mean) * np.maximum(np.abs(mean) - kappa, 0.0)


OFFSET = VarianceEstimator(
    "offset", "pooled, with the median added", offset, min_samples=2
)
SOFT = Shrinkage("soft", "posterior means less a constant", soft)


N, P = 44, 150


def data() -> tuple[np.ndarray, np.ndarray]:
    """Two classes; all features share one source of noise, and one is constant."""
    rng = np.random.default_rng(7)
    codes = np.arange(N) % 2
    X = np.sqrt(0.4) * rng.normal(size=(N, 1)) + np.sqrt(0.6) * rng.normal(size=(N, P))
    X[:, :20] += 0.9 * codes[:, None] * rng.choice([-1.0, 1.0], 20)
    X *= rng.uniform(0.5, 2.0, P)
    X[:, 30] = 7.0
    return X, np.array(["ctrl", "case"])[codes]


@pytest.fixture
def toy() -> Iterator[None]:
    with COVARIANCES.added(TOY):
        yield


# What the test's own component computes


def test_the_toy_is_what_it_says() -> None:
    X, y = data()
    codes = (y == "case").astype(int)
    moments = class_moments(X, codes, 2)
    contrasts = class_contrasts(moments, pooled(moments))
    varying = ~contrasts.constant
    residual = (X - moments.means[codes])[:, varying]
    correlation = np.corrcoef(residual.T)
    a = (correlation.sum() - (P - 1)) / ((P - 1) * (P - 2))
    R = np.full((P - 1, P - 1), a)
    np.fill_diagonal(R, 1.0)
    with COVARIANCES.added(TOY):
        model = EBClassifier(
            covariance="toy", variance="pooled", shrinkage="mean", calibrate=False
        )
        model.fit(X, y)
    assert 0.2 < a < 0.5
    # classes_ are in alphabetical order, and the posterior is that of R^-1/2 z.
    value, U = np.linalg.eigh(R)
    z = contrasts.z[0, varying] * (1 if model.classes_[1] == "case" else -1)
    np.testing.assert_allclose(
        model.z_[varying], U @ ((U.T @ z) / np.sqrt(value)), atol=1e-9
    )
    eta = U @ (np.sqrt(value) * (U.T @ model.posterior_mean_[varying]))
    s = np.sqrt(contrasts.variance[varying])
    d = eta * contrasts.scale[0, varying]
    want = np.linalg.solve(R * np.outer(s, s), d)
    np.testing.assert_allclose(model.coef_[0, varying], want, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(model.coef_[0, ~varying], 0.0)


# In memory, on disk, on Dask, and in batches


def as_memmap(X: np.ndarray, folder: Path) -> Any:
    stored = np.memmap(folder / "X.bin", dtype=X.dtype, mode="w+", shape=X.shape)
    stored[:] = X
    return stored


def as_zarr(X: np.ndarray, folder: Path) -> Any:
    stored = zarr.create_array(
        folder / "X.zarr", shape=X.shape, chunks=(13, 40), dtype=X.dtype
    )
    stored[:] = X
    return stored


STORES: dict[str, Callable[[np.ndarray, Path], Any]] = {
    "Fortran order": lambda X, folder: np.asfortranarray(X),
    "memmap": as_memmap,
    "Zarr": as_zarr,
    "Dask": lambda X, folder: da.from_array(X, chunks=(17, 60)),
    "Dask, by features": lambda X, folder: da.from_array(X, chunks=(N, 37)),
}


def assert_same_fit(got: EBClassifier, want: EBClassifier) -> None:
    assert np.abs(want.coef_).max() > 0.01
    for name in ("coef_", "intercept_", "z_", "posterior_mean_", "prob_zero_"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=0, atol=TOLERANCE
        )
    assert got.selection_.candidates == want.selection_.candidates
    np.testing.assert_allclose(
        got.selection_.weight, want.selection_.weight, atol=TOLERANCE
    )


@pytest.mark.parametrize("covariance", ["toy", "auto"])
@pytest.mark.parametrize("store", STORES)
def test_a_covariance_works_wherever_the_data_are(
    toy: None, store: str, covariance: str, tmp_path: Path
) -> None:
    X, y = data()
    want = EBClassifier(covariance=covariance).fit(X, y)
    with dask.config.set(scheduler="synchronous"):
        got = EBClassifier(covariance=covariance).fit(STORES[store](X, tmp_path), y)
    assert_same_fit(got, want)
    tried = {name for name, _ in want.selection_.candidates}
    assert "toy" in tried
    assert tried == {"toy"} or covariance == "auto"


@pytest.mark.parametrize("covariance", ["toy", "auto"])
def test_a_covariance_works_in_batches(toy: None, covariance: str) -> None:
    X, y = data()
    want = EBClassifier(covariance=covariance).fit(X, y)
    stream = EBClassifier(covariance=covariance)
    for rows in np.array_split(np.arange(N), [11, 30]):
        stream.partial_fit(X[rows], y[rows], classes=np.unique(y))
    assert_same_fit(stream, want)


def test_a_covariance_is_another_rule(toy: None) -> None:
    X, y = data()
    fits = {name: EBClassifier(covariance=name).fit(X, y) for name in COVARIANCES}
    for name in (name for name in COVARIANCES if name != "toy"):
        assert not np.allclose(fits["toy"].coef_, fits[name].coef_, rtol=1e-3)
    # Where it finds nothing it is the diagonal, as any other.
    rng = np.random.default_rng(1)
    X = rng.normal(size=X.shape) + 0.5 * (y == "case")[:, None]
    toy_, plain = (
        EBClassifier(covariance=name, shrinkage="mean").fit(X, y)
        for name in ("toy", "diagonal")
    )
    np.testing.assert_array_equal(toy_.coef_, plain.coef_)


def test_auto_leaves_out_what_does_not_want_to_be_compared() -> None:
    X, y = data()
    shy = CovarianceEstimator(
        "toy", "", equicorrelation, needs_samples=True, in_auto=False
    )
    want = EBClassifier().fit(X, y)
    with COVARIANCES.added(shy):
        got = EBClassifier().fit(X, y)
    assert got.selection_.candidates == want.selection_.candidates
    np.testing.assert_array_equal(got.coef_, want.coef_)


def test_what_needs_an_order_is_left_out_where_there_is_none() -> None:
    """Rules are compared on some of the features, which are no neighbours then."""
    X, y = data()
    seen: list[int] = []

    def ordered(data: Summary) -> Covariance:
        seen.append(len(data.contrasts.variance))
        return Equicorrelation(0.3, data.contrasts.constant)

    entry = CovarianceEstimator("ordered", "in a row", ordered, needs_order=True)
    small = {"most_compared": 50, "least_compared": 50, "compared_values": 1}
    with COVARIANCES.added(entry):
        model = EBClassifier().fit(X, y)
        assert "ordered" in {name for name, _ in model.selection_.candidates}
        seen.clear()
        with override(**small):
            model = EBClassifier().fit(X, y)
        assert "ordered" not in {name for name, _ in model.selection_.candidates}
        assert seen == []
        with override(**small):  # by name it is used all the same
            model = EBClassifier(covariance="ordered").fit(X, y)
        assert {name for name, _ in model.selection_.candidates} == {"ordered"}


def test_what_needs_no_samples_gets_none() -> None:
    X, y = data()
    given: list[Samples | None] = []

    def fixed(data: Summary) -> Covariance:
        given.append(data.samples)
        return Equicorrelation(0.3, data.contrasts.constant)

    with COVARIANCES.added(CovarianceEstimator("fixed", "as it is", fixed)):
        stream = EBClassifier(covariance="fixed", shrinkage="mean", calibrate=False)
        for rows in np.array_split(np.arange(N), 2):
            stream.partial_fit(X[rows], y[rows], classes=np.unique(y))
    assert given == [None, None]
    assert stream.samples_ is None


# In a model file and in the report


@pytest.mark.parametrize("covariance", ["toy", "auto"])
def test_a_covariance_goes_into_a_model_file(
    toy: None, covariance: str, tmp_path: Path
) -> None:
    X, y = data()
    model = EBClassifier(covariance=covariance).fit(X, y)
    save(model, tmp_path / "toy.ebda")
    got = load(tmp_path / "toy.ebda")
    assert got.get_params() == model.get_params()
    assert got.selection_.candidates == model.selection_.candidates
    np.testing.assert_array_equal(got.coef_, model.coef_)
    np.testing.assert_array_equal(got.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(got.predict(X), model.predict(X))


def test_a_file_of_a_component_that_is_not_there_says_so(tmp_path: Path) -> None:
    X, y = data()
    with COVARIANCES.added(TOY):
        save(EBClassifier(covariance="toy").fit(X, y), tmp_path / "toy.ebda")
    with pytest.raises(ValueError, match=r"covariance must be one of.*'toy'"):
        load(tmp_path / "toy.ebda")


@pytest.mark.parametrize("covariance", ["toy", "auto"])
def test_the_report_says_what_a_covariance_is(toy: None, covariance: str) -> None:
    X, y = data()
    model = EBClassifier(covariance=covariance).fit(X, y)
    assert TOY.line in render(model, X=X, y=y)


# The same for a variance and a shrinkage


def test_a_variance_works_everywhere(tmp_path: Path) -> None:
    X, y = data()
    with VARIANCES.added(OFFSET):
        model = EBClassifier(variance="offset", covariance="diagonal").fit(X, y)
        plain = IndependenceRule(variance="offset").fit(X, y)
        stored = EBClassifier(variance="offset", covariance="diagonal")
        assert_same_fit(stored.fit(as_memmap(X, tmp_path), y), model)
        save(model, tmp_path / "offset.ebda")
        got = load(tmp_path / "offset.ebda")
        page = render(model, X=X, y=y)
    within = pooled(model.moments_).within
    want = np.where(model.contrasts_.constant, 1.0, within + np.median(within))
    np.testing.assert_allclose(model.contrasts_.variance, want, rtol=1e-12)
    np.testing.assert_allclose(plain.contrasts_.variance, want, rtol=1e-12)
    np.testing.assert_array_equal(got.predict_proba(X), model.predict_proba(X))
    assert got.variance == "offset"
    assert OFFSET.line in page


def test_a_variance_says_how_many_samples_it_needs() -> None:
    X, y = data()
    few = np.r_[np.flatnonzero(y == "ctrl")[:8], np.flatnonzero(y == "case")[:1]]
    want = "variance='offset' needs 2 samples in every class, and class 'case' has"
    with VARIANCES.added(OFFSET), pytest.raises(ValueError, match=want):
        EBClassifier(variance="offset").fit(X[few], y[few])


def test_a_shrinkage_works_everywhere(tmp_path: Path) -> None:
    X, y = data()
    settings = {
        "covariance": "diagonal",
        "shrinkage": "soft",
        "zero_threshold": 0.3,
        "calibrate": False,
    }
    with SHRINKAGES.added(SOFT):
        model = EBClassifier(**settings).fit(X, y)
        assert_same_fit(EBClassifier(**settings).fit(as_memmap(X, tmp_path), y), model)
        save(model, tmp_path / "soft.ebda")
        got = load(tmp_path / "soft.ebda")
        page = render(model, X=X, y=y)
    mean = model.posterior_mean_
    eta = np.sign(mean) * np.maximum(np.abs(mean) - 0.3, 0.0)
    scale, variance = model.contrasts_.scale[0], model.contrasts_.variance
    np.testing.assert_allclose(model.coef_[0], eta * scale / variance, rtol=1e-12)
    np.testing.assert_array_equal(got.predict_proba(X), model.predict_proba(X))
    assert got.shrinkage == "soft"
    assert SOFT.line in page


def test_a_covariance_names_the_shrinkages_that_are_compared_with_it() -> None:
    X, y = data()
    entry = CovarianceEstimator(
        "toy",
        "all features correlated alike",
        equicorrelation,
        needs_samples=True,
        compared=("none", "soft"),
    )
    with SHRINKAGES.added(SOFT), COVARIANCES.added(entry):
        model = EBClassifier().fit(X, y)
        evaluation = cross_validate(EBClassifier(), X, y, n_folds=3)
        page = render(model, X=X, y=y, evaluation=evaluation)
    assert {("toy", "none"), ("toy", "soft")} <= set(model.selection_.candidates)
    assert SOFT.line in page
    assert entry.line in page


def test_the_weights_of_a_covariance_follow_from_restore_and_solve() -> None:
    """One that has no shorter way gets them from its other methods."""
    rng = np.random.default_rng(3)
    constant = np.arange(P) == 30
    toy_ = Equicorrelation(0.3, constant)
    e, unit = rng.normal(size=(2, P)), rng.uniform(0.5, 2.0, (2, 1))
    e[:, constant] = 0.0
    R = np.full((P, P), 0.3) + 0.7 * np.eye(P)
    R[constant], R[:, constant] = 0.0, 0.0
    R[constant, constant] = 1.0
    value, U = np.linalg.eigh(R)
    d = unit * (e @ (U * np.sqrt(value)) @ U.T)
    want = np.linalg.solve(R, d.T).T
    weights, variance = toy_.weigh(e, toy_.decorrelate(e), unit)
    np.testing.assert_allclose(weights, want, atol=1e-10)
    np.testing.assert_allclose(variance, (want * d).sum(axis=1))


# Errors


@pytest.mark.parametrize(
    ("parameter", "registry", "besides"),
    [
        ("covariance", COVARIANCES, ["auto"]),
        ("shrinkage", SHRINKAGES, ["auto"]),
        ("variance", VARIANCES, []),
    ],
)
@pytest.mark.parametrize("name", ["plum", "", None, 3, ["diagonal"]])
def test_errors_name_the_parameter_and_list_the_choices(
    parameter: str, registry: Registry[Any], besides: list[str], name: Any
) -> None:
    X, y = data()
    with pytest.raises(ValueError, match="must be one of") as caught:
        EBClassifier(**{parameter: name}).fit(X, y)
    choices = [*besides, *registry]
    want = f"{parameter} must be one of {choices}, got {name!r}"
    assert str(caught.value) == want


@pytest.mark.parametrize("make", [EBClassifier, NormalMeans])
def test_errors_list_the_priors_too(make: Any) -> None:
    X, y = data()
    with pytest.raises(ValueError, match="prior must be one of") as caught:
        make(prior="plum").fit(*((X, y) if make is EBClassifier else (X[0],)))
    assert all(repr(name) in str(caught.value) for name in PRIORS)
    assert "'plum'" in str(caught.value)


def test_errors_list_a_choice_that_was_added(toy: None) -> None:
    X, y = data()
    want = rf"{list(COVARIANCES)[-2]!r}, 'toy'\], got 'plum'"
    with pytest.raises(ValueError, match=want):
        EBClassifier(covariance="plum").fit(X, y)


def test_an_entry_is_there_inside_its_block_only() -> None:
    before = dict(COVARIANCES)
    with COVARIANCES.added(TOY):
        assert list(COVARIANCES) == [*before, "toy"]
        assert COVARIANCES["toy"] is COVARIANCES.find("toy") is TOY
        with (
            pytest.raises(ValueError, match="there is a covariance named 'toy'"),
            COVARIANCES.added(TOY),
        ):
            pass
        assert COVARIANCES["toy"] is TOY
    assert dict(COVARIANCES) == before
    with pytest.raises(RuntimeError, match="inside"), COVARIANCES.added(TOY):
        raise RuntimeError("inside")
    assert dict(COVARIANCES) == before


def test_every_choice_has_a_name_and_a_line() -> None:
    for registry in (PRIORS, COVARIANCES, VARIANCES, SHRINKAGES):
        for name, entry in registry.items():
            assert isinstance(entry, Entry)
            assert entry.name == name
            assert entry.line
        lines = [entry.line for entry in registry.values()]
        assert len(set(lines)) == len(lines)
