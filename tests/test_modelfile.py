"""The model file: what goes in comes out, and a file is there whole or not at all."""

from __future__ import annotations

import ast
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ebda
from ebda import EBClassifier, NormalMeans, baselines
from ebda.evaluation import Evaluation, cross_validate
from ebda.modelfile import VERSION, container
from ebda.paper import classifier
from ebda.plotting import plot_fit
from ebda.priors import (
    NPMLE,
    PRIORS,
    BasePriorEstimator,
    DirichletProcess,
    DiscretePrior,
    FixedPrior,
    Kernel,
    PointLaplacePrior,
    PointNormalPrior,
)
from ebda.storage.fields import Array
from ebda.storage.objects import (
    SCHEMAS,
    Nested,
    Schema,
    names_of,
    register,
)

FIXTURES = Path(__file__).parent / "data"
P = 30
FAST = {"covariance": "diagonal", "shrinkage": "mean"}


def data(n_classes: int = 2, p: int = P) -> tuple[Any, Any]:
    rng = np.random.default_rng(n_classes)
    codes = np.repeat(np.arange(n_classes), 12)
    X = rng.normal(size=(len(codes), p))
    X += np.outer(rng.normal(size=len(codes)), rng.normal(size=p))
    X[np.arange(len(codes)), codes] += 2.5
    X[:, -1] = 4.0  # a constant feature
    return X, codes


def round_trip(model: Any, tmp_path: Path, **with_it: Any) -> Any:
    ebda.save(model, tmp_path / "model.ebda", **with_it)
    return ebda.load(tmp_path / "model.ebda")


