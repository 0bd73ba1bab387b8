"""The report: what the page says is what the model has, whatever the names are."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import runpy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

import ebda
from ebda import EBClassifier
from ebda.covariance import COVARIANCES
from ebda.datasets import load_golub
from ebda.evaluation import Evaluation, calibration_bins, cross_validate, evaluate
from ebda.moments.variance import VARIANCES
from ebda.priors import PRIORS, DiscretePrior
from ebda.report import render, write_report
from ebda.report.case import Case, Scored, scored
from ebda.report.cautions import cautions
from ebda.report.features import BUDGET, COLUMNS, features_that_fit, payload
from ebda.report.fitted import method, prior_rows
from ebda.report.lanes import MOST, Axis, lanes, thinned
from ebda.report.overview import headline
from ebda.report.provenance import component
from ebda.report.structure import (
    batches_and_outliers,
    perfect_by_chance,
    perfect_features,
    two_groups,
)
from ebda.report.words import line_of, percent
from ebda.rule.shrinkage import SHRINKAGES, Shrinkage, pointwise

HOSTILE = [
    "</script><script>alert(1)</script>",
    "<!--",
    "\"'&<>",
    "\u2028\u2029 \U0001f9ec",
    "nul \x00 and half a pair \ud83e",
    "x" * 5000,
]


class Outline(HTMLParser):
    """Elements, attributes and the text of scripts, as a browser sees them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.script: dict[str, str] = {}
        self.words: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self._inside = f"script {dict(attrs).get('type', '')}".strip()

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside.startswith(("script", "style")):
            self.script[self._inside] = self.script.get(self._inside, "") + data
        else:
            self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    @property
    def data(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.script["script application/json"])
        return found

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def draw(
    n_classes: int = 2, p: int = 120, n: int = 60, seed: int = 0, shift: float = 1.5
) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % n_classes
    X = rng.normal(size=(n, p))
    for k in range(n_classes):
        X[np.ix_(codes == k, range(6 * k, min(6 * k + 6, p)))] += shift
    return X, np.array(["a", "b", "c", "d", "e", "f"])[codes]


def quick(**parameters: Any) -> EBClassifier:
    return EBClassifier(covariance="diagonal", shrinkage="mean", **parameters)


def unpacked(text: str, kind: str = "<f4") -> Any:
    return np.frombuffer(base64.b64decode(text), dtype=kind)


@pytest.fixture(scope="module")
def two() -> tuple[EBClassifier, Any, Any, Evaluation]:
    X, y = draw(shift=0.9)
    table = pd.DataFrame(X, columns=[f"gene {j}" for j in range(X.shape[1])])
    model = EBClassifier().fit(table, y)
    return model, table, y, cross_validate(quick(), table, y)


# What the page carries


def test_the_page_carries_the_numbers_of_the_model(two: Any) -> None:
    model, X, y, e = two
    data = Outline(render(model, X=X, y=y, evaluation=e)).data
    ranking = model.ranking_
    order = ranking.order
    np.testing.assert_array_equal(unpacked(data["column"], "<u4"), order)
    assert data["names"] == ranking.names[order].tolist()
    rows = {key: unpacked(data["rows"][key][0]) for key in COLUMNS}
    for key, values in (
        ("t", ranking.marginal.t),
        ("z", model.z_),
        ("effect", model.posterior_mean_),
        ("zero", model.prob_zero_),
        ("weight", model.coef_[0]),
        ("difference", np.diff(model.moments_.means, axis=0)[0]),
    ):
        np.testing.assert_allclose(rows[key], values[order], rtol=1e-6)
    for key, values in (
        ("p", np.exp(ranking.marginal.log_p)),
        ("q", ranking.q_value),
        ("beyond", ranking.conditional.q_value),
    ):
        np.testing.assert_allclose(10.0 ** -rows[key], values[order], rtol=1e-4)
    means = [unpacked(row) for row in data["means"]]
    np.testing.assert_allclose(means, model.moments_.means[:, order], rtol=1e-6)
    assert data["order"] is None


