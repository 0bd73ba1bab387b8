"""Displays of predictions: scores, calibration, and errors of methods."""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from scipy.special import logit, softmax

from ebda.evaluation import Evaluation, calibration_bins
from ebda.plotting import CalibrationDisplay, ErrorByMethodDisplay, ScoreDisplay

RECORDS = Path(__file__).parent.parent / "docs" / "benchmarks" / "accuracy.csv"


@pytest.fixture(autouse=True)
def _no_screen() -> None:
    mpl.use("agg")


def evaluation(n_classes: int, seed: int = 0) -> Evaluation:
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=120)
    table = rng.normal(size=(120, n_classes)) + 2 * np.eye(n_classes)[codes]
    classes = np.array(["a", "b", "c"][:n_classes])
    return Evaluation(classes, codes, softmax(table, axis=1), 5)


class Scorer:
    """The least that has a decision function."""

    def __init__(self, table: np.ndarray, classes: np.ndarray) -> None:
        self.table, self.classes_ = table, classes

    def decision_function(self, X: object) -> np.ndarray:
        return self.table


def test_scores_of_two_classes_are_the_decision_function() -> None:
    found = evaluation(2)
    odds = logit(found.probabilities[:, 1])
    held_out = ScoreDisplay.from_evaluation(found)
    np.testing.assert_allclose(held_out.scores, odds, atol=1e-12)
    np.testing.assert_array_equal(held_out.wrong, found.predicted != found.codes)
    fitted = ScoreDisplay.from_estimator(
        Scorer(odds, found.classes), None, found.classes[found.codes]
    )
    np.testing.assert_array_equal(fitted.scores, odds)
    np.testing.assert_array_equal(fitted.codes, found.codes)
    other = ScoreDisplay.from_evaluation(found, contrast="a")
    np.testing.assert_allclose(other.scores, -odds, atol=1e-12)
    np.testing.assert_array_equal(other.wrong, held_out.wrong)


def test_scores_of_many_classes_change_sign_at_the_boundary() -> None:
    found = evaluation(3)
    own = ScoreDisplay.from_evaluation(found)
    np.testing.assert_array_equal(own.scores > 0, found.predicted == found.codes)
    np.testing.assert_array_equal(own.wrong, found.predicted != found.codes)
    one = ScoreDisplay.from_evaluation(found, contrast="b")
    np.testing.assert_array_equal(one.scores > 0, found.predicted == 1)
    np.testing.assert_array_equal(
        one.wrong, (found.predicted == 1) != (found.codes == 1)
    )
    # Log probabilities and decisions differ by a constant a sample.
    table = np.log(found.probabilities) + np.arange(120)[:, None]
    labels = found.classes[found.codes]
    given = ScoreDisplay.from_predictions(table, labels, found.classes)
    np.testing.assert_allclose(given.scores, own.scores, atol=1e-10)
    turned = ScoreDisplay.from_predictions(
        table[:, ::-1], labels, found.classes[::-1], contrast="b"
    )
    np.testing.assert_allclose(turned.scores, one.scores, atol=1e-10)


def test_a_probability_of_zero_has_a_finite_score() -> None:
    sure = Evaluation(np.array([0, 1]), np.array([0, 1]), np.eye(2), 2)
    scores = ScoreDisplay.from_evaluation(sure).scores
    assert np.isfinite(scores).all()
    assert scores[0] < -600 < 600 < scores[1]


def test_scores_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\).* 2 labels of 2 classes"):
        ScoreDisplay.from_predictions(np.zeros((2, 3)), ["a", "b"])
    with pytest.raises(ValueError, match=r"sample 1 has the class .*'z'.*'a', 'b'"):
        ScoreDisplay.from_predictions([1.0, 2.0], ["a", "z"], ["a", "b"])
    with pytest.raises(ValueError, match=r"names has shape \(1,\).*2 samples"):
        ScoreDisplay.from_predictions([1.0, 2.0], ["a", "b"], names=["x"])