def assert_same(a: Any, b: Any, where: str = "model") -> None:
    """Equal to the bit, in type, dtype and layout, all the way down."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert a.shape == b.shape, where
        if a.dtype.kind in "OU":
            assert a.tolist() == b.tolist(), where
        else:
            assert a.tobytes() == b.tobytes(), where
    elif is_dataclass(a):
        for field in fields(a):
            name = field.name
            assert_same(getattr(a, name), getattr(b, name), f"{where}.{name}")
    elif isinstance(a, BasePriorEstimator):
        assert_same(vars(a), vars(b), where)
    elif isinstance(a, dict):
        left_out = {"batches_", "samples_"}
        assert set(a) - left_out == set(b) - left_out, where
        for key in set(b) - left_out:
            assert_same(a[key], b[key], f"{where}.{key}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{where}[{i}]")
    else:
        assert a == b, where


def assert_predicts_the_same(a: Any, b: Any, X: Any) -> None:
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        assert_same(getattr(a, name)(X), getattr(b, name)(X), name)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shrinkage": "hard", "variance": "separate", "covariance": "diagonal"},
        {"covariance": "factor", "shrinkage": "mean", "priors": "uniform"},
        {"prior": "npmle", **FAST},
        {"prior": "normal", "shrinkage": "sparse", "covariance": "diagonal"},
        {"prior": "laplace", "shrinkage": "mean", "covariance": "neighbours"},
        {"prior": "kernel", **FAST},
        {
            "prior": DirichletProcess(zero_weight=0.9, n_batches=2, random_state=3),
            "covariance": "diagonal",
        },
        {"prior": NPMLE(grid=np.linspace(-3, 3, 7), tol=1e-4), **FAST},
        {"prior": NPMLE(grid=[-1, 0.0, 1], max_iter=50), **FAST},
        {"prior": Kernel(bandwidth=0.5, method="exact"), **FAST},
        {"prior": DiscretePrior([0, 2, 3], [1, 1, 1]), "covariance": "diagonal"},
        {"prior": FixedPrior(PointNormalPrior(0.5, 2.0)), **FAST},
        {"prior": PointLaplacePrior(0.0, 2.0), **FAST},
    ],
    ids=str,
)
def test_a_classifier_comes_back_whole(
    options: dict[str, Any], n_classes: int, tmp_path: Path
) -> None:
    X, y = data(n_classes)
    model = EBClassifier(**options).fit(X, y)
    again = round_trip(model, tmp_path)
    assert_predicts_the_same(model, again, X[::3])
    assert_same(vars(model), vars(again))
    assert_same(model.ranking_, again.ranking_)
    assert repr(again) == repr(model)
    assert str(again.selection_) == str(model.selection_)
    for summary in ("mean", "prob_zero", "sd", "lfsr"):
        expected = getattr(model.posterior_, summary)
        assert_same(expected, getattr(again.posterior_, summary), summary)
    assert_same(model.posterior_.interval(0.9), again.posterior_.interval(0.9))
    assert again.prior_ is again.prior_estimator_.prior_
    # The parameters are as good as new: the same fit follows from them.
    refitted = clone(again).fit(X, y)
    assert_same(model.coef_, refitted.coef_)


LABELS: dict[str, Callable[[Any], Any]] = {
    "str": lambda codes: np.array(["healthy", "ß 病 \U0001f9ec"])[codes],
    "wider str": lambda codes: np.array(["a", "b"], dtype="<U30")[codes],
    "object of str": lambda codes: np.array(["no", "yes"], dtype=object)[codes],
    "surrogate": lambda codes: np.array(["no", "\udc80"], dtype=object)[codes],
    "int64": lambda codes: codes - 7,
    "int8": lambda codes: codes.astype(np.int8),
    "big-endian": lambda codes: codes.astype(">i4"),
    "bool": lambda codes: codes == 1,
    "float64": lambda codes: codes + 1.0,
    "float32": lambda codes: codes.astype(np.float32),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_keep_value_and_type(name: str, tmp_path: Path) -> None:
    X, codes = data()
    y = LABELS[name](codes)
    model = EBClassifier(**FAST).fit(X, y)
    again = round_trip(model, tmp_path)
    assert again.classes_.tolist() == model.classes_.tolist()
    kinds = [[type(v) for v in m.classes_.tolist()] for m in (model, again)]
    assert kinds[0] == kinds[1]
    assert again.classes_.dtype.kind == model.classes_.dtype.kind
    assert again.predict(X).tolist() == model.predict(X).tolist()


def test_labels_that_a_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    X, codes = data()
    model = EBClassifier(**FAST).fit(X, codes)
    model.classes_ = np.array([None, 1.5], dtype=object)
    with pytest.raises(
        TypeError, match=r"classes_ is .* not strings, which a model file"
    ):
        ebda.save(model, tmp_path / "model.ebda")
    model.classes_ = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
    with pytest.raises(TypeError, match="datetime64"):
        ebda.save(model, tmp_path / "model.ebda")
    assert not list(tmp_path.iterdir())


def test_long_labels_are_kept_as_objects(tmp_path: Path) -> None:
    X, codes = data()
    y = np.array(["a", "b" * 3_000_000], dtype=object)[codes]
    model = EBClassifier(**FAST).fit(X, y)
    model.classes_ = model.classes_.astype(str)
    again = round_trip(model, tmp_path)
    assert again.classes_.dtype == object
    assert again.classes_.tolist() == model.classes_.tolist()


def test_names_of_features_come_back_and_are_checked_again(tmp_path: Path) -> None:
    X, y = data()
    names = [f"gene {j}" for j in range(P - 2)] + ["", "<b>\x00\n\u2028\U0001f600"]
    frame = pd.DataFrame(X, columns=names)
    model = EBClassifier(**FAST).fit(frame, y)
    again = round_trip(model, tmp_path)
    assert_same(model.feature_names_in_, again.feature_names_in_)
    assert_same(model.ranking_, again.ranking_)
    assert_predicts_the_same(model, again, frame)
    assert again.get_feature_names_out().tolist() == ["ebclassifier0"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[names[::-1]])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        baselines.IndependenceRule(),
        baselines.GreenshteinPark(bandwidth=1),
        baselines.FAIR(max_features=5),
        baselines.LassoLogistic(n_lambdas=5, cv=3, random_state=0),
        baselines.PseudoInverseLDA(priors=[0.3, 0.7]),
        baselines.RegularizedDA(pooling=0.5, shrinkage=0.3),
        baselines.RegularizedDA(centroids=True, cv=3, random_state=0),
        baselines.ShrinkageDA(),
        baselines.ShrunkenCentroids(),
        baselines.DickerZhao(),
        baselines.DickerZhao("linear", grid=[-1.0, 0.0, 1.0]),
        baselines.LinearProgrammingDA([0.5, 1.0], cv=3, random_state=0),
        baselines.MeanVarianceAdaptive(),
        baselines.MeanVarianceAdaptive(joint=True, n_means=20, n_variances=10),
        baselines.SparseLDA(cv=3, random_state=0),
        baselines.ThresholdedLDA(n_splits=3, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_baselines_come_back_whole(model: Any, n_classes: int, tmp_path: Path) -> None:
    if n_classes == 3:
        if not model._many_classes:
            return
        model = clone(model).set_params(priors=(0.2, 0.2, 0.6))
    X, y = data(n_classes)
    model = clone(model).fit(X, y)
    again = round_trip(model, tmp_path)
    assert_predicts_the_same(model, again, X)
    assert_same(vars(model), vars(again))


@pytest.mark.parametrize("prior", sorted(set(PRIORS) - {"fixed"}))
def test_normal_means_come_back_whole(prior: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60) + np.repeat([0.0, 4.0], 30)
    scale = rng.uniform(0.5, 1.5, size=60)
    model = NormalMeans(prior=prior, random_state=0).fit(x, scale)
    again = round_trip(model, tmp_path)
    assert_same(vars(model), vars(again))
    for name in ("posterior_mean_", "posterior_sd_", "prob_zero_", "lfsr_"):
        assert_same(getattr(model, name), getattr(again, name), name)
    assert_same(model.interval(0.8), again.interval(0.8))
    assert_same(model.predict([1.0, 2.0]), again.predict([1.0, 2.0]))


def test_every_model_and_prior_of_the_package_has_a_schema() -> None:
    """A new prior or baseline is not forgotten here."""
    assert set(names_of("family")) == {f.estimator.__name__ for f in PRIORS.values()}
    assert set(names_of("model")) == {"EBClassifier", "NormalMeans", *baselines.__all__}


def test_the_layout_of_coefficients_is_kept(tmp_path: Path) -> None:
    """Products with a matrix in Fortran order may differ in the last bit."""
    X, y = data(3)
    model = EBClassifier(**FAST).fit(X, y)
    model.coef_ = np.asfortranarray(model.coef_)
    again = round_trip(model, tmp_path)
    assert again.coef_.flags.f_contiguous
    assert_same(model.coef_, again.coef_)


def test_pictures_are_drawn_from_a_loaded_model(tmp_path: Path) -> None:
    X, y = data(p=100)
    model = EBClassifier(**FAST).fit(X, y)
    plot_fit(round_trip(model, tmp_path)).savefig(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 5000


def test_evaluation_and_data_travel_with_the_model(tmp_path: Path) -> None:
    X, y = data()
    model = EBClassifier(**FAST).fit(X, y)
    evaluation = cross_validate(model, X, y, n_folds=3)
    about = {"file": "counts é.csv", "n": 24, "parts": [1.5, None, {"deep": (True,)}]}
    ebda.save(model, tmp_path / "m.ebda", evaluation, about)
    record = ebda.load_record(tmp_path / "m.ebda")
    assert_same(evaluation, record.evaluation)
    assert record.evaluation.error == evaluation.error
    assert record.data == about | {"parts": [1.5, None, {"deep": [True]}]}
    assert record.written_by == ebda.__version__
    assert_predicts_the_same(model, record.model, X)
    ebda.save(model, tmp_path / "m.ebda")
    record = ebda.load_record(tmp_path / "m.ebda")
    assert record.evaluation is None
    assert record.data is None


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"x": np.nan}, "JSON can hold: Out of range"),
        ({"x": np.arange(2)}, "JSON can hold: .*ndarray"),
        ({1: 2}, "strings as keys"),
        ([1], "strings as keys"),
    ],
    ids=["NaN", "array", "key", "list"],
)
def test_data_that_are_not_json_are_refused(
    about: Any, message: str, tmp_path: Path
) -> None:
    model = NormalMeans(prior="normal").fit([0.0, 1.0, 3.0])
    with pytest.raises(TypeError, match=message):
        ebda.save(model, tmp_path / "m.ebda", data=about)


def test_data_that_could_not_be_read_again_are_not_written(tmp_path: Path) -> None:
    model = NormalMeans(prior="normal").fit([0.0, 1.0, 3.0])
    deep: list[Any] = []
    for _ in range(100):
        deep = [deep]
    for about, message in (
        ({"x": deep}, "nested too deep"),
        ({"x": 10**30}, "too large"),
        ({"x": "y" * 3_000_000}, "save less data"),
    ):
        with pytest.raises(ValueError, match=message):
            ebda.save(model, tmp_path / "m.ebda", data=about)
    assert not list(tmp_path.iterdir())


def test_a_file_that_would_not_be_read_for_its_size_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = NormalMeans(prior="normal").fit([0.0, 1.0, 3.0])
    monkeypatch.setattr(container, "MAX_FILE", 500)
    with pytest.raises(ValueError, match=r"would have \d+ bytes in 11 arrays, and 500"):
        ebda.save(model, tmp_path / "m.ebda")


def test_an_evaluation_of_other_classes_is_refused(tmp_path: Path) -> None:
    X, y = data()
    model = EBClassifier(**FAST).fit(X, y)
    other = Evaluation(np.array([3, 4]), np.zeros(2, int), np.full((2, 2), 0.5), 2)
    means = NormalMeans(prior="normal").fit([0.0, 1.0, 3.0])
    for saved in (model, means):
        with pytest.raises(ValueError, match="other classes than the model"):
            ebda.save(saved, tmp_path / "m.ebda", other)


@pytest.mark.parametrize("state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_the_state_of_a_generator_is_given_up_with_a_word(
    state: Any, tmp_path: Path
) -> None:
    means = NormalMeans(prior=DirichletProcess(random_state=state)).fit([0.0, 1.0, 3.0])
    with pytest.warns(UserWarning, match="random_state=None"):
        again = round_trip(means, tmp_path)
    assert again.prior.random_state is None
    assert_same(means.predict([1.0]), again.predict([1.0]))


class OwnPrior(BasePriorEstimator):
    """A prior that no file knows."""

    def fit(self, z: Any, scale: Any = 1.0) -> OwnPrior:
        self.prior_ = DiscretePrior([0.0, 1.0], [0.5, 0.5])
        return self


class OwnClassifier(EBClassifier):
    """A subclass may do anything; it is not the class that the file would name."""


OwnClassifier.__name__ = "EBClassifier"


def test_what_a_file_cannot_hold_is_refused_by_name(tmp_path: Path) -> None:
    X, y = data()
    path = tmp_path / "m.ebda"
    with pytest.raises(TypeError, match=r"EBClassifier\.prior is a OwnPrior, which"):
        ebda.save(EBClassifier(OwnPrior(), **FAST).fit(X, y), path)
    model = EBClassifier(**FAST).fit(X, y)
    model.prior_estimator_ = OwnPrior()
    with pytest.raises(TypeError, match=r"prior_estimator_ is a OwnPrior, .*can hold"):
        ebda.save(model, path)
    with pytest.raises(TypeError, match="Pipeline cannot be saved"):
        ebda.save(make_pipeline(StandardScaler(), model), path)
    with pytest.raises(TypeError, match=r"what can be is .*EBClassifier, "):
        ebda.save(OwnClassifier(**FAST).fit(X, y), path)
    with pytest.raises(TypeError, match="PaperRule cannot be saved"):
        ebda.save(classifier("DP", 1), path)
    with pytest.raises(TypeError, match="DiscretePrior cannot be saved"):
        ebda.save(DiscretePrior([0], [1]), path)
    with pytest.raises(NotFittedError):
        ebda.save(EBClassifier(), path)
    del (broken := EBClassifier(**FAST).fit(X, y)).z_
    with pytest.raises(ValueError, match="lacks z_"):
        ebda.save(broken, path)
    broken = EBClassifier(**FAST).fit(X, y).set_params(priors=np.array([X, None], "O"))
    with pytest.raises(TypeError, match=r"priors is an array of objects that are"):
        ebda.save(broken, path)
    nested: Any = [1]
    for _ in range(10):
        nested = [nested]
    broken = EBClassifier(**FAST).fit(X, y).set_params(priors=nested)
    with pytest.raises(TypeError, match="is a list, which"):
        ebda.save(broken, path)
    assert not list(tmp_path.iterdir())


def test_parameters_of_any_plain_kind_come_back(tmp_path: Path) -> None:
    means = NormalMeans(prior="normal").fit([0.0, 1.0, 3.0])
    for value in (
        None,
        True,
        -3,
        0.1,
        np.inf,
        "x",
        [1, [2.5]],
        (1, "a"),
        np.arange(3),
        np.array(["a", "b"]),
    ):
        again = round_trip(means.set_params(n_jobs=value), tmp_path)
        assert_same(value, again.n_jobs)
    again = round_trip(means.set_params(n_jobs=np.int64(3)), tmp_path)
    assert again.n_jobs == 3


def test_partial_fit_goes_on_from_the_moments(tmp_path: Path) -> None:
    X, y = data()
    model = baselines.IndependenceRule().partial_fit(X[::2], y[::2], classes=[0, 1])
    again = round_trip(model, tmp_path)
    model.partial_fit(X[1::2], y[1::2])
    again.partial_fit(X[1::2], y[1::2])
    assert_same(model.coef_, again.coef_)
    assert again.n_seen_ == len(y)


def test_partial_fit_says_where_it_lacks_the_samples(tmp_path: Path) -> None:
    X, y = data()
    model = EBClassifier(covariance="factor").partial_fit(X, y, classes=[0, 1])
    again = round_trip(model, tmp_path)
    with pytest.warns(UserWarning, match="keeps no samples"):
        again.partial_fit(X, y)


def test_a_file_is_the_same_bytes_each_time(tmp_path: Path) -> None:
    X, y = data()
    for name in "ab":
        model = EBClassifier(**FAST).fit(X, y)
        ebda.save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- a file is there whole or not at all


@pytest.fixture
def means() -> NormalMeans:
    return NormalMeans(prior="normal").fit([0.0, 1.0, 3.0])


def test_a_failure_leaves_the_old_file(
    means: NormalMeans, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.ebda"
    ebda.save(means, path, data={"which": "old"})

    def full(descriptor: int) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space left"):
            ebda.save(means, path, data={"which": "new"})
    assert ebda.load_record(path).data == {"which": "old"}
    assert [p.name for p in tmp_path.iterdir()] == ["m.ebda"]


@pytest.mark.slow
def test_a_crash_leaves_the_old_file(means: NormalMeans, tmp_path: Path) -> None:
    path = tmp_path / "m.ebda"
    ebda.save(means, path, data={"which": "old"})
    code = (
        "import os, sys, ebda\n"
        "record = ebda.load_record(sys.argv[1])\n"
        "os.fsync = lambda descriptor: os._exit(7)\n"
        "ebda.save(record.model, sys.argv[1], data={'which': 'new'})\n"
    )
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == 7
    assert ebda.load_record(path).data == {"which": "old"}


def test_permissions_and_links_stay(means: NormalMeans, tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        ebda.save(means, tmp_path / "new.ebda")
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new.ebda").stat().st_mode) == 0o640
    (tmp_path / "new.ebda").chmod(0o604)
    (tmp_path / "link.ebda").symlink_to("new.ebda")
    ebda.save(means, tmp_path / "link.ebda", data={"which": "newer"})
    assert (tmp_path / "link.ebda").is_symlink()
    assert ebda.load_record(tmp_path / "new.ebda").data == {"which": "newer"}
    assert stat.S_IMODE((tmp_path / "new.ebda").stat().st_mode) == 0o604


def test_places_that_cannot_be_written_are_named(
    means: NormalMeans, tmp_path: Path
) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        ebda.save(means, tmp_path / "nowhere" / "m.ebda")
    with pytest.raises(OSError, match="this is a folder; name a file"):
        ebda.save(means, tmp_path)


def test_a_pipe_is_written_to_and_stays(means: NormalMeans, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "import pathlib, sys; a, b = map(pathlib.Path, sys.argv[1:]); " + (
        "b.write_bytes(a.read_bytes())"
    )
    copied = tmp_path / "m.ebda"
    with subprocess.Popen([sys.executable, "-c", code, pipe, copied]):
        ebda.save(means, pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert_same(vars(means), vars(ebda.load(copied)))


def test_paths_may_be_strings(means: NormalMeans, tmp_path: Path) -> None:
    ebda.save(means, str(tmp_path / "m.ebda"))
    assert_same(vars(means), vars(ebda.load(str(tmp_path / "m.ebda"))))


# --- old files


def means_of(model: EBClassifier) -> np.ndarray:
    return model.moments_.means[1] - model.moments_.means[0]


def test_a_file_of_version_1_loads_for_ever() -> None:
    """Written by ebda 0.1.0; the file is never to be written again."""
    expected = json.loads((FIXTURES / "model-v1.json").read_text())
    record = ebda.load_record(FIXTURES / "model-v1.ebda")
    model = record.model
    frame = pd.DataFrame(expected["features"], columns=expected["names"])
    decision = model.decision_function(frame)
    np.testing.assert_allclose(decision, expected["decision"], rtol=1e-12)
    np.testing.assert_allclose(
        model.predict_proba(frame), expected["probabilities"], rtol=1e-9
    )
    assert model.predict(frame).tolist() == expected["labels"]
    assert model.coef_[0].tolist() == expected["coef"]
    assert model.intercept_.tolist() == expected["intercept"]
    assert model.classes_.tolist() == ["ALL", "AML"]
    assert model.prior.zero_weight == model.prior_estimator_.zero_weight == 0.9
    assert model.prior_.atoms.tolist() == expected["atoms"]
    # The lists are made from the moments, which every file has.
    assert model.squared_correlation_ is None
    ranking = model.ranking_
    assert ranking.order[0] == expected["order"][0]
    np.testing.assert_allclose(ranking.difference, means_of(model), rtol=1e-12)
    contrasts, means = model.contrasts_, model.moments_.means
    np.testing.assert_allclose(
        contrasts.z * contrasts.scale, means[1:] - means[:1], rtol=1e-9
    )
    assert model.selection_.reason == expected["reason"]
    assert record.evaluation.n_errors == expected["n_errors"]
    assert record.data["n_samples"] == 24
    assert record.written_by == "0.1.0"


def test_the_fixture_has_the_present_version() -> None:
    """A new version needs a fixture of its own, beside the old ones."""
    assert (FIXTURES / f"model-v{VERSION}.ebda").exists()


def test_loading_has_no_way_to_run_code() -> None:
    """No pickle, no import and no evaluation by name in the package's source."""
    banned = {"pickle", "marshal", "shelve", "importlib", "joblib", "runpy", "zipfile"}
    calls = {"eval", "exec", "compile", "__import__", "globals", "import_module"}
    root = Path(ebda.__file__).parent
    sources = [p for room in ("modelfile", "storage") for p in (root / room).glob("*")]
    sources = [path for path in sources if path.suffix == ".py"]
    assert len(sources) > 7
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name.split(".")[0] for alias in node.names}
                names.add((getattr(node, "module", None) or "").split(".")[0])
                assert not names & banned, path
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in calls, path


