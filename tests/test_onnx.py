"""ONNX graphs give the labels and probabilities of the model, in another runtime."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ebda
from ebda import EBClassifier, baselines
from ebda.datasets import load_golub

FAST = {"shrinkage": "mean", "covariance": "diagonal"}
LABELS: dict[str, Callable[[Any], Any]] = {
    "str": lambda codes: np.array(["ALL", "AML é", "other"])[codes],
    "object": lambda codes: np.array(["b", "c", "d"], dtype=object)[codes],
    "int": lambda codes: codes * 10 - 3,
    "uint8": lambda codes: codes.astype(np.uint8),
}


def data(n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(n_classes), 10)
    X = rng.normal(size=(len(codes), 40))
    X[np.arange(len(codes)), codes] += 1.0
    return X, codes


def run(proto: Any, X: Any) -> tuple[Any, Any]:
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    labels, probabilities = session.run(["label", "probabilities"], {"X": X})
    return labels, probabilities


def assert_agrees(model: Any, X: Any, dtype: Any = np.float32) -> None:
    X = np.asarray(X, dtype=dtype)
    labels, probabilities = run(ebda.to_onnx(model, dtype), X)
    assert labels.tolist() == model.predict(X).tolist()
    assert probabilities.dtype == dtype
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_graph_stops_at_a_missing_value(n_classes: int) -> None:
    X, codes = data(n_classes)
    proto = ebda.to_onnx(EBClassifier(**FAST).fit(X, codes))
    X[3, 5] = np.nan
    with pytest.raises(Exception, match="X_contains_NaN__impute_missing_values"):
        run(proto, X.astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LABELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_and_labels(n_classes: int, name: str, dtype: Any) -> None:
    X, codes = data(n_classes)
    model = EBClassifier(**FAST).fit(X, LABELS[name](codes))
    assert_agrees(model, X, dtype)


def test_truth_values_become_numbers() -> None:
    X, codes = data(2)
    model = EBClassifier(**FAST).fit(X, codes == 1)
    labels, _ = run(ebda.to_onnx(model), X.astype(np.float32))
    assert labels.dtype == np.int64
    assert labels.tolist() == model.predict(X.astype(np.float32)).astype(int).tolist()


def test_thousands_of_raw_intensities_in_float32() -> None:
    """Sums of 7,129 products of values up to 70,000 keep their digits."""
    golub = load_golub()
    model = EBClassifier(**FAST).fit(golub.data, golub.target)
    score = model.decision_function(golub.data)
    low, high = score.argmin(), score.argmax()
    wanted = np.linspace(-4, 4, 9)[:, None]  # near the boundary, between two samples
    share = (wanted - score[low]) / (score[high] - score[low])
    X = golub.data[[low]] * (1 - share) + golub.data[[high]] * share
    X = X.astype(np.float32)
    labels, probabilities = run(ebda.to_onnx(model), X)
    expected = model.predict_proba(X)
    assert ((expected > 0.01) & (expected < 0.99)).all()
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    assert labels.tolist() == model.predict(X).tolist()


def test_a_tie_goes_to_the_first_class() -> None:
    X, codes = data(2)
    model = EBClassifier(**FAST, priors="uniform").fit(X, codes)
    model.coef_[:], model.intercept_[:] = 0.0, 0.0
    assert_agrees(model, X)
    assert set(model.predict(X)) == {0}


@pytest.mark.parametrize(
    "model",
    [
        baselines.IndependenceRule(),
        baselines.FAIR(),
        baselines.ShrunkenCentroids(),
        make_pipeline(StandardScaler(), EBClassifier(**FAST)),
    ],
    ids=lambda m: type(m).__name__,
)
def test_baselines_and_pipelines(model: Any) -> None:
    X, codes = data(2)
    assert_agrees(model.fit(X, codes), X)


def test_names_of_features_are_in_the_metadata() -> None:
    X, codes = data(2)
    names = [f"gene {j}" for j in range(X.shape[1])]
    model = EBClassifier(**FAST).fit(pd.DataFrame(X, columns=names), codes)
    session = onnxruntime.InferenceSession(ebda.to_onnx(model).SerializeToString())
    found = session.get_modelmeta().custom_metadata_map["feature_names"]
    assert json.loads(found) == names
    assert session.get_inputs()[0].shape[1] == 40


def test_what_cannot_be_converted_is_refused() -> None:
    X, codes = data(2)
    with pytest.raises(NotFittedError):
        ebda.to_onnx(EBClassifier())
    with pytest.raises(TypeError, match="a LogisticRegression cannot be converted"):
        ebda.to_onnx(LogisticRegression().fit(X, codes))
    with pytest.raises(TypeError, match=r"strings or whole .* these are 0\.0"):
        ebda.to_onnx(EBClassifier(**FAST).fit(X, codes.astype(float)))
    big = codes.astype(np.uint64) + np.uint64(2**63)
    with pytest.raises(TypeError, match="whole numbers of 64 bits"):
        ebda.to_onnx(EBClassifier(**FAST).fit(X, big))
    with pytest.raises(ValueError, match="dtype must be one of"):
        ebda.to_onnx(EBClassifier(**FAST).fit(X, codes), np.float16)


def test_a_missing_skl2onnx_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **options: Any) -> Any:
        if name.startswith("skl2onnx"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'ebda\[onnx\]'"):
        ebda.to_onnx(EBClassifier())
