"""Fits to arrays of array-api-strict and PyTorch: the same model, the same kind.

Those of PyTorch run where it is installed (``make test-torch``), and on a GPU where
there is one; arrays of array-api-strict lie on a device that NumPy cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import array_api_strict as strict
import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from ebda import EBClassifier
from ebda.baselines import FAIR, GreenshteinPark, IndependenceRule
from ebda.data import (
    DeviceMemoryWarning,
    InMemory,
    Labels,
    NonFiniteError,
    as_data,
    as_host,
    like,
    on_device,
)
from ebda.data.device import LIBRARIES
from ebda.data.device.matrix import over_columns
from ebda.datasets import make_two_class
from ebda.evaluation import cross_validate, evaluate, permutation_test
from ebda.sizes import override

ELSEWHERE = strict.Device("device1")


def on_strict(X: Any) -> Any:
    return strict.asarray(X, device=ELSEWHERE)


def on_torch(X: Any) -> Any:
    return pytest.importorskip("torch").from_numpy(X.copy())


def on_cuda(X: Any) -> Any:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")
    return torch.from_numpy(X.copy()).cuda()


def on_cupy(X: Any) -> Any:
    cupy = pytest.importorskip("cupy")
    if not cupy.is_available():
        pytest.skip("this machine has no CUDA device")
    return cupy.asarray(X)


def on_jax(X: Any) -> Any:
    jax = pytest.importorskip("jax")
    with LIBRARIES["jax"].precise():
        return jax.numpy.asarray(X)


Make = Callable[[Any], Any]
MAKES = pytest.mark.parametrize("make", [on_strict, on_torch, on_cuda, on_cupy, on_jax])


@pytest.fixture(autouse=True)
def dispatch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # scikit-learn looks whether SciPy was asked to take other arrays, too.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    try:
        context = sklearn.config_context(array_api_dispatch=True)
        context.__enter__()
    except ImportError as error:
        pytest.skip(str(error))
    try:
        yield
    finally:
        context.__exit__(None, None, None)


def samples(factors: bool = False, classes: int = 2) -> tuple[Any, Any]:
    sim = make_two_class(n_per_class=24, n_features=400, effect=1.0, random_state=0)
    X, y = sim.data.astype(np.float32), (sim.target == "b").astype(np.int64)
    if factors:
        rng = np.random.default_rng(1)
        X += (rng.normal(size=(48, 2)) @ rng.normal(size=(2, 400))).astype(np.float32)
    if classes > 2:
        y[::classes] = 2
    return X, y


def same(got: Any, want: Any) -> None:
    np.testing.assert_allclose(
        got, want, rtol=1e-8, atol=1e-8 * float(np.abs(want).max())
    )


@MAKES
@pytest.mark.parametrize("case", ["plain", "factors", "classes", "offset", "missing"])
def test_a_fit_is_that_of_numpy_and_results_are_of_the_library_of_x(
    make: Make, case: str
) -> None:
    X, y = samples(case == "factors", 3 if case == "classes" else 2)
    if case == "offset":
        X += np.float32(1e4)
    if case == "missing":
        X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    want = EBClassifier().fit(X, y)
    given, labels = make(X), make(y)
    got = EBClassifier().fit(given, labels)
    for name in ("coef_", "intercept_", "z_", "posterior_mean_"):
        same(getattr(got, name), getattr(want, name))
    assert isinstance(got.coef_, np.ndarray)
    methods = "decision_function", "transform", "predict_proba", "predict_log_proba"
    for name in methods:
        found = getattr(got, name)(given)
        assert type(found) is type(given)
        same(as_host(found), getattr(want, name)(X))
    predicted = got.predict(given)
    assert type(predicted) is type(given)
    np.testing.assert_array_equal(as_host(predicted), want.predict(X))
    assert got.score(given, labels) == want.score(X, y)


def test_results_lie_where_x_lies() -> None:
    X, y = samples()
    given = on_strict(X)
    model = EBClassifier().fit(given, y)
    for method in ("decision_function", "predict", "predict_proba", "transform"):
        assert getattr(model, method)(given).device == ELSEWHERE
    # NumPy itself cannot look at it: what was needed came over block by block.
    with pytest.raises(RuntimeError, match="device1"):
        np.asarray(given)


def test_labels_that_are_text_stay_text() -> None:
    X, y = samples()
    text = np.array(["ill", "well"])[y]
    model = EBClassifier().fit(on_strict(X), text)
    found = model.predict(on_strict(X))
    np.testing.assert_array_equal(found, EBClassifier().fit(X, text).predict(X))


@MAKES
@pytest.mark.parametrize("rule", [IndependenceRule, GreenshteinPark])
def test_rules_of_moments_alone_come_along(make: Make, rule: Any) -> None:
    X, y = samples()
    same(rule().fit(make(X), y).coef_, rule().fit(X, y).coef_)


def test_rules_that_need_more_than_moments_say_so() -> None:
    X, y = samples()
    with pytest.raises(ValueError, match="FAIR computes with NumPy only"):
        FAIR().fit(on_strict(X), y)
    model = FAIR().fit(X, y)
    same(as_host(model.decision_function(on_strict(X))), model.decision_function(X))


@MAKES
def test_of_many_samples_the_same_are_kept(make: Make) -> None:
    X, y = samples(factors=True)
    with override(kept_samples=20, kept_per_class=4):
        want, got = EBClassifier().fit(X, y), EBClassifier().fit(make(X), y)
    same(got.coef_, want.coef_)
    same(got.selection_.weight, want.selection_.weight)


@MAKES
def test_weights_groups_and_covariates(make: Make) -> None:
    X, y = samples(factors=True)
    weight, age = np.arange(48) % 3 + 1.0, np.arange(48) * 1.0
    groups = np.arange(48) // 2 * 2 + y
    for given in ({"sample_weight": weight}, {"groups": groups}, {"covariates": age}):
        there = {
            name: values if name == "covariates" else make(values)
            for name, values in given.items()
        }
        want, got = (
            EBClassifier().fit(X, y, **given),
            EBClassifier().fit(make(X), make(y), **there),
        )
        same(got.coef_, want.coef_)
    found = got.decision_function(make(X), covariates=age)
    assert type(found) is type(make(X))
    same(as_host(found), want.decision_function(X, covariates=age))


@MAKES
def test_batches_are_one_fit(make: Make) -> None:
    X, y = samples(factors=True)
    model = EBClassifier()
    for rows in (slice(0, 30), slice(30, 48)):
        model.partial_fit(make(X[rows]), y[rows], classes=[0, 1])
    same(model.coef_, EBClassifier().fit(X, y).coef_)


def test_batches_on_different_devices_are_refused() -> None:
    X, y = samples()
    model = EBClassifier().partial_fit(on_strict(X[:30]), y[:30], classes=[0, 1])
    for later in (X[30:], strict.asarray(X[30:])):
        with pytest.raises(ValueError, match="give all batches on one device"):
            model.partial_fit(later, y[30:])


def test_without_dispatch_the_error_says_what_to_do() -> None:
    X, y = samples()
    model = EBClassifier().fit(X, y)
    with sklearn.config_context(array_api_dispatch=False):
        for call in (lambda X: EBClassifier().fit(X, y), model.predict):
            with pytest.raises(ValueError, match=r"array_api_dispatch=True\)"):
                call(on_strict(X))


@MAKES
def test_what_must_not_be_in_x_is_named(make: Make) -> None:
    X, y = samples()
    X[7, 11] = X[3, 12] = np.inf
    with pytest.raises(ValueError, match=r"infinity in columns 11, 12 .* in row 7\)"):
        EBClassifier().fit(make(X), y)
    X[7, 11] = X[3, 12] = np.nan
    with pytest.raises(ValueError, match=r"columns 11, 12 \(the first is NaN in row 7"):
        GreenshteinPark().fit(make(X), y)
    model = EBClassifier().fit(make(X), y)
    X[5, 2] = -np.inf
    with pytest.raises(ValueError, match="infinity in column 2 "):
        model.predict(make(X))
    labels = Labels(y, 2)
    with pytest.raises(NonFiniteError):
        as_data(make(X)).summarise(labels, keep=False)


def test_a_device_without_float64_is_refused() -> None:
    X, y = samples()
    with pytest.raises(ValueError, match="no float64"):
        EBClassifier().fit(strict.asarray(X, device=strict.Device("no_float64")), y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (strict.asarray([1.0, 2.0]), "1 dimension"),
        (strict.asarray([[1j, 2.0]]), "complex128, which are no numbers"),
    ],
)
def test_what_is_no_matrix_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EBClassifier().fit(given, [0])


def test_a_sparse_tensor_is_refused() -> None:
    X, y = samples()
    with pytest.raises(ValueError, match=r"X\.to_dense\(\)"):
        EBClassifier().fit(on_torch(X).to_sparse(), y)


def test_gradients_are_left_alone() -> None:
    X, y = samples()
    given = on_torch(X).requires_grad_()
    model = EBClassifier().fit(given, y)
    assert not model.decision_function(given).requires_grad
    assert given.grad is None


@pytest.mark.parametrize("make", [on_strict, on_torch])
def test_too_little_memory_means_smaller_blocks_and_a_warning(make: Make) -> None:
    """A namespace that has no more memory than a few columns need."""
    X, y = samples()
    data = as_data(make(X))
    assert data is not None
    xp = data.matrix.xp  # type: ignore[attr-defined]
    most = 200 * len(X)

    class Small:
        """The namespace, in which larger arrays do not fit."""

        def __getattr__(self, name: str) -> Any:
            return getattr(xp, name)

        def astype(self, x: Any, *rest: Any) -> Any:
            if x.shape[0] * x.shape[1] > most:
                raise RuntimeError("CUDA out of memory. Tried to allocate 20 MiB")
            return xp.astype(x, *rest)

    vars(data.matrix)["xp"] = Small()  # type: ignore[attr-defined]
    with pytest.warns(DeviceMemoryWarning, match="blocks of 400 features; going on"):
        moments, _ = data.summarise(Labels(y, 2), keep=False)
    same(moments.means, InMemory(X).summarise(Labels(y, 2), keep=False)[0].means)


def test_an_error_that_is_not_of_memory_is_raised() -> None:
    def fail(cols: slice) -> int:
        raise RuntimeError("the device fell off the bus")

    with pytest.raises(RuntimeError, match="bus"):
        list(over_columns(fail, 10, 5, "the device"))

    def never(cols: slice) -> int:
        raise MemoryError

    with pytest.warns(DeviceMemoryWarning), pytest.raises(MemoryError):
        list(over_columns(never, 2, 2, "the device"))


def test_pipelines_and_cross_validation_take_arrays_of_devices() -> None:
    X, y = samples()
    given = on_strict(X)
    want = cross_validate(EBClassifier(), X, y).probabilities
    same(cross_validate(EBClassifier(), given, on_strict(y)).probabilities, want)
    model = make_pipeline(MinMaxScaler(), EBClassifier()).fit(given, y)
    reference = make_pipeline(MinMaxScaler(), EBClassifier()).fit(X, y)
    # Scaled in float32.
    np.testing.assert_allclose(model[-1].coef_, reference[-1].coef_, rtol=1e-3)
    found = evaluate(EBClassifier().fit(given, y), given, on_strict(y))
    assert found.error == evaluate(EBClassifier().fit(X, y), X, y).error


STREAMS = [("array_api_strict", "device1"), ("torch", "cpu")]


@pytest.mark.parametrize(("library", "device"), STREAMS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_memory_map_goes_through_a_device(
    library: str, device: str, order: Any, tmp_path: Any
) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    X, y = samples(factors=True)
    stored = np.memmap(tmp_path / "X", np.float32, "w+", shape=X.shape, order=order)
    stored[:] = X
    with override(block_bytes=4000, block_rows=10, run_bytes=400):
        through = on_device(stored, device, library)
        model = EBClassifier().fit(through, y)
        want = EBClassifier().fit(X, y)
        same(model.coef_, want.coef_)
        found = model.predict_proba(through)
    assert isinstance(found, np.ndarray)
    same(found, want.predict_proba(X))


def test_errors_of_a_stream_count_the_rows_of_all_blocks() -> None:
    X, y = samples()
    X[40, 300] = np.inf
    with (
        override(block_bytes=4000, block_rows=10, run_bytes=400),
        pytest.raises(ValueError, match=r"column 300 \(the first in row 40\)"),
    ):
        EBClassifier().fit(on_device(X, "device1", "array_api_strict"), y)


def test_what_cannot_be_streamed_is_refused() -> None:
    X, _ = samples()
    for given, message in (
        (on_strict(X), "is summed where it is"),
        (X[0], "1 dimension"),
        (np.array([["a"]]), "a matrix of numbers"),
        (csr_array(X), "a matrix of numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            on_device(given, "device1", "array_api_strict")
    with pytest.raises(ValueError, match="library must be one of"):
        on_device(X, "cuda", "tensorflow")
    with pytest.raises(ValueError, match="not a valid choice"):
        on_device(X, "cuda", "array_api_strict")
    with pytest.raises(ValueError, match="no float64"):
        on_device(X, "no_float64", "array_api_strict")


def test_what_is_of_no_library_is_returned_as_it_is() -> None:
    values = np.ones(2)
    assert like(values, values) is values
    assert as_host(values) is values
    assert as_data(strict.float32) is None


def test_a_missing_compatibility_layer_is_an_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(import_module("sys").modules, "array_api_compat", None)
    with pytest.raises(ImportError, match=r"ebda\[array-api\]"):
        EBClassifier().fit(on_strict(samples()[0]), samples()[1])


@MAKES
def test_permutations_are_those_of_numpy(make: Make) -> None:
    X, y = samples()
    want = permutation_test(IndependenceRule(), X, y, 5, n_jobs=2)
    got = permutation_test(IndependenceRule(), make(X), y, 5, n_jobs=2)
    assert got.error == want.error
    np.testing.assert_array_equal(got.permuted, want.permuted)
