"""What every prior family must do, and what the check of it finds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import norm

from ebda import EBClassifier, NormalMeans
from ebda.priors import (
    PRIORS,
    BasePriorEstimator,
    DirichletProcess,
    DiscretePrior,
    FixedPrior,
    Kernel,
    PointExponential,
    PriorFamily,
    check_prior,
    make_prior,
)
from ebda.priors.base import check_values
from ebda.storage.arrays import decode
from ebda.storage.fields import Reader, Writer
from ebda.storage.objects import (
    SCHEMAS,
    decode_object,
    encode_object,
    names_of,
    schema_of,
)

TRUTH = DiscretePrior([-3.0, 0.0, 4.0], [0.05, 0.9, 0.05])


@pytest.fixture(params=sorted(PRIORS))
def family(request: pytest.FixtureRequest) -> Any:
    if not PRIORS[request.param].is_estimated:
        return FixedPrior(TRUTH)
    return make_prior(request.param, random_state=0)


def test_every_family_keeps_the_contract(family: Any) -> None:
    # A kernel estimate of the density need not be that of any prior.
    one_sided = isinstance(family, PointExponential)
    check_prior(family, not isinstance(family, Kernel), one_sided)


def test_works_in_the_estimators(family: Any) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 50))
    X[10:, :10] += 3
    y = np.repeat([0, 1], 10)
    assert EBClassifier(prior=family).fit(X, y).score(X, y) == 1
    z = rng.normal(size=1500) + np.repeat([0.0, 4.0, -3.0], [1350, 75, 75])
    assert np.isfinite(NormalMeans(prior=family).fit(z).posterior_mean_).all()


# What the check finds


class Broken(BasePriorEstimator):
    """Right but for what a subclass changes: of the prior, or of its posterior."""

    def fit(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Any:
        check_values(z, scale)
        self.prior_ = Changed(copy.copy(self))
        return self

    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {}

    def logpdf(self, z: np.ndarray, log_density: np.ndarray) -> np.ndarray:
        return log_density


class Changed:
    def __init__(self, broken: Broken) -> None:
        self.broken = broken

    def posterior(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Any:
        posterior = TRUTH.posterior(z, scale)
        return ChangedPosterior(posterior, self.broken.posterior(posterior))

    def logpdf(self, z: npt.ArrayLike, scale: npt.ArrayLike = 1.0) -> Any:
        return self.broken.logpdf(np.asarray(z), TRUTH.logpdf(z, scale))


class ChangedPosterior:
    def __init__(self, posterior: Any, changes: dict[str, Any]) -> None:
        self._posterior, self._changes = posterior, changes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._changes.get(name, getattr(self._posterior, name))


class NotItself(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        return Broken().fit(z, scale)


class ChangesParameters(Broken):
    def __init__(self, width: float = 1.0) -> None:
        self.width = width

    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.width = 2.0
        return super().fit(z, scale)


class FittedWhenMade(Broken):
    def __init__(self) -> None:
        self.prior_ = TRUTH


class WritesIntoValues(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        super().fit(z, scale)
        if isinstance(z, np.ndarray) and z.flags.writeable and z.size:
            z.flat[0] = 0.0
        return self


class WithoutDensity(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        check_values(z, scale)
        self.prior_ = type("", (), {"posterior": TRUTH.posterior})()
        return self


class KeepsTheValues(Broken):
    """The prior sees what happens to the array that it was fitted to."""

    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.values_ = z
        return super().fit(z, scale)

    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"mean": posterior.mean + np.ravel(self.values_)[0]}


class FromTheLastFit(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        check_values(z, scale)
        self.fits_ = getattr(self, "fits_", 0) + 1
        self.prior_ = Changed(self)
        return self

    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"mean": posterior.mean * (1 + 1e-9 * self.fits_)}


class Random(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.shift_ = 1e-9 * np.random.default_rng().normal()
        return super().fit(z, scale)

    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"mean": posterior.mean + self.shift_}


class ByTheOrder(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.shift_ = 1e-3 * np.ravel([*np.ravel(z), 0.0])[0]
        return super().fit(z, scale)

    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"mean": posterior.mean + self.shift_}


class ByTheShape(ByTheOrder):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.shift_ = 1e-3 * np.ndim(z)
        return Broken.fit(self, z, scale)


class NegativeProbabilities(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"prob_zero": posterior.prob_zero - 0.1}


class SmallSignRates(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"lfsr": posterior.lfsr * 0.5}


class LargeSignRates(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"lfsr": np.sqrt(posterior.lfsr)}


class Variances(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"sd": 0.01 * posterior.sd**2}


def interval(mean: np.ndarray, half: Callable[[float], np.ndarray]) -> Any:
    def ends(level: float) -> tuple[np.ndarray, np.ndarray]:
        if not 0 < level < 1:
            raise ValueError("level must lie between 0 and 1")
        return mean - half(level), mean + half(level)

    return ends


class NarrowerWithTheLevel(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        sd = posterior.sd
        return {"interval": interval(posterior.mean, lambda level: sd * (1 - level))}


class AnyLevel(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {
            "interval": lambda level: posterior.interval(np.clip(level, 0.1, 0.995))
        }


class NoShrinkage(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        z, sd = posterior.z, np.ones(posterior.z.shape)
        ends = interval(z, lambda level: norm.isf((1 - level) / 2) * sd)
        return {"mean": z, "sd": sd, "interval": ends}


class Flat(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        return {"mean": posterior.mean.ravel()}


class TwiceTheDensity(Broken):
    def logpdf(self, z: np.ndarray, log_density: np.ndarray) -> np.ndarray:
        return log_density + np.log(2)


class OtherDensity(Broken):
    def logpdf(self, z: np.ndarray, log_density: np.ndarray) -> np.ndarray:
        return DiscretePrior([0.0], [1.0]).logpdf(z)


class UnsureFarOut(Broken):
    def posterior(self, posterior: Any) -> dict[str, Any]:
        far = np.abs(posterior.z) > 1e5
        return {"prob_zero": np.maximum(posterior.prob_zero, far * 1e-3)}


class AnyValues(Broken):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        self.prior_ = Changed(self)
        return self


class VagueErrors(AnyValues):
    def fit(self, z: Any, scale: Any = 1.0) -> Any:
        if not np.size(z) or not np.isfinite(z).all():
            raise ValueError("bad values")
        return super().fit(z, scale)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NotItself, "fit does not return the estimator"),
        (ChangesParameters, "fit changes parameters"),
        (FittedWhenMade, "there is a prior_ before any fit"),
        (WritesIntoValues, "fit changes the values"),
        (WithoutDensity, "prior_ has no method logpdf"),
        (KeepsTheValues, "a fitted prior changes when the values do"),
        (FromTheLastFit, "a fitted prior changes .* or with another fit"),
        (Random, "another fit to the same values gives another result"),
        (ByTheOrder, "depends on the order of the values"),
        (ByTheShape, "depends on the shape of the values"),
        (NegativeProbabilities, "prob_zero is not a probability"),
        (SmallSignRates, "lfsr is less than prob_zero"),
        (LargeSignRates, "lfsr is larger than prob_zero allows"),
        (Variances, "is not that of a distribution with this mean and sd"),
        (
            NarrowerWithTheLevel,
            r"interval\(0.9\) does not contain one of a lower level",
        ),
        (AnyLevel, r"interval\(0.0\) raises no ValueError"),
        (NoShrinkage, "more than half the squared error"),
        (Flat, r"mean of values of shape \(\) is not finite and of that shape"),
        (TwiceTheDensity, "the density of logpdf integrates to 2.0"),
        (OtherDensity, "by Tweedie's formula the mean at z = "),
        (UnsureFarOut, "prob_zero is not 0 for z = 1e6"),
        (AnyValues, r"fit\(\[\], 1.0\) raises no ValueError"),
        (VagueErrors, r"the error of fit\(\[\], 1.0\) does not say 'no values'"),
    ],
)
def test_the_check_says_what_is_broken(
    broken: type[BasePriorEstimator], message: str
) -> None:
    with pytest.raises(AssertionError, match=f"^{broken.__name__}.*: .*{message}"):
        check_prior(broken())


@pytest.mark.slow
def test_only_a_sound_family_passes() -> None:
    check_prior(Broken())
    with pytest.raises(AssertionError, match="falls with z near z = "):
        check_prior(Kernel())


def test_the_check_changes_nothing() -> None:
    estimator = DirichletProcess(sigma=3.0)
    check_prior(estimator)
    assert estimator.sigma == 3.0
    assert not hasattr(estimator, "prior_")


# The registry


def test_names_estimators_and_priors_all_make_a_prior() -> None:
    given = DiscretePrior([0, 2], [0.5, 0.5])
    assert make_prior(given).fit([1.0]).prior_ is given
    named = make_prior("dp", n_jobs=2, random_state=1, unknown=3)
    assert named.get_params()["n_jobs"] == 2
    estimator = PRIORS["dp"].estimator(alpha=2.0)
    assert make_prior(estimator) is not estimator
    assert make_prior(estimator).get_params() == estimator.get_params()


def test_a_name_has_settings_for_classifiers() -> None:
    assert make_prior("dp").get_params()["tol"] is None
    assert make_prior("dp", for_classifier=True).get_params()["tol"] == 1e-7
    assert make_prior("dp", for_classifier=True, tol=0.1).get_params()["tol"] == 0.1
    given = make_prior(DirichletProcess(tol=0.2), for_classifier=True)
    assert given.get_params()["tol"] == 0.2


def test_entries_say_what_a_family_is() -> None:
    for name, family in PRIORS.items():
        assert family.name == name
        assert family.line
        assert set(family.classifier_settings) <= set(family.parameters)
        assert family.is_estimated == (name != "fixed")
        assert family.estimator.__name__ in names_of("family")
    assert {name for name, f in PRIORS.items() if "start" in f.parameters} == {"dp"}
    for names in (names_of("prior"), names_of("posterior"), names_of("family")):
        assert len(set(names)) == len(names)
        assert all(SCHEMAS[name].name == name for name in names)


def test_one_line_adds_a_family() -> None:
    with PRIORS.added(PriorFamily("broken", "a toy", Broken)):
        assert isinstance(make_prior("broken"), Broken)
        assert isinstance(NormalMeans(prior="broken").fit([1.0]).prior_, Changed)
    with pytest.raises(ValueError, match="prior must be one of"):
        make_prior("broken")


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="prior must be one of"):
        make_prior("gauss")
    with pytest.raises(TypeError, match="posterior"):
        make_prior(3).fit([1.0])


def test_fixed_needs_its_prior() -> None:
    with pytest.raises(TypeError, match="must be given"):
        FixedPrior().fit([1.0])
    with pytest.raises(TypeError, match="must be given"):
        EBClassifier(prior="fixed").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])


# In a model file


def stored(value: Any, names: tuple[str, ...], **former: str) -> Any:
    """An object as it comes out of a file, where fields may have a former name."""
    schema, writer = schema_of(value), Writer()
    assert schema is not None
    entry = encode_object(value, schema, writer, "it")
    for name, old in former.items():
        entry["fields"][old] = entry["fields"].pop(name)
    arrays = [decode(what, BytesIO(data), 0) for what, data in writer.parts]
    return decode_object(entry, names, Reader(arrays), {}, "it")


def test_families_and_posteriors_can_be_stored(family: Any) -> None:
    z = np.random.default_rng(2).normal(size=200)
    family.fit(z)
    again = stored(family, names_of("family"))
    assert again.get_params().keys() == family.get_params().keys()
    want = family.prior_.posterior(z)
    for got in (again.prior_.posterior(z), stored(want, names_of("posterior"))):
        for name in ("mean", "prob_zero", "sd", "lfsr"):
            np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    if isinstance(family, Kernel):  # as the first files have it
        got = stored(want, names_of("posterior"), curvature="bend")
        np.testing.assert_array_equal(got.sd, want.sd)
