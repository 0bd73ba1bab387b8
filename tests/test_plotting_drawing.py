"""How displays draw: into which axes, with what words, and without covering them."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.special import softmax

from ebda import EBClassifier
from ebda.datasets import load_golub, load_khan
from ebda.evaluation import Evaluation, plan_from_evaluation
from ebda.plotting import (
    CalibrationDisplay,
    EffectDisplay,
    ErrorByMethodDisplay,
    ErrorDisplay,
    ExpectedErrorDisplay,
    MarginalDisplay,
    PanelDisplay,
    PlanningDisplay,
    PriorDisplay,
    ScoreDisplay,
    ShrinkageDisplay,
    plot_fit,
)
from ebda.plotting.display import look, plain
from ebda.priors import DiscretePrior, Kernel, PointNormalPrior


@pytest.fixture(autouse=True)
def _no_screen_and_nothing_left_open() -> Any:
    import matplotlib.pyplot as plt

    mpl.use("agg")
    yield
    left = plt.get_fignums()
    plt.close("all")
    assert not left


def evaluation(n_classes: int) -> Evaluation:
    rng = np.random.default_rng(n_classes)
    codes = np.arange(80) % n_classes
    table = 2 * rng.normal(size=(80, n_classes)) + 4 * np.eye(n_classes)[codes]
    classes = np.array([f"tissue {k}" for k in range(n_classes)])
    return Evaluation(classes, codes, softmax(table, axis=1), 5)


class RealData:
    """Golub with two classes and Khan with four, fitted once."""

    def __init__(self) -> None:
        quick = {"shrinkage": "mean", "covariance": "factor"}
        golub, khan = load_golub(), load_khan()
        X = np.sign(golub.data) * np.log1p(np.abs(golub.data))
        self.genes = {2: golub.feature_names, 4: khan.feature_names}
        self.models = {
            2: EBClassifier(**quick).fit(X, golub.target),
            4: EBClassifier(**quick).fit(khan.data, khan.target),
        }


@pytest.fixture(scope="module")
def real() -> RealData:
    return RealData()


def effects(real: RealData, k: int, contrast: Any = None) -> EffectDisplay:
    return EffectDisplay.from_estimator(real.models[k], contrast, names=real.genes[k])


def named(n_classes: int) -> ScoreDisplay:
    names = [f"patient {i}" for i in range(80)]
    return ScoreDisplay.from_evaluation(evaluation(n_classes), names=names)


DISPLAYS: dict[str, Callable[[RealData], Any]] = {
    "marginal": lambda real: MarginalDisplay.from_estimator(real.models[2]),
    "marginal of one": lambda real: MarginalDisplay.from_estimator(
        real.models[4], "EWS"
    ),
    "shrinkage": lambda real: ShrinkageDisplay.from_estimator(real.models[4]),
    "prior": lambda real: PriorDisplay.from_estimator(real.models[2]),
    "prior of many atoms": lambda real: PriorDisplay.from_prior(
        DiscretePrior(np.linspace(-3, 3, 40), np.arange(1, 41))
    ),
    "prior at zero": lambda real: PriorDisplay.from_prior(DiscretePrior([0], [1])),
    "slab": lambda real: PriorDisplay.from_prior(PointNormalPrior(0.8, 2.0)),
    "kernel": lambda real: PriorDisplay.from_prior(
        Kernel().fit(real.models[2].z_[:500]).prior_
    ),
    "effects": lambda real: effects(real, 2),
    "effects of four": lambda real: effects(real, 4),
    "effects of one": lambda real: effects(real, 4, "EWS"),
    "scores": lambda real: named(2),
    "scores of five": lambda real: named(5),
    "calibration": lambda real: CalibrationDisplay.from_evaluation(evaluation(2)),
    "calibration of five": lambda real: CalibrationDisplay.from_evaluation(
        evaluation(5)
    ),
    "methods": lambda real: ErrorByMethodDisplay.from_evaluations(
        {"ours": evaluation(2), "a method with a long name": evaluation(2)}
    ),
    "errors": lambda real: ErrorDisplay({"DP": [0.1, 0.2], "IR": [0.2, 0.4]}),
    "expected error": lambda real: ExpectedErrorDisplay.from_effects(
        [5, 10, 20, 40], [1.0], 0.95, n_features=200
    ),
    "panel": lambda real: PanelDisplay(
        np.array([1, 5, 20, 100, 1000]),
        np.array([0.3, 0.15, 0.1, 0.09, 0.0]),
        np.full(5, 0.02),
        1000,
        1000,
        0.02,
        0.5,
    ),
    "panel of few": lambda real: PanelDisplay(
        np.array([1, 5, 20]),
        np.array([0.3, 0.15, 0.14]),
        np.full(3, 0.02),
        5,
        20,
        0.16,
        0.5,
    ),
    "planning": lambda real: PlanningDisplay.from_plan(
        plan_from_evaluation(evaluation(2))
    ),
    "planning of five": lambda real: PlanningDisplay.from_plan(
        plan_from_evaluation(evaluation(5), n_test=40)
    ),
}


def render(figure: Any, dpi: int = 100) -> Any:
    figure.dpi = dpi
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def words(figure: Any) -> list[Text]:
    """All text that is seen."""
    found: list[Text] = []
    for ax in figure.axes:
        for one in (ax, *ax.child_axes):
            if not one.axison:
                continue
            found += [one.title, one.xaxis.label, one.yaxis.label, *one.texts]
            if one.get_legend() is not None:
                found += one.get_legend().get_texts()
            for axis in (one.xaxis, one.yaxis):
                low, high = sorted(axis.get_view_interval())
                at = axis.get_majorticklocs()
                pairs = zip(at, axis.get_majorticklabels(), strict=True)
                found += [label for v, label in pairs if low <= v <= high]
    return [text for text in found if text.get_text() and text.get_visible()]


@pytest.mark.slow
@pytest.mark.parametrize("name", DISPLAYS)
def test_axes_given_are_used_and_no_figure_is_made(name: str, real: RealData) -> None:
    import matplotlib.pyplot as plt

    display = DISPLAYS[name](real)
    assert not hasattr(display, "ax_")
    figure = Figure()
    ax = figure.subplots()
    assert display.plot(ax) is display
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert figure.axes == [ax]
    assert not plt.get_fignums()


@pytest.mark.slow
@pytest.mark.parametrize("name", DISPLAYS)
def test_axes_are_made_where_none_are_given(name: str, real: RealData) -> None:
    import matplotlib.pyplot as plt

    display = DISPLAYS[name](real).plot()
    assert plt.get_fignums() == [display.figure_.number]
    assert display.ax_ in display.figure_.axes
    plt.close(display.figure_)


@pytest.mark.slow
@pytest.mark.parametrize("name", DISPLAYS)
def test_no_word_is_cut_or_covers_another(name: str, real: RealData) -> None:
    display = DISPLAYS[name](real).plot()
    display.ax_.set_title("A title")
    renderer = render(display.figure_)
    frame = display.figure_.bbox
    boxes = []
    for text in words(display.figure_):
        box = Text.get_window_extent(text, renderer)
        boxes.append((text.get_text(), box))
        assert text.get_fontsize() >= 8
        inside = box.x0 >= frame.x0 - 1 and box.x1 <= frame.x1 + 1
        inside = inside and box.y0 >= frame.y0 - 1 and box.y1 <= frame.y1 + 1
        assert inside, f"{text.get_text()!r} is cut"
    for (a, box_a), (b, box_b) in itertools.combinations(boxes, 2):
        apart = box_a.x1 <= box_b.x0 + 1 or box_b.x1 <= box_a.x0 + 1
        apart = apart or box_a.y1 <= box_b.y0 + 1 or box_b.y1 <= box_a.y0 + 1
        assert apart, f"{a!r} covers {b!r}"
    mpl.pyplot.close(display.figure_)


@pytest.mark.slow
@pytest.mark.parametrize("name", DISPLAYS)
def test_axes_say_what_they_show(name: str, real: RealData) -> None:
    ax = DISPLAYS[name](real).plot(Figure().subplots()).ax_
    # Rows of samples, methods and boxes are named one by one.
    rows = {"scores", "scores of five", "methods", "errors"}
    if name not in rows:
        assert ax.get_xlabel()
        if name != "prior at zero":
            assert ax.get_ylabel()
            assert ax.get_legend_handles_labels()[1]
    else:
        assert ax.get_xlabel() or ax.get_ylabel()
        ticks = [*ax.get_xticklabels(), *ax.get_yticklabels()]
        assert any(text.get_text().strip("0123456789.%") for text in ticks)


@pytest.mark.parametrize("size", [(4, 4), (12, 9)])
def test_a_strip_keeps_its_height_and_a_title_stays_above(
    size: tuple[float, float],
) -> None:
    figure = Figure(figsize=size)
    part = figure.subfigures(1, 2)[1]
    display = PriorDisplay.from_prior(DiscretePrior([0, 2], [0.9, 0.1]))
    display.plot(part.subplots())
    display.ax_.set_title("A title")
    renderer = render(figure)
    bar, below = display.bar_.get_window_extent(renderer), display.ax_.bbox
    assert bar.height / figure.dpi * 72 == pytest.approx(14)
    assert (bar.y0 - below.y1) / figure.dpi * 72 == pytest.approx(22)
    assert (bar.x0, bar.x1) == pytest.approx((below.x0, below.x1))
    assert display.ax_.title.get_window_extent(renderer).y0 > bar.y1


@pytest.mark.slow
def test_labels_stay_apart_at_any_size_and_resolution(real: RealData) -> None:
    figure = Figure(figsize=(9, 8), layout="constrained")
    displays = [effects(real, 4, name) for name in ("BL", "EWS", "NB", "RMS")]
    for display, ax in zip(displays, figure.subplots(2, 2).ravel(), strict=True):
        display.plot(ax)
    for size, dpi in (((9, 8), 100), ((6, 5), 100), ((9, 8), 220)):
        figure.set_size_inches(size)
        renderer = render(figure, dpi)
        for display in displays:
            shown = [note for note in display.labels_ if note.get_visible()]
            assert shown
            boxes = [Text.get_window_extent(note, renderer) for note in shown]
            for a, b in itertools.combinations(boxes, 2):
                assert not a.overlaps(b)
            for box in boxes:
                assert display.ax_.bbox.count_contains([box.p0, box.p1]) == 2


@pytest.mark.slow
def test_labels_without_room_are_left_out_and_come_back() -> None:
    from ebda.plotting.labels import label_points

    figure = Figure(figsize=(2, 2))
    ax = figure.subplots()
    x = np.full(40, 0.5)
    points = np.stack([x, x], axis=1)
    notes = label_points(ax, x, x, [f"name number {i}" for i in range(40)], points)
    render(figure)
    few = [note.get_visible() for note in notes]
    assert few[0]
    assert not all(few)
    figure.set_size_inches(12, 12)
    render(figure)
    assert sum(note.get_visible() for note in notes) > sum(few)


@pytest.mark.slow
def test_a_second_drawing_changes_nothing(real: RealData) -> None:
    display = effects(real, 2).plot(Figure(figsize=(4, 3)).subplots(), n_labels=60)
    render(display.figure_)
    before = [note.xyann for note in display.labels_]
    assert not all(note.get_visible() for note in display.labels_)
    display.figure_.stale = False
    display.figure_.canvas.draw()
    assert [note.xyann for note in display.labels_] == before
    assert not display.figure_.stale


def test_only_notable_features_are_coloured_and_labelled(real: RealData) -> None:
    display = effects(real, 2).plot(Figure().subplots(), n_labels=5, level=0.01)
    notable = display.q_value <= 0.01
    lines = display.ax_.lines
    assert len(lines[0].get_xdata()) == np.count_nonzero(~notable)
    for side in (0, 1):
        chosen = notable & (display.sides == side)
        drawn = lines[1 + side]
        np.testing.assert_array_equal(drawn.get_xdata(), display.effect[chosen])
        assert display.p_value is not None
        floored = np.maximum(display.p_value[chosen], 1e-16)
        np.testing.assert_array_equal(drawn.get_ydata(), floored)
    best = display.order[:5]
    expected = [real.genes[2][j] for j in best if notable[j]]
    assert [note.get_text() for note in display.labels_] == expected


def test_a_volcano_without_notable_features_has_no_labels(real: RealData) -> None:
    display = effects(real, 2).plot(Figure().subplots(), level=0.0)
    assert display.labels_ == []
    render(display.figure_)


def test_features_without_a_name_go_by_their_column(real: RealData) -> None:
    display = effects(real, 2)
    best = int(display.order[0])
    display.names = real.genes[2].copy()
    display.names[best] = " "
    display.plot(Figure().subplots(), n_labels=1)
    assert [note.get_text() for note in display.labels_] == [f"feature {best}"]


def test_without_a_mass_at_zero_the_volcano_shows_false_sign_rates() -> None:
    z = np.append(np.random.default_rng(0).normal(size=100), 30.0)
    posterior = Kernel().fit(z).prior_.posterior(z)
    display = EffectDisplay.from_posterior(posterior)
    ax = display.plot(Figure().subplots()).ax_
    # The far one is beyond what a probability can say, and drawn at the edge.
    assert ax.get_ylabel() == "local false sign rate\n(smaller ones drawn at 1e-16)"
    assert min(line.get_ydata().min() for line in ax.lines[:2]) == 1e-16
    assert display.labels_[0].get_text() == "feature 100"
    ax = display.plot(Figure().subplots(), measure="prob_zero").ax_
    assert ax.get_ylabel().startswith("probability of no difference")
    with pytest.raises(ValueError, match=r"measure must be one of \['lfsr', 'prob"):
        display.plot(measure="p")


@pytest.mark.slow
@pytest.mark.parametrize("bad", [r"$\frac{$", "a $b$ c", "_hidden", "x\ny"])
def test_names_from_the_data_are_shown_as_text(bad: str) -> None:
    codes = np.array([0, 1] * 10)
    names = np.array([bad] * 20)
    score = np.where(codes == 1, 2.0, -2.0) + np.linspace(-3, 3, 20)
    labels = np.array([bad, "~other"])[codes]
    display = ScoreDisplay.from_predictions(score, labels, names=names)
    display.plot(Figure().subplots())
    render(display.figure_)
    drawn = " ".join(text.get_text() for text in words(display.figure_))
    assert " ".join(bad.split()) in drawn.replace(r"\$", "$")


def test_looks_differ_also_without_colour() -> None:
    looks = [look(i) for i in range(40)]
    assert len({(one.colour, one.marker) for one in looks}) == 40
    grey = [np.dot(to_rgb(one.colour), [0.299, 0.587, 0.114]) for one in looks[:7]]
    assert max(grey) < 0.75  # seen on white paper
    assert len({one.marker for one in looks[:8]}) == 8
    assert plain("x" * 50) == "x" * 39 + "…"


def test_curves_differ_in_line_or_marker(real: RealData) -> None:
    for name in ("marginal", "shrinkage", "expected error", "planning"):
        ax = DISPLAYS[name](real).plot(Figure().subplots()).ax_
        lines = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
        looks = {(i.get_linestyle(), i.get_marker(), i.get_linewidth()) for i in lines}
        assert len(looks) == len(lines)


def test_figure_of_a_fit_leaves_pyplot_alone(real: RealData) -> None:
    figure = plot_fit(real.models[4])
    assert [ax.get_title() for ax in figure.axes][1] == "shrinkage"


def test_what_was_held_out_is_marked_in_a_plan(real: RealData) -> None:
    plan = plan_from_evaluation(evaluation(2))
    ax = PlanningDisplay.from_plan(plan).plot(Figure().subplots()).ax_
    mark = next(i for i in ax.lines if str(i.get_label()).startswith("held out"))
    assert mark.get_xdata()[0] == plan.fitted_to
    assert mark.get_ydata()[0] == evaluation(2).error


@pytest.mark.slow
def test_the_example_draws_all_pictures(tmp_path: Path) -> None:
    script = Path(__file__).parent.parent / "examples" / "plots.py"
    subprocess.run(
        [sys.executable, "-W", "error", script, tmp_path, "--quick"],
        check=True,
        capture_output=True,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    drawn = {path.stem for path in tmp_path.glob("*.png")}
    assert {"golub_effects", "khan_effects_EWS", "benchmark_methods"} <= drawn


def test_without_matplotlib_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "try:\n    import ebda.plotting\n"
        "except ImportError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "plots need matplotlib: pip install 'ebda[plot]'"


@pytest.mark.parametrize("k", [10, 40])
def test_long_names_of_many_classes_leave_room_for_the_volcano(k: int) -> None:
    rng = np.random.default_rng(2)
    codes = np.repeat(np.arange(k), 4)
    X = rng.normal(size=(len(codes), 50))
    X[np.arange(len(codes)), codes] += 6.0
    names = np.array(
        [f"{i:02d} non-small-cell lung carcinoma, stage" for i in range(k)]
    )
    model = EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)
    model.fit(X, names[codes])
    display = EffectDisplay.from_estimator(model).plot()
    figure, ax = display.figure_, display.ax_
    render(figure)
    assert ax.bbox.height > 0.4 * figure.bbox.height
    legend = ax.get_legend().get_window_extent()
    assert legend.x1 <= figure.bbox.x1
    assert legend.y0 >= ax.bbox.y1 - 1  # above the axes
    # Each name is cut, and still another than the others.
    shown = [text.get_text() for text in ax.get_legend().get_texts()][1:]
    assert len(set(shown)) == k
    assert all("…" in text for text in shown)
    plt.close(figure)
