"""Two classes, ten and forty in the report: tables, heat map, ROC, colours, counts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from ebda import EBClassifier
from ebda.evaluation import Evaluation
from ebda.palette import COLOURS, ON_DARK, colour
from ebda.plotting import CalibrationDisplay, EffectDisplay, ScoreDisplay
from ebda.report import render
from ebda.report.case import Case, Scored
from ebda.report.confusion import HEAT, confusion, shades_of
from ebda.report.features import payload
from ebda.report.lanes import lanes
from ebda.report.two_classes import both_ways
from ebda.report.words import percent

RNG = np.random.default_rng(0)


def evaluation(k: int, n: int = 400, sure: float = 1.5, seed: int = 0) -> Evaluation:
    """Predictions of k classes with long names."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, k, n)
    score = rng.normal(size=(n, k)) + sure * np.eye(k)[codes]
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    return Evaluation(np.array(names(k)), codes, p, 5)


def names(k: int) -> list[str]:
    return [f"class {i:02d}, with a name that has to be wrapped" for i in range(k)]


def drawn(k: int, p: int = 60, each: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    codes = np.repeat(np.arange(k), each)
    X = rng.normal(size=(len(codes), p))
    X[np.arange(len(codes)), codes % p] += 4.0
    return X, np.array(names(k))[codes]


def quick() -> EBClassifier:
    return EBClassifier(covariance="diagonal", shrinkage="mean", calibrate=False)


# Colours


def lab(rgb: Any) -> Any:
    """CIE L*a*b* of linear RGB, under D65."""
    matrix = [
        [0.4125, 0.3576, 0.1804],
        [0.2127, 0.7152, 0.0722],
        [0.0193, 0.1192, 0.9503],
    ]
    xyz = np.array(matrix) @ rgb / [0.9505, 1.0, 1.0888]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("colours", [COLOURS, ON_DARK])
def test_any_two_of_ten_colours_differ(colours: tuple[str, ...]) -> None:
    assert len(colours) == 10
    # Machado et al. (2009): nobody, and people without green and red cones.
    deutan = [
        [0.3673, 0.8606, -0.228],
        [0.2801, 0.6725, 0.0474],
        [-0.0118, 0.0429, 0.9689],
    ]
    protan = [
        [0.1523, 1.0526, -0.2049],
        [0.1145, 0.7863, 0.0992],
        [-0.0039, -0.0481, 1.052],
    ]
    rgb = np.array([to_rgb(name) for name in colours])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for seen, least in ((np.eye(3), 25.0), (deutan, 12.0), (protan, 12.0)):
        found = np.array([lab(np.clip(np.array(seen) @ c, 0, 1)) for c in linear])
        apart = np.linalg.norm(found[:, None] - found, axis=2) + 99 * np.eye(10)
        assert apart.min() > least


def test_a_class_has_one_colour_everywhere() -> None:
    k = 12
    X, y = drawn(k)
    model = quick().fit(X, y)
    e = evaluation(k)
    ax = ScoreDisplay.from_evaluation(e).plot(Figure().subplots()).ax_
    marks = {line.get_label(): line.get_color() for line in ax.lines}
    for place, label in enumerate(e.classes[:2].tolist()):
        assert marks[label[:39] + "…"] == colour(place)
    display = EffectDisplay.from_estimator(model).plot(Figure().subplots())
    shown = [line.get_color() for line in display.ax_.lines[1 : k + 1]]
    assert shown == [colour(i) for i in range(k)]
    one = EffectDisplay.from_estimator(model, contrast=names(k)[3])
    assert one.plot(Figure().subplots()).ax_.lines[1].get_color() == colour(3)
    page = render(model, evaluation=e)
    for place, value in enumerate(COLOURS):
        assert f"--c{place}: {value};" in page
    svg = lanes(Scored(e.probabilities, e.codes, None, "", True), names(k), 640)
    # The title of a lane is before its dots: dots of class 11 have the second colour.
    assert set(re.findall(r"dot (c\d)", svg)) == {f"c{i}" for i in range(10)}


def test_of_two_classes_each_has_its_own_colour_in_the_volcano() -> None:
    X, y = drawn(2, each=20)
    display = EffectDisplay.from_estimator(quick().fit(X, y)).plot(Figure().subplots())
    up, down = display.ax_.lines[1:3]
    assert up.get_label().startswith("higher in class 01")
    assert [up.get_color(), down.get_color()] == [colour(1), colour(0)]


# Confusion


def test_few_classes_have_a_table_and_many_a_heat_map() -> None:
    few = evaluation(HEAT - 1)
    assert "heat" not in confusion(few, names(HEAT - 1))
    many = evaluation(HEAT)
    page = confusion(many, names(HEAT))
    assert 'class="confusion heat"' in page
    assert "crowded" in confusion(evaluation(40), names(40))
    shades = shades_of(many.confusion)
    for k, row in enumerate(many.confusion):
        for j, n in enumerate(row):
            kind = "hit" if j == k else "miss"
            cell = f'class="{kind} h{shades[k, j]}" title="{names(HEAT)[k]}, predicted'
            assert f'{cell} as {names(HEAT)[j]}: {n}">{n or ""}<' in page
    # A share of one fifth or less is the lightest shade, all samples the darkest.
    assert shades_of(np.array([[5, 0], [4, 1]])).tolist() == [[5, 0], [4, 1]]


def test_a_class_without_samples_has_no_share() -> None:
    e = evaluation(HEAT)
    only = Evaluation(e.classes, np.zeros(400, dtype=np.intp), e.probabilities, 5)
    page = confusion(only, names(HEAT))
    assert page.count("<td>\u2013</td>") == HEAT - 1


# Two classes


def test_sensitivity_and_specificity_are_those_of_the_table() -> None:
    e = evaluation(2)
    measures, curve = both_ways(e, ["well", "ill"])
    (true_well, false_ill), (false_well, true_ill) = e.confusion.tolist()
    ill, well = false_well + true_ill, true_well + false_ill
    assert f"{percent(true_ill / ill)} ({true_ill} of {ill})" in measures
    assert f"{percent(true_well / well)} ({true_well} of {well})" in measures
    # The intervals are those of the evaluation.
    for name in ("sensitivity", "specificity"):
        found = e.measures()[name]
        assert f"{percent(found.low)} to {percent(found.high)}" in measures
    area = e.measures()["AUC"]
    assert f"{area.value:.3f}" in measures
    assert f"{area.low:.3f} to {area.high:.3f}" in measures
    # The curve starts at nothing, ends at all, and passes through the boundary.
    path = re.search(r'points="([^"]+)"', curve)
    assert path is not None
    points = np.array([p.split(",") for p in path[1].split()], dtype=float)
    assert (np.diff(points[:, 0]) >= 0).all()
    assert (np.diff(points[:, 1]) <= 0).all()
    assert points[[0, -1]].tolist() == [[46.0, 246.0], [306.0, 10.0]]
    x, y = 46 + 260 * false_ill / well, 10 + 236 * (1 - true_ill / ill)
    assert f'cx="{x:.1f}" cy="{y:.1f}"' in curve
    nearest = np.abs(points - [x, y]).max(axis=1).min()
    assert nearest < 5
    # Of test samples of one class nothing of the kind can be said.
    only = Evaluation(e.classes, np.zeros(400, dtype=np.intp), e.probabilities, 0)
    assert both_ways(only, ["well", "ill"]) == []


def test_calibration_has_the_same_numbers_in_report_and_display() -> None:
    for k, words in ((2, f"of {names(2)[1]}"), (3, "of the predicted class")):
        X, y = drawn(k, each=20)
        e = evaluation(k)
        bins = CalibrationDisplay.from_evaluation(e).bins
        page = render(quick().fit(X, y), evaluation=e)
        told = re.search(r'aria-label="Calibration: ([^"]*)\."', page)
        assert told is not None
        assert told[1].split("; ") == [
            f"predicted {percent(p)}, observed {percent(o)} of {n}"
            for p, o, n in zip(bins.predicted, bins.observed, bins.counts, strict=True)
        ]
        # As many samples in each bin, where no probabilities are equal.
        assert np.ptp(bins.counts) <= 1
        assert f"predicted probability {words}"[:30] in page


# Many classes


def test_a_volcano_has_the_count_of_its_own_class() -> None:
    k = 6
    X, y = drawn(k)
    model = quick().fit(X, y)
    found = payload(Case.checked(model))["found"]
    marginal = model.ranking_.marginal
    assert len(found) == k
    for row in range(k):
        differ = marginal.q_value[row] <= 0.05
        higher = int((differ & (marginal.t[row] > 0)).sum())
        assert found[row] == [higher, int(differ.sum()) - higher]
    # Classes differ in their counts, and none has the count of all together.
    assert sum(map(sum, found)) > 0


def test_lanes_of_forty_classes_are_on_sheets_of_a_page() -> None:
    e = evaluation(40, n=320)
    scored = Scored(e.probabilities, e.codes, None, "", True)
    for width in (316, 640, 1010):
        sheets = re.findall(
            r'viewBox="0 0 \d+ ([\d.]+)"', lanes(scored, names(40), width)
        )
        assert len(sheets) > 2
        assert max(map(float, sheets)) < 1000  # A4 less its margins
        assert max(map(float, sheets)) < 1.6 * min(map(float, sheets))
    narrow = lanes(scored, names(40), 316)
    # The whole name is there, in two lines.
    titles = " ".join(re.findall(r'class="lane-name">([^<]*)<', narrow))
    assert [title in titles for title in names(40)] == [True] * 40
    assert narrow.count("<circle") == 320


def test_ten_doubtful_samples_are_shown_and_the_rest_unfolds() -> None:
    X, y = drawn(3, each=20)
    e = evaluation(3, n=100, sure=0.5)
    page = render(quick().fit(X, y), evaluation=e)
    folded = page[page.index("<details class") : page.index("</details>")]
    tables = re.findall(r'<table class="doubtful">.*?</table>', page, flags=re.DOTALL)
    rows = [table.count("<tr>") - 1 for table in tables]
    doubtful = Scored(e.probabilities, e.codes, None, "", True).doubtful
    assert rows == [10, len(doubtful) - 10]
    assert tables[1] in folded
    assert f"Show the other {len(doubtful) - 10}" in folded


def test_provenance_is_in_words() -> None:
    from ebda.priors import NPMLE

    X, y = drawn(2, each=20)
    model = EBClassifier(
        prior=NPMLE(),
        covariance="diagonal",
        n_jobs=1,
        random_state=3,
        priors=[0.2, 0.8],
    ).fit(X, y)
    data = {
        "drop": ["age"],
        "duplicates": "error",
        "format": "text",
        "impute": "median",
        "log": True,
        "n_samples": 40,
        "own": {"made by": "hand"},
        "target": "type",
    }
    page = re.sub("<[^>]+>", " ", render(model, data=data))
    text = " ".join(page[page.index("Data, command and versions") :].split())
    for words in (
        "format table in a text file classes are in type samples 40 logarithms taken",
        "missing values replaced by the median of the feature",
        "columns left out age repeated names refused own made by hand settings",
        "prior of the differences: NPMLE; class probabilities: 0.2, 0.8; "
        "seed of random numbers: 3",
        "jobs at a time: 1",
    ):
        assert words in text
