"""Displays of a model store what they draw, and it is what the model says."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import laplace, norm
from sklearn.exceptions import NotFittedError

from ebda import EBClassifier, NormalMeans, theory
from ebda.baselines import IndependenceRule
from ebda.evaluation import Evaluation, plan_from_evaluation
from ebda.plotting import (
    EffectDisplay,
    ExpectedErrorDisplay,
    MarginalDisplay,
    PlanningDisplay,
    PriorDisplay,
    ShrinkageDisplay,
    plot_fit,
)
from ebda.priors import (
    DirichletProcess,
    DiscretePrior,
    Kernel,
    PointLaplacePrior,
    PointNormalPrior,
)

PRIOR = DiscretePrior([0.0, 3.0], [0.8, 0.2])


@pytest.fixture(autouse=True)
def _no_screen() -> None:
    mpl.use("agg")


def fit(n_classes: int, **parameters: object) -> EBClassifier:
    """A model of 15 samples per class, 200 features, the last one constant."""
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(15 * n_classes, 200))
    y = np.repeat(["a", "b", "c"][:n_classes], 15)
    X[y == "b", :20] += 2
    X[y == "c", 10:30] -= 2
    X[:, -1] = 7.0
    settings = {"shrinkage": "mean", "covariance": "diagonal", **parameters}
    return EBClassifier(**settings).fit(X, y)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def two() -> EBClassifier:
    return fit(2)


@pytest.fixture(scope="module")
def three() -> EBClassifier:
    return fit(3)


def test_marginal_is_the_density_of_the_data() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=5000) + np.repeat([0.0, 3.0], [4000, 1000])
    display = MarginalDisplay.from_prior(PRIOR, z)
    middle = (display.edges[1:] + display.edges[:-1]) / 2
    fitted = np.interp(middle, display.grid, display.marginal)
    np.testing.assert_allclose(display.density, fitted, atol=0.04)
    area = display.null.sum() * (display.grid[1] - display.grid[0])
    assert area == pytest.approx(0.8, abs=0.01)


def test_marginal_of_a_model_is_of_what_the_prior_was_fitted_to(
    two: EBClassifier, three: EBClassifier
) -> None:
    display = MarginalDisplay.from_estimator(two)
    counts = display.density * np.diff(display.edges) * 199
    np.testing.assert_allclose(
        counts, np.histogram(two.z_[:-1], display.edges)[0], atol=1e-9
    )
    mixture = sum(
        w * norm.pdf(display.grid, a)
        for a, w in zip(two.prior_.atoms, two.prior_.weights, strict=True)
    )
    np.testing.assert_allclose(display.marginal, mixture, rtol=1e-10)
    np.testing.assert_allclose(
        display.null, two.prior_.pi0 * norm.pdf(display.grid), rtol=1e-10
    )
    assert display.name == "b against a"
    every = MarginalDisplay.from_estimator(three)
    assert every.edges[[0, -1]].tolist() == [three.z_.min(), three.z_.max()]
    one = MarginalDisplay.from_estimator(three, "c")
    assert one.edges[0] == three.z_[2].min()
    assert (every.name, one.name) == ("each class against all", "c against all")


def test_marginal_averages_over_scales() -> None:
    scale = np.repeat([1.0, 3.0], [300, 100])
    z = scale * np.random.default_rng(0).normal(size=400)
    display = MarginalDisplay.from_prior(DiscretePrior([0.0], [1.0]), z, scale)
    truth = 0.75 * norm.pdf(display.grid) + 0.25 * norm.pdf(display.grid, scale=3)
    np.testing.assert_allclose(display.marginal, truth, atol=1e-10)


@pytest.mark.parametrize(
    ("values", "fewest", "most"),
    [
        (np.append(np.random.default_rng(0).normal(size=500), 1e9), 200, 200),
        (np.zeros(50), 5, 10),
        (np.append(np.zeros(50), 4.0), 5, 10),
        (np.random.default_rng(0).normal(size=5000), 30, 120),
    ],
)
def test_histogram_has_a_sensible_number_of_bins(
    values: np.ndarray, fewest: int, most: int
) -> None:
    bins = len(MarginalDisplay.from_prior(PRIOR, values).density)
    assert fewest <= bins <= most


def test_marginal_on_a_log_scale_shows_single_values(two: EBClassifier) -> None:
    from matplotlib.figure import Figure

    display = MarginalDisplay.from_estimator(two).plot(Figure().subplots(), log=True)
    assert display.ax_.get_yscale() == "log"
    assert 0 < display.ax_.get_ylim()[0] < display.density[display.density > 0].min()


def test_curves_are_the_shrinkages() -> None:
    display = ShrinkageDisplay.from_prior(PRIOR, [-3.0, 6.0], zero_threshold=0.5)
    posterior = PRIOR.posterior(display.grid)
    np.testing.assert_array_equal(display.curves["mean"], posterior.mean)
    kept = posterior.prob_zero <= 0.5
    np.testing.assert_array_equal(display.curves["hard"][kept], display.grid[kept])
    assert not display.curves["sparse"][~kept].any()


def test_curves_of_a_model_have_its_threshold_and_range(three: EBClassifier) -> None:
    display = ShrinkageDisplay.from_estimator(three)
    assert display.grid[[0, -1]].tolist() == [three.z_.min(), three.z_.max()]
    one = ShrinkageDisplay.from_estimator(three, contrast="a")
    assert one.grid[-1] == three.z_[0].max()
    strict = fit(2, zero_threshold=0.01)
    curve = ShrinkageDisplay.from_estimator(strict).curves["hard"]
    kept = strict.prior_.posterior(np.unique(curve[curve != 0])).prob_zero
    assert (kept <= 0.01).all()


def test_a_jump_is_drawn_as_a_jump() -> None:
    from matplotlib.figure import Figure

    display = ShrinkageDisplay.from_prior(PRIOR, [-3.0, 6.0]).plot(Figure().subplots())
    drawn = {line.get_label(): line.get_ydata() for line in display.ax_.lines}
    assert np.isnan(drawn["hard"]).sum() == 1
    assert not np.isnan(drawn["mean"]).any()
    assert not np.isnan(display.curves["hard"]).any()


def test_atoms_are_those_of_the_prior_with_zero_apart(two: EBClassifier) -> None:
    shape = PriorDisplay.from_estimator(two)
    assert 0.0 in two.prior_.atoms
    np.testing.assert_array_equal(shape.atoms, two.prior_.atoms[two.prior_.atoms != 0])
    assert shape.masses["zero"] == two.prior_.pi0
    assert sum(shape.masses.values()) == pytest.approx(1)
    assert shape.masses["above zero"] == shape.weights[shape.atoms > 0].sum()
    z = np.random.default_rng(0).normal(size=100)
    for fitted in (NormalMeans().fit(z), DirichletProcess().fit(z)):
        display = PriorDisplay.from_estimator(fitted)
        assert display.masses["zero"] == fitted.prior_.pi0


@pytest.mark.parametrize(
    ("prior", "slab"),
    [
        (PointNormalPrior(0.7, 2.0), norm(scale=2)),
        (PointLaplacePrior(0.7, 0.5), laplace(scale=2)),
    ],
)
def test_a_slab_shows_its_density(prior: object, slab: object) -> None:
    shape = PriorDisplay.from_prior(prior)  # type: ignore[arg-type]
    np.testing.assert_allclose(shape.density, 0.3 * slab.pdf(shape.grid))  # type: ignore[attr-defined]
    area = trapezoid(shape.density, shape.grid)
    assert area == pytest.approx(1 - shape.masses["zero"], abs=0.002)
    assert not shape.is_marginal


def test_a_prior_without_a_density_shows_that_of_z() -> None:
    z = np.random.default_rng(0).normal(size=300)
    kernel = Kernel().fit(z).prior_
    shape = PriorDisplay.from_prior(kernel)
    np.testing.assert_allclose(shape.density, np.exp(kernel.logpdf(shape.grid)))
    assert shape.is_marginal
    assert shape.masses == {"zero": 0.0, "elsewhere": 1.0}

    class Foreign:
        posterior, logpdf = PRIOR.posterior, PRIOR.logpdf

    known = PriorDisplay.from_prior(Foreign(), z)
    not_null = 0.2 * norm.pdf(known.grid, 3)
    np.testing.assert_allclose(known.density, not_null, rtol=1e-8)
    with pytest.raises(TypeError, match=r"Foreign has neither atoms nor.*give z"):
        PriorDisplay.from_prior(Foreign())


def test_effects_of_two_classes_are_read_off_the_model(two: EBClassifier) -> None:
    display = EffectDisplay.from_estimator(two)
    means = two.moments_.means
    np.testing.assert_allclose(display.effect, means[1] - means[0], atol=1e-12)
    ranking = two.ranking_
    np.testing.assert_array_equal(display.q_value, ranking.q_value)
    np.testing.assert_array_equal(display.prob_zero, ranking.marginal.lfdr)
    np.testing.assert_allclose(
        np.log(display.p_value), np.maximum(ranking.marginal.log_p, np.log(1e-16) - 1)
    )
    np.testing.assert_array_equal(display.order, ranking.order)
    beyond = EffectDisplay.from_estimator(two, beyond_factors=True)
    np.testing.assert_array_equal(beyond.q_value, ranking.conditional.q_value)
    np.testing.assert_array_equal(beyond.order, ranking.conditional.order)
    assert display.side_names == ["higher in b", "higher in a"]
    assert (display.sides[display.effect > 0] == 0).all()
    assert (display.sides[display.effect < 0] == 1).all()
    shrunken = EffectDisplay.from_estimator(two, effect="posterior_mean")
    np.testing.assert_array_equal(shrunken.effect, two.posterior_mean_)


def test_effects_of_many_classes_by_contrast_or_by_the_clearest(
    three: EBClassifier,
) -> None:
    found = three.ranking_.marginal
    one = EffectDisplay.from_estimator(three, "c")
    np.testing.assert_array_equal(one.q_value, found.q_value[2])
    assert one.p_value is not None
    assert (np.diff(one.p_value[one.order]) >= 0).all()
    assert one.side_names == ["higher in c", "lower in c"]
    every = EffectDisplay.from_estimator(three)
    np.testing.assert_array_equal(every.q_value, found.q_over_classes)
    clearest = found.log_p.argmin(axis=0)
    np.testing.assert_array_equal(every.sides, clearest)
    raw = three.contrasts_.z * three.contrasts_.scale
    np.testing.assert_array_equal(
        every.effect, [raw[k, j] for j, k in enumerate(clearest)]
    )


def test_effects_are_named_by_what_is_given_or_known(two: EBClassifier) -> None:
    assert EffectDisplay.from_estimator(two).names is None
    names = [f"g{j}" for j in range(200)]
    display = EffectDisplay.from_estimator(two, names=names)
    assert display.names is not None
    assert display.names.tolist() == names  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"names has shape \(3,\).*200 features"):
        EffectDisplay.from_estimator(two, names=["a", "b", "c"])


def test_effects_of_a_posterior_have_q_values() -> None:
    x = np.append(np.random.default_rng(0).normal(size=200), [9.0, -8.0])
    means = NormalMeans().fit(x)
    display = EffectDisplay.from_posterior(means.signs_, names=np.arange(202))
    below = [means.lfsr_[means.lfsr_ <= v].mean() for v in means.lfsr_]
    np.testing.assert_allclose(display.q_value, below)
    assert display.sides[200:].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effect": "size"}, r"effect must be one of \['difference', 'posterior_me"),
        ({"contrast": "x"}, "contrast must be one of the classes, 'a', 'b'; got 'x'"),
        ({"contrast": "a"}, "is 'b' against 'a': contrast must be 'b', or left out"),
    ],
)
def test_wrong_arguments_are_named(
    two: EBClassifier, arguments: dict[str, str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        EffectDisplay.from_estimator(two, **arguments)
    assert EffectDisplay.from_estimator(two, contrast="b").effect.shape == (200,)


def test_expected_error_is_that_of_theory() -> None:
    sizes, effects = [10, 20], [0.5, 1.0]
    display = ExpectedErrorDisplay.from_effects(
        sizes, effects, 0.9, n_features=200, rules=["mean", "none"]
    )
    for rule in ("mean", "none"):
        truth = theory.expected_error(sizes, effects, 0.9, n_features=200, rule=rule)
        np.testing.assert_allclose(display.curves[rule], truth)


def test_a_plan_is_drawn_as_it_is() -> None:
    codes = np.tile([0, 1, 1], 12)
    p = np.where(np.arange(36) % 9 == 0, 0.4, 0.7)
    right = np.c_[np.where(codes == 0, p, 1 - p), np.where(codes == 0, 1 - p, p)]
    plan = plan_from_evaluation(
        Evaluation(np.array(["a", "b"]), codes, right, 9), [40, 10, 20], n_test=30
    )
    display = PlanningDisplay.from_plan(plan)
    np.testing.assert_array_equal(display.n, [10, 20, 40])
    np.testing.assert_array_equal(display.error, plan.error[[1, 2, 0]])
    np.testing.assert_array_equal(display.low, plan.low[[1, 2, 0]])
    assert display.current == plan.fitted_to == 16
    assert display.held_out == pytest.approx(4 / 36)
    assert display.chance == pytest.approx(1 / 3)
    assert display.n_test == 30


def test_models_that_cannot_be_drawn_are_refused(two: EBClassifier) -> None:
    with pytest.raises(NotFittedError):
        MarginalDisplay.from_estimator(EBClassifier())
    X = np.random.default_rng(0).normal(size=(20, 5))
    rule = IndependenceRule().fit(X, np.repeat([0, 1], 10))
    with pytest.raises(TypeError, match="IndependenceRule has no prior_: this plot"):
        PriorDisplay.from_estimator(rule)


def test_figure_of_a_fit_has_both_panels(two: EBClassifier) -> None:
    figure = plot_fit(two)
    assert len(figure.axes) == 2
    assert "200 features" in figure.axes[0].get_title()