def test_schemas_name_attributes_that_exist() -> None:
    for schema in SCHEMAS.values():
        if is_dataclass(schema.type):
            assert set(schema.fields) == {f.name for f in fields(schema.type)}
        assert schema.optional <= set(schema.fields)


# --- a class declares what a file holds of it


class TwoPoints(BasePriorEstimator):
    """A toy: half of the effects are zero, and half are `effect`."""

    def __init__(self, effect: float = 3.0) -> None:
        self.effect = effect

    def fit(self, z: Any, scale: Any = 1.0) -> TwoPoints:
        self.prior_ = DiscretePrior([0.0, self.effect], [0.5, 0.5])
        self.support_ = np.array([0.0, self.effect])
        return self


TOY = Schema(
    TwoPoints,
    {"prior_": Nested("prior"), "support_": Array(("s",))},
    is_parameter=True,
    role="family",
)


def test_a_new_class_is_one_schema(tmp_path: Path) -> None:
    X, y = data()
    model = EBClassifier(**FAST | {"prior": TwoPoints(4.0)}).fit(X, y)
    with pytest.raises(TypeError, match="is a TwoPoints, which a model file cannot"):
        ebda.save(model, tmp_path / "m.ebda")
    with SCHEMAS.added(TOY):
        again = round_trip(model, tmp_path)
        assert_predicts_the_same(model, again, X)
        assert again.prior_estimator_.support_.tolist() == [0.0, 4.0]
        assert again.prior.effect == 4.0
        ebda.save(model, tmp_path / "m.ebda")
    with pytest.raises(ebda.ModelFileError, match="is not one of"):
        ebda.load(tmp_path / "m.ebda")


def test_two_classes_of_one_name_are_refused() -> None:
    class Evaluation:
        pass

    before = dict(SCHEMAS)
    with pytest.raises(ValueError, match="named 'Evaluation' already"):
        register(Schema(Evaluation, {}))
    assert before == SCHEMAS


def test_loading_imports_nothing(means: NormalMeans, tmp_path: Path) -> None:
    """Whatever is in the file: what it may need has been imported before."""
    ebda.save(means, tmp_path / "m.ebda")
    code = (
        "import sys, ebda.modelfile\n"
        "before = set(sys.modules)\n"
        "for path in sys.argv[1:]:\n"
        "    ebda.modelfile.load(path)\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    files = [FIXTURES / "model-v1.ebda", tmp_path / "m.ebda"]
    done = subprocess.run(
        [sys.executable, "-c", code, *files], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