def test_differences_of_logarithms_are_fold_changes(two: Any) -> None:
    model = two[0]
    plain = Outline(render(model)).data
    folds = Outline(render(model, data={"log": True})).data
    assert plain["difference"] == "difference"
    assert folds["difference"] == "log2 fold change"
    values = [unpacked(data["rows"]["difference"][0]) for data in (plain, folds)]
    np.testing.assert_allclose(values[1] * np.log(2), values[0], rtol=1e-5)


def test_curves_are_the_shrinkages_of_the_prior(two: Any) -> None:
    model = two[0]
    curves = Outline(render(model)).data["curves"]
    grid = unpacked(curves["grid"]).astype(float)
    assert grid[0] < model.z_.min()
    assert grid[-1] > model.z_.max()
    posterior = model.prior_.posterior(grid)
    assert set(curves) == {"grid", *pointwise()}
    assert set(pointwise()) < set(SHRINKAGES)
    np.testing.assert_allclose(unpacked(curves["mean"]), posterior.mean, atol=1e-4)
    kept = posterior.prob_zero < model.zero_threshold - 0.01
    assert kept.any()
    np.testing.assert_allclose(unpacked(curves["hard"])[kept], grid[kept], rtol=1e-6)


def test_many_classes_have_an_order_for_each_contrast() -> None:
    X, y = draw(n_classes=3)
    model = quick().fit(X, y)
    data = Outline(render(model)).data
    ranking = model.ranking_
    column = unpacked(data["column"], "<u4")
    assert data["names"] is None
    for k in range(3):
        own = column[unpacked(data["order"][k], "<u4")]
        np.testing.assert_array_equal(own, ranking.marginal.order_in(k))
        means, counts = model.moments_.means, model.moments_.counts
        centre = counts @ means / counts.sum()
        np.testing.assert_allclose(
            unpacked(data["rows"]["difference"][k]),
            (means[k] - centre)[column],
            rtol=1e-4,
            atol=1e-6,
        )


@pytest.mark.parametrize("n_classes", [2, 6])
def test_twenty_thousand_features_fit_into_three_megabytes(n_classes: int) -> None:
    X, y = draw(n_classes, p=20_000, n=36)
    names = [f"ENSG{j:011d}.12" for j in range(X.shape[1])]
    model = quick().fit(pd.DataFrame(X.astype(np.float32), columns=names), y)
    page = render(model)
    assert len(page.encode()) < 3_000_000
    outline = Outline(page)
    kept = len(outline.data["names"])
    if n_classes == 2:
        assert kept == 20_000
        assert len(page.encode()) < 1_900_000
    else:
        assert 5000 < kept < 20_000
        assert f"The page holds the {kept:,} features with" in outline.text.replace(
            "\xa0", " "
        )
        best = model.ranking_.names[model.ranking_.order[:kept]]
        assert outline.data["names"] == best.tolist()


def test_names_count_against_the_budget() -> None:
    short = features_that_fit(["ab"] * 90_000, 90_000, 10)
    long = features_that_fit(["<" * 20] * 90_000, 90_000, 10)
    assert short == pytest.approx(BUDGET / (10 * 16 / 3 + 5), abs=1)
    assert long == pytest.approx(BUDGET / (10 * 16 / 3 + 20 * 6 + 3), abs=1)
    assert features_that_fit(["x" * 10**7], 1, 10) == 1


# Safety


def test_hostile_names_are_text_everywhere() -> None:
    X, _ = draw(p=30)
    names = HOSTILE + [f"gene {j}" for j in range(30 - len(HOSTILE))]
    labels = np.array(["<script>alert('class')</script>", "&amp;"])
    y = labels[np.arange(60) % 2]
    table = pd.DataFrame(X, columns=pd.Index(names, dtype=object))
    model = quick().fit(table, y)
    page = render(
        model,
        X=table,
        y=y,
        evaluation=evaluate(model, table, y),
        sample_names=[f"<img src=x onerror=alert({i})>" for i in range(60)],
        data={"source": "<script>", "target": "</title>", "<b>": None, "<i>": "<u>"},
        command="<script>alert('command')</script>",
    )
    page.encode("utf-8")  # no half pairs
    outline = Outline(page)
    assert outline.count("script") == 2
    assert outline.count("img") == outline.count("i") == outline.count("u") == 0
    assert outline.count("title") == page.count("<title>")
    columns = unpacked(outline.data["column"], "<u4")
    shown = dict(zip(columns, outline.data["names"], strict=True))
    for j, name in enumerate(HOSTILE[:4]):
        assert shown[j] == name
    assert shown[4] == "nul \ufffd and half a pair \ufffd"
    assert shown[5] == "x" * 999 + "…"
    assert outline.data["classes"] == sorted(labels)
    assert "<script>alert('command')</script>" in outline.text
    assert "\u2028" not in outline.script["script application/json"]