def test_every_sample_is_drawn_once_where_it_scores() -> None:
    from matplotlib.figure import Figure

    found = evaluation(3)
    display = ScoreDisplay.from_evaluation(found).plot(Figure().subplots())
    lines = {str(line.get_label()): line for line in display.ax_.lines}
    for place, name in enumerate(found.classes):
        right = (found.codes == place) & ~display.wrong
        np.testing.assert_array_equal(
            lines[name].get_xdata(), display.scores[right], strict=True
        )
        # Its density lies above its line, and ends below the points of the one before.
        density = display.ax_.collections[place].get_paths()[0].vertices[:, 1]
        assert density.min() == 2 - place
        assert 2 - place < density.max() <= 2 - place + 0.43
        # Points of a class lie below its line and above the next.
        y = lines[name].get_ydata()
        assert ((y < 2 - place) & (y > 1.5 - place)).all()
    crosses = lines[f"on the wrong side ({found.n_errors})"]
    assert len(crosses.get_xdata()) == found.n_errors > 0


def test_only_samples_on_the_wrong_side_are_named() -> None:
    from matplotlib.figure import Figure

    names = [f"s{i}" for i in range(120)]
    display = ScoreDisplay.from_evaluation(evaluation(2), names=names)
    display.plot(Figure().subplots(), n_labels=3)
    wrong = np.flatnonzero(display.wrong)
    worst = wrong[np.argsort(-np.abs(display.scores[wrong]))][:3]
    assert [t.get_text() for t in display.labels_] == [names[i] for i in worst]


def test_a_class_of_one_sample_or_of_equal_scores_has_no_density() -> None:
    from matplotlib.figure import Figure

    scores = [-3.0, -2.0, -1.5, -2.5, 4.0]
    ax = Figure().subplots()
    ScoreDisplay.from_predictions(scores, list("aaaab")).plot(ax)
    heights = [np.ptp(c.get_paths()[0].vertices[:, 1]) for c in ax.collections]
    assert heights[0] > 0.3
    assert heights[1] == 0
    ScoreDisplay.from_predictions([0.0, 0.0], list("ab")).plot(Figure().subplots())


def test_calibration_counts_and_intervals_by_hand() -> None:
    found = evaluation(2)
    bins = CalibrationDisplay.from_evaluation(found, n_bins=7).bins
    p, hits = found.probabilities[:, 1], found.codes == 1
    order = np.argsort(p)
    assert bins.counts.max() - bins.counts.min() <= 1
    ends = np.cumsum(bins.counts)
    assert (len(ends), ends[-1]) == (7, 120)
    for i, inside in enumerate(np.split(order, ends[:-1])):
        n, k = len(inside), hits[inside].sum()
        assert bins.counts[i] == n
        assert bins.observed[i] == k / n
        assert bins.predicted[i] == pytest.approx(p[inside].mean())
        # Wilson's interval in closed form.
        z = 1.959963984540054
        centre = (k + z**2 / 2) / (n + z**2)
        half = z / (n + z**2) * np.sqrt(k * (n - k) / n + z**2 / 4)
        assert bins.low[i] == pytest.approx(centre - half, abs=1e-9)
        assert bins.high[i] == pytest.approx(centre + half, abs=1e-9)


def test_calibration_of_many_true_probabilities_is_on_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(4000)
    bins = calibration_bins(p, rng.random(4000) < p)
    np.testing.assert_array_equal(bins.counts, 400)
    np.testing.assert_allclose(bins.observed, bins.predicted, atol=0.06)
    assert (bins.low < bins.observed).all()
    assert (bins.observed < bins.high).all()
    assert not bins.few_samples.any()


def test_calibration_does_not_depend_on_the_order_of_the_samples() -> None:
    rng = np.random.default_rng(1)
    p = rng.integers(0, 6, 90) / 5  # with many ties
    hits = rng.random(90) < p
    bins = calibration_bins(p, hits, n_bins=9)
    assert len(bins.counts) <= 6
    assert bins.counts.sum() == 90
    again = rng.permutation(90)
    other = calibration_bins(p[again], hits[again], n_bins=9)
    for name in ("observed", "low", "high", "counts"):
        np.testing.assert_array_equal(getattr(bins, name), getattr(other, name))
    np.testing.assert_allclose(bins.predicted, other.predicted, rtol=1e-12)