def test_the_policy_allows_the_page_and_nothing_else(two: Any) -> None:
    page = render(two[0])
    outline = Outline(page)
    policy = next(
        a["content"]
        for tag, a in outline.elements
        if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind in ("script", "style"):
        content = re.search(rf"<{kind}>(.*?)</{kind}>", page, flags=re.DOTALL)
        assert content is not None
        digest = hashlib.sha256(content[1].encode()).digest()
        allowed = f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'"
        assert allowed in policy
    for tag, attributes in outline.elements:
        assert "style" not in attributes, tag
        assert not [a for a in attributes if a.startswith("on")], tag
        assert "src" not in attributes, tag
        assert (attributes.get("href") or "#").startswith(("#", "data:")), tag


# Writing


def test_writing_replaces_the_file_as_a_whole(
    two: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    write_report(path, two[0], command="first")
    assert path.read_text(encoding="utf-8") == render(two[0], command="first")
    assert "2 January 1970, 00:00 UTC" in path.read_text(encoding="utf-8")

    def full(descriptor: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_report(path, two[0], command="second")
    assert "first" in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_report(tmp_path / "nowhere" / "report.html", two[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": ["a"]}, "y was given without X"),
        ({"X": np.zeros((3, 120)), "y": ["a"]}, "X has 3 samples, y has 1"),
        ({"sample_names": ["a"]}, "1 sample name given for no samples"),
        (
            {"X": np.zeros((3, 120)), "sample_names": ["a"]},
            "1 sample name given for 3 samples; each sample needs one name",
        ),
    ],
)
def test_what_does_not_fit_is_refused(arguments: Any, message: str) -> None:
    X, y = draw()
    with pytest.raises(ValueError, match=message):
        render(quick().fit(X, y), **arguments)


def test_other_models_are_refused(two: Any) -> None:
    model, X, y, e = two
    with pytest.raises(TypeError, match="fitted EBClassifier, got LogisticRegression"):
        render(LogisticRegression().fit(X, y))
    with pytest.raises(NotFittedError):
        render(EBClassifier())
    other = replace(e, classes=np.array(["a", "z"]))
    with pytest.raises(ValueError, match=r"classes \['a', 'z'\], the model knows"):
        render(model, evaluation=other)


# Samples and probabilities


def test_the_most_honest_probabilities_are_shown(two: Any) -> None:
    model, X, y, e = two
    held_out = scored(Case.checked(model, X, y, e))
    assert held_out is not None
    np.testing.assert_array_equal(held_out.probabilities, e.probabilities)
    assert "5 folds" in held_out.origin
    test = scored(Case.checked(model, evaluation=evaluate(model, X, y)))
    assert test is not None
    assert "took no part" in test.origin
    seen = scored(Case.checked(model, X, y))
    assert seen is not None
    assert not seen.held_out
    np.testing.assert_array_equal(seen.probabilities, model.predict_proba(X))
    unlabelled = scored(Case.checked(model, X))
    assert unlabelled is not None
    assert unlabelled.codes is None
    inner = scored(Case.checked(model))
    assert inner is not None
    assert inner.held_out
    assert inner.names is None
    assert len(inner) == 60
    right = inner.predicted == inner.codes
    assert right.mean() > 0.8
    assert scored(Case.checked(quick(calibrate=False).fit(X, y))) is None


def test_names_go_to_the_samples_that_are_so_many(two: Any) -> None:
    model, X, y, _ = two
    e = evaluate(model, X[:20], y[:20])
    ids = [f"id {i}" for i in range(20)]
    found = scored(Case.checked(model, X, y, e, ids))
    assert found is not None
    assert found.names == ids
    case = Case.checked(model, X, y, e, ids)
    assert case.names_of(60)[0] == "sample 1"


def test_doubtful_samples_are_named_worst_first() -> None:
    p = np.array([[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.99, 0.01]])
    found = Scored(p, np.array([0, 0, 1, 1]), list("wxyz"), "here", True)
    assert found.doubtful.tolist() == [3, 1, 2]
    e = Evaluation(np.array(["a", "b"]), np.array([0, 0, 1, 1]), p, 2)
    model = quick().fit(*draw(p=12))
    outline = Outline(render(model, evaluation=e, sample_names=list("wxyz")))
    rows = re.findall(r"(\w) ([ab]) ([ab]) ([\d.]+) % ([\d.]+) % (\w+)", outline.text)
    assert rows == [
        ("z", "b", "a", "99", "1", "wrong"),
        ("x", "a", "b", "70", "30", "wrong"),
        ("y", "b", "a", "60", "40", "wrong"),
    ]
    sure = replace(e, probabilities=np.eye(2)[e.codes])
    assert "it is the true class" in Outline(render(model, evaluation=sure)).text


def test_samples_without_labels_are_listed_where_unsure(two: Any) -> None:
    model, X, _, _ = two
    middle = X.mean(axis=0).to_frame().T
    text = Outline(render(model, X=pd.concat([middle, X]))).text
    assert "61 samples by predicted class" in text.replace("\xa0", " ")
    assert re.search(r"sample 1 [ab] [5-7]\d %", text.replace("\xa0", " "))
    sure = Outline(render(model, X=X.iloc[[0]] * 5)).text
    assert "with a probability of 80 % or more." in sure.replace("\xa0", " ")


def test_thousands_of_samples_are_thinned() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 9000)
    p = 1 / (1 + np.exp(rng.normal(6 * (1 - 2 * codes), 2.0)))
    many = Scored(np.column_stack([1 - p, p]), codes, None, "", True)
    drawn = thinned(many)
    assert MOST * 2 <= len(drawn) <= MOST * 3
    assert set(many.doubtful[:MOST]) <= set(drawn)
    for k in range(2):
        extremes = many.score[codes == k]
        kept = many.score[drawn][codes[drawn] == k]
        assert kept.max() == extremes.max()
        assert kept.min() == extremes.min()
    svg = lanes(many, ["a", "b"], 640)
    assert svg.count("<circle") == len(drawn)
    e = Evaluation(np.array(["a", "b"]), codes, many.probabilities, 5)
    page = render(quick().fit(*draw(p=12)), evaluation=e)
    assert "At most 400 samples of each class are drawn" in page
    assert "(the first 10 of" in page
    assert f"Show the other {len(many.doubtful) - 10}" in page
    assert len(page) < 800_000


def test_dots_lie_by_their_score_and_on_their_side() -> None:
    p = np.array([[0.9, 0.1], [0.2, 0.8], [1.0, 0.0]])
    few = Scored(p, np.array([0, 1, 0]), ["one", "two", "three"], "", True)
    svg = lanes(few, ["a", "b"], 640)
    x = [float(v) for v in re.findall(r'<circle class="dot[^>]* cx="([\d.]+)"', svg)]
    boundary = re.search(r'class="boundary" x1="([\d.]+)"', svg)
    assert boundary is not None
    assert float(boundary[1]) == pytest.approx(320)
    assert x[1] < x[0] < 320 < x[2]
    assert x[1] >= 14  # beyond the reach, at the edge
    for words in ("0.01\xa0%", "99.99\xa0%", "50\xa0%", "10\u207b\u2076"):
        assert f">{words}<" in lanes(few, ["a", "b"], 1010)
    # The axis grows where nearly all samples lie far out.
    far = Axis.of(np.linspace(-90.0, 90.0, 99), True, 640)
    assert 80 < far.high < 96
    one = Axis.of(np.array([1.0] * 99 + [500.0]), True, 640)
    assert one.high < 17
    # A name with no room beside its dot is left to the table.
    crowd = np.array([[0.7, 0.3]] * 8 + [[0.02, 0.98]])
    codes, names = np.zeros(9, dtype=int), ["n" * 18] * 9
    crowded = lanes(Scored(crowd, codes, names, "", True), ["a", "b"], 316)
    assert 0 < crowded.count('"sample-name"') < 8
    three = np.full((3, 3), 1 / 3) + 0.3 * np.eye(3)
    margin = Scored(three / three.sum(axis=1, keepdims=True), None, None, "", True)
    np.testing.assert_allclose(margin.score, np.log((1 / 3 + 0.3) * 3))
    assert "odds of the predicted class" in lanes(margin, ["a", "b", "c"], 316)
    model = EBClassifier().fit(*draw(n_classes=3))
    assert "predicted probability of the predicted class" in render(model)


def test_the_calibration_is_that_of_the_evaluation(two: Any) -> None:
    model, _, _, e = two
    bins = calibration_bins(e.probabilities[:, 1], e.codes == 1)
    assert len(bins.counts) > 3
    page = render(model, evaluation=e)
    for i, n in enumerate(bins.counts):
        stated, share = percent(bins.predicted[i]), percent(bins.observed[i])
        assert f"predicted {stated}, observed {share} of {n}" in page
    assert page.count('class="estimate"') == len(bins.counts) + 4  # three widths, ROC
    assert "Open circles" not in page
    few = replace(e, codes=e.codes[:7], probabilities=e.probabilities[:7])
    page = render(model, evaluation=few)
    assert page.count('class="estimate few"') == 1
    assert "Open circles are groups of fewer than ten samples" in page


def test_the_confusion_and_the_error_are_those_of_the_evaluation(two: Any) -> None:
    model, X, y, e = two
    text = Outline(render(model, evaluation=e)).text.replace("\xa0", " ")
    counts = e.confusion
    for k, label in enumerate("ab"):
        row = re.search(rf" {label} (\d+) (\d+) (\d+) %", text)
        assert row is not None
        assert [int(row[1]), int(row[2])] == counts[k].tolist()
    assert f"{e.n_errors} of 60 were assigned to the wrong class" in text
    assert f"log-loss of the probabilities is {e.log_loss:.2f}" in text
    only_a = np.flatnonzero(y == "a")
    partial = evaluate(model, X.iloc[only_a], y[only_a])
    assert "b 0 0 \u2013" in Outline(render(model, evaluation=partial)).text


# Cautions


def titles(*arguments: Any, **keywords: Any) -> list[str]:
    return [c.title for c in cautions(Case.checked(*arguments, **keywords))]


def test_good_data_get_no_warning(two: Any) -> None:
    model, X, y, e = two
    found = cautions(Case.checked(model, X, y, e))
    assert [c.title for c in found if c.severe] == []
    assert e.n_errors > 0
    assert found == []
    assert "Nothing unusual was found." in render(model, X=X, y=y, evaluation=e)


def test_few_and_unequal_samples() -> None:
    X, _ = draw()
    y = np.where(np.arange(60) < 6, "rare", "usual")
    found = titles(quick().fit(X, y))
    assert "Few samples" in found
    assert "Unequal classes" in found
    page = Outline(render(quick().fit(X, y))).text.replace("\xa0", " ")
    assert "fewer than 10 samples of rare (6)" in page
    assert "9.0 times as many samples of usual as of rare" in page
    assert "wrong for only 10 %" in page


def test_noise_is_not_better_than_chance() -> None:
    X, y = draw(shift=0.0, seed=1)
    e = cross_validate(quick(), X, y)
    found = titles(quick().fit(X, y), evaluation=e)
    assert found[0] == "Not better than chance"
    assert "No difference found" in found or "No single feature stands out" in found


def test_no_feature_at_the_level_though_the_rule_has_weights() -> None:
    X, y = draw(shift=0.0)
    model = quick(prior=DiscretePrior([0.0, 0.5], [0.5, 0.5])).fit(X, y)
    assert model.selected_.any()
    assert not model.ranking_.selected().any()
    assert "No single feature stands out" in titles(model)


def test_a_column_made_from_the_label_is_noticed(two: Any) -> None:
    _, X, y, _ = two
    leaked = X.assign(leak=(y == "b") * 1.0 + 1e-3 * X["gene 0"])
    model = quick().fit(leaked, y)
    e = evaluate(model, leaked, y)
    assert e.n_errors == 0
    found = cautions(Case.checked(model, leaked, y, e))
    perfect = next(c for c in found if "single feature" in c.title)
    assert perfect.words.startswith("leak alone separates the classes")
    assert "Separation that may be too good to be true" in [c.title for c in found]


def test_perfect_features_are_those_with_a_cut() -> None:
    X = np.array([[0.0, 5, 1], [1, 4, 2], [2, 3, 1], [3, 2, 3]])
    assert perfect_features(X, np.array([0, 0, 1, 1]), 2).tolist() == [0, 1]
    assert perfect_features(X, np.array([0, 0, 0, 0]), 2).size == 0
    codes = np.array([0, 1, 1, 2])
    assert perfect_features(sparse.csr_array(X), codes, 3).tolist() == [0, 1, 2]
    # By chance: 2 of C(4, 2) orders; enumerated for three classes.
    assert perfect_by_chance(np.array([2.0, 2.0]), 6) == pytest.approx(2.0)
    one_of_three = perfect_by_chance(np.array([1.0, 2.0, 1.0]), 1)
    assert one_of_three == pytest.approx(2 / 4 + 2 / 6 + 2 / 4)


def test_a_few_perfect_features_among_many_are_chance() -> None:
    X, y = draw(n=8, p=3000, shift=0.0)
    model = quick().fit(X, y)
    codes = (y == "b").astype(int)
    assert perfect_features(X, codes, 2).size > 0
    assert "A single feature separates perfectly" not in titles(model, X, y)


def test_batches_and_outliers_are_found() -> None:
    rng = np.random.default_rng(1)
    X, y = draw(p=400)
    codes = (y == "b").astype(int)
    assert batches_and_outliers(X, codes, 2) == ([], [])
    batch = rng.permutation(np.repeat([0, 1], [40, 20]))
    shifted = X + np.outer(batch, 2 * rng.normal(size=400))
    (found,), none = batches_and_outliers(shifted, codes, 2)
    assert none == []
    np.testing.assert_array_equal(found.samples, np.flatnonzero(batch))
    assert 0.2 < found.share < 0.9
    model = quick().fit(shifted, y)
    names = [f"s{i}" for i in range(60)]
    words = next(
        c.words
        for c in cautions(Case.checked(model, shifted, y, sample_names=names))
        if c.title == "Looks like a batch"
    )
    assert "groups of 20 and 40" in words
    assert f"s{np.flatnonzero(batch)[0]}" in words
    inside = [int(np.sum(batch[codes == k])) for k in range(2)]
    assert f"a {inside[0]} and {30 - inside[0]}" in words

    odd = X.copy()
    odd[7] += 9 * rng.normal(size=400)
    none, (outlier,) = batches_and_outliers(odd, codes, 2)
    assert outlier.samples.tolist() == [7]
    found_titles = titles(quick().fit(odd, y), odd, y)
    assert "A sample unlike the others" in found_titles


def test_structure_of_degenerate_data_is_none() -> None:
    codes = np.array([0, 0, 1, 1])
    assert batches_and_outliers(np.ones((4, 3)), codes, 2) == ([], [])
    assert batches_and_outliers(np.eye(2), np.array([0, 1]), 2) == ([], [])
    assert two_groups(np.zeros(5))[1] == 0.0
    normal = np.random.default_rng(0).normal(size=10_000)
    assert two_groups(normal)[1] == pytest.approx(2 / np.pi, abs=0.01)


# Words


def test_factors_are_spoken_of() -> None:
    rng = np.random.default_rng(0)
    X, y = draw(p=300)
    X += np.outer(rng.normal(size=60), rng.normal(size=300))
    model = EBClassifier().fit(X, y)
    assert model.n_factors_ == 1
    case = Case.checked(model, X, y)
    words = " ".join(method(case)).replace("\xa0", " ")
    assert "1 common factor was found within the classes" in words
    told = [c.title for c in cautions(case)]
    assert "Common factors within the classes" in told
    assert "Looks like a batch" not in told  # it has no two groups


def test_the_choice_is_told(two: Any) -> None:
    rng = np.random.default_rng(0)
    X, y = draw(p=300)
    model = EBClassifier().fit(X + np.outer(rng.normal(size=60), np.ones(300)), y)
    assert len(model.selection_.candidates) > 1
    words = " ".join(method(Case.checked(model)))
    covariance, shrinkage = model.selection_.best
    assert f"“{covariance}, {shrinkage}”" in words
    page = Outline(render(model)).text
    for name in model.selection_.candidates:
        assert ", ".join(name) in page
        assert line_of(COVARIANCES, name[0]) in page
    alone = quick().fit(two[1], two[2])
    assert alone.selection_.words() in method(Case.checked(alone))
    assert "calibrated on held-out samples" in Outline(render(alone)).text
    plain = quick(calibrate=False).fit(two[1], two[2])
    assert plain.selection_.reason in method(Case.checked(plain))
    assert "\u2013" in Outline(render(plain)).text  # no separation without folds


@pytest.mark.parametrize(
    "parameters", [{}, {"covariance": "diagonal", "shrinkage": "mean"}]
)
def test_the_report_says_what_the_held_out_samples_do_not_show(
    two: Any, parameters: dict[str, str]
) -> None:
    """Of one rule and of several; and only where they do not show it."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 150)) + np.outer(rng.normal(size=40), np.ones(150))
    y = np.array(["a", "b"])[np.arange(40) % 2]
    model = EBClassifier(**parameters).fit(X, y)
    assert model.selection_.doubt
    assert (len(model.selection_.candidates) > 1) == (not parameters)
    assert model.selection_.doubt in Outline(render(model, X=X, y=y)).text
    assert two[0].selection_.doubt == ""
    assert "do not show that the rule" not in Outline(render(two[0])).text


def test_a_new_shrinkage_needs_no_change_of_the_report(two: Any) -> None:
    model = two[0]
    new = Shrinkage("double", "twice the mean", lambda z, p, kappa: 2 * p.mean)
    with SHRINKAGES.added(new):
        outline = Outline(render(model))
    assert "double : twice the mean" in outline.text
    curves = {k: unpacked(v) for k, v in outline.data["curves"].items()}
    np.testing.assert_allclose(curves["double"], 2 * curves["mean"], rtol=1e-6)


def test_no_component_is_named_outside_of_its_room() -> None:
    names = {*COVARIANCES, *SHRINKAGES, *VARIANCES, *PRIORS}
    names -= {"none"}  # a word of CSS, too
    for room in ("report", "plotting"):
        for path in (Path(ebda.__file__).parent / room).rglob("*.*"):
            if path.suffix == ".py":
                nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                words = {n.value for n in nodes if isinstance(n, ast.Constant)}
            elif path.suffix in (".js", ".html"):
                quoted = re.findall(r"""["'`>](\w+)["'`<]""", path.read_text())
                words = set(quoted)
            else:
                continue
            assert not words & names, path


@pytest.mark.parametrize(
    ("prior", "first"),
    [
        ("dp", "no difference"),
        ("kernel", "no difference"),
        ("normal", "no difference"),
        (DiscretePrior([-2, 0, 3], [5, 1, 4]), "\u22122.0 standard errors"),
        (DiscretePrior(np.linspace(-3, 3, 13), np.ones(13)), "no difference"),
    ],
)
def test_any_prior_is_told(two: Any, prior: Any, first: str) -> None:
    model = quick(prior=prior).fit(two[1], two[2])
    told = prior_rows(Case.checked(model))
    assert sum(share for _, share in told) == pytest.approx(1.0)
    assert told[0][0] == first
    if prior != "dp":  # the default
        text = Outline(render(model)).text
        assert f"prior of the differences: {component(prior)}" in text
        assert "; shrinkage: mean" in text


def test_many_atoms_are_summed_up(two: Any) -> None:
    prior = DiscretePrior(np.linspace(-3, 3, 13), np.ones(13))
    model = quick(prior=prior).fit(two[1], two[2])
    shares = dict(prior_rows(Case.checked(model)))
    assert shares == pytest.approx(
        {"no difference": 1 / 13, "higher": 6 / 13, "lower": 6 / 13}
    )


def test_headlines() -> None:
    X, y = draw(6, p=40)
    codes = np.unique(y, return_inverse=True)[1]
    for k, words in (
        (2, "a against b"),
        (3, "a, b and c"),
        (6, "6\xa0classes"),
    ):
        model = quick().fit(X, y[codes] if k == 6 else y[codes % k])
        assert headline(Case.checked(model)) == words
        assert words in render(model)


@pytest.mark.parametrize("p", [1, 7])
def test_nothing_to_find(p: int) -> None:
    X = np.random.default_rng(0).normal(size=(24, p))
    y = np.repeat(["a", "b"], 12)
    model = EBClassifier().fit(X, y)
    assert model.prob_zero_.min() > 0.9
    outline = Outline(render(model, X=X, y=y))
    assert "No single feature stands out" in outline.text
    assert "Error not estimated" in outline.text
    assert len(unpacked(outline.data["column"], "<u4")) == p
    # There is nothing to list.
    assert "No feature differs between the classes with q ≤ 0.05." in outline.text
    assert "The first" not in outline.text


def test_a_rule_without_any_feature() -> None:
    X = np.random.default_rng(0).normal(size=(24, 7))
    y = np.repeat(["a", "b"], 12)
    model = EBClassifier(prior=DiscretePrior([0], [1])).fit(X, y)
    assert not model.selected_.any()
    assert "No difference found" in Outline(render(model, X=X, y=y)).text


def test_lists_and_polars_tables_will_do(two: Any) -> None:
    model, X, y, _ = two
    polars = pytest.importorskip("polars")
    table = polars.from_pandas(X)
    assert Outline(render(model, X=table, y=y)).text.count("60") > 0
    nameless = quick().fit(X.to_numpy(), y)
    assert render(nameless, X=X.to_numpy().tolist(), y=y.tolist())
    with pytest.raises(ValueError, match="infinity"):
        render(nameless, X=np.full((2, X.shape[1]), np.inf))


def test_missing_values_are_a_caution(two: Any) -> None:
    _, X, y, _ = two
    gaps = X.to_numpy(copy=True)
    gaps[::3, 1] = np.nan
    gaps[np.asarray(y) == y[0], 2] = np.nan
    text = Outline(render(quick().fit(gaps, y), X=gaps, y=y)).text
    assert "of the values were missing in the fit" in text
    assert "1 feature without a value in some class has no weight" in text


def test_sparse_data_and_constant_features() -> None:
    X, y = draw(p=20)
    X[:, 15:] = 0.0
    X = sparse.csr_array(np.where(np.abs(X) < 0.5, 0.0, X))
    model = quick().fit(X, y)
    outline = Outline(render(model, X=X, y=y))
    for key in ("p", "q", "beyond"):
        assert (unpacked(outline.data["rows"][key][0])[-5:] == 0).all()


def test_payload_of_a_model_without_names_counts_from_zero(two: Any) -> None:
    X, y = draw(p=9)
    case = Case.checked(quick().fit(X, y))
    assert payload(case)["names"] is None
    assert case.feature(3) == "x3"


def test_all_keys_of_data_are_shown(two: Any) -> None:
    data = {"source": "f.csv", "n_samples": 1234, "transformation": None, "site": "Ulm"}
    text = Outline(render(two[0], data=data, command="ebda fit f.csv")).text
    for words in ("samples 1,234", "site Ulm", "command ebda fit f.csv", "numpy "):
        assert words in text
    assert "transformation" not in text


@pytest.mark.slow
def test_the_example_writes_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golub = load_golub()
    golub.data, golub.feature_names = golub.data[:, :600], golub.feature_names[:600]
    monkeypatch.setattr("ebda.datasets.load_golub", lambda: golub)  # quicker
    example = Path(__file__).parents[1] / "examples" / "report.py"
    main = runpy.run_path(str(example))["main"]
    main(str(tmp_path / "golub.html"), n_folds=2)
    page = (tmp_path / "golub.html").read_text(encoding="utf-8")
    assert "leukemia: ALL against AML" in page
    assert "patient 66" in page