def test_calibration_of_a_contrast_or_of_the_predicted_class() -> None:
    found = evaluation(3)
    predicted = CalibrationDisplay.from_evaluation(found)
    np.testing.assert_array_equal(
        predicted.probabilities, found.probabilities.max(axis=1)
    )
    assert predicted.hits.mean() == pytest.approx(1 - found.error)
    one = CalibrationDisplay.from_evaluation(found, "c")
    np.testing.assert_array_equal(one.probabilities, found.probabilities[:, 2])
    np.testing.assert_array_equal(one.hits, found.codes == 2)
    assert len(one.bins.counts) == 10
    assert one.bins.counts.sum() == 120
    single = calibration_bins([0.5], [True])
    assert (single.predicted[0], single.observed[0]) == (0.5, 1.0)


def test_equal_probabilities_share_a_bin_and_small_bins_are_open() -> None:
    bins = CalibrationDisplay.from_predictions([0.0, 1.0, 1.0], [0, 1, 1], n_bins=2)
    assert bins.bins.counts.tolist() == [1, 2]
    assert bins.bins.observed.tolist() == [0.0, 1.0]
    from matplotlib.figure import Figure

    p = np.repeat([0.1, 0.9], [4, 26])
    display = CalibrationDisplay.from_predictions(p, p > 0.5, n_bins=3)
    assert display.bins.few_samples.tolist() == [True, False]
    axes = display.plot(Figure().subplots()).ax_
    faces = [bar.lines[0].get_markerfacecolor() for bar in axes.containers]
    assert faces[1] == "white" != faces[0]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[1:] == ["observed, 26 samples each", "observed, 4 samples each"]


@pytest.mark.parametrize(
    ("p", "hits", "message"),
    [
        ([0.2, 1.4], [0, 1], "between 0 and 1; that of sample 1 is 1.4"),
        ([np.nan], [0], "between 0 and 1; that of sample 0 is nan"),
        ([0.2], [0, 1], r"of one length.*\(1,\) and \(2,\)"),
        ([], [], "at least one"),
    ],
)
def test_what_is_no_probability_is_refused(p: list, hits: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions(p, hits)


def test_errors_of_methods_are_those_of_the_evaluations() -> None:
    found = {"ours": evaluation(2, 0), "theirs": evaluation(2, 1)}
    display = ErrorByMethodDisplay.from_evaluations(found, level=0.9)
    for i, one in enumerate(found.values()):
        assert display.errors[i] == one.error
        assert (display.low[i], display.high[i]) == one.interval(0.9)
    # Other samples: there is no one error of chance.
    assert display.chance is None
    same = ErrorByMethodDisplay.from_evaluations({"a": found["ours"]})
    assert same.chance == found["ours"].chance_error


def test_methods_are_drawn_as_given_or_by_error() -> None:
    from matplotlib.figure import Figure

    display = ErrorByMethodDisplay(
        ["x", "y"], np.array([0.2, 0.1]), np.array([0.1, 0.0]), np.array([0.3, 0.2])
    )
    for by_error, order in ((False, ["x", "y"]), (True, ["y", "x"])):
        axes = display.plot(Figure().subplots(), by_error=by_error).ax_
        names = [text.get_text() for text in axes.get_yticklabels()]
        assert names == order
        points = axes.containers[0].lines[0]
        assert points.get_ydata().tolist() == [1, 0]
        expected = [0.1, 0.2] if by_error else [0.2, 0.1]
        assert points.get_xdata().tolist() == expected


def test_records_of_the_benchmark() -> None:
    with RECORDS.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    display = ErrorByMethodDisplay.from_records(rows, "alon_colon")
    chosen = [row for row in rows if row["set"] == "alon_colon"]
    assert display.methods == [row["method"] for row in chosen]
    assert display.errors[0] == float(chosen[0]["error"])
    half = 1.959964 * float(chosen[0]["se"])
    assert display.high[0] - display.errors[0] == pytest.approx(half, rel=1e-6)
    assert (display.low >= 0).all()
    with pytest.raises(ValueError, match=r"of \d+ sets: choose a data_set"):
        ErrorByMethodDisplay.from_records(rows)
    with pytest.raises(ValueError, match="no record of the set 'x'; there are ALL_"):
        ErrorByMethodDisplay.from_records(rows, "x")


def test_nothing_to_compare_is_said() -> None:
    for make in (
        ErrorByMethodDisplay.from_records,
        ErrorByMethodDisplay.from_evaluations,
    ):
        with pytest.raises(ValueError, match="nothing to compare"):
            make({})  # type: ignore[operator]
