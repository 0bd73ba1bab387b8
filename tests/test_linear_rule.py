"""The linear rule: log odds, the unbiased midpoint, scores, safe probabilities."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

from ebda import EBClassifier, theory
from ebda.covariance import Covariance, Decorrelated, Diagonal
from ebda.datasets import make_two_class
from ebda.kernels.scores import scores
from ebda.moments.classwise import ClassMoments, class_moments
from ebda.moments.contrasts import class_contrasts
from ebda.moments.variance import VARIANCES, Variance, pooled
from ebda.paper.methods import PaperRule
from ebda.priors import DiscretePrior
from ebda.rule.linear_rule import LinearRule, linear_rule, log_odds, rule_of_weights
from ebda.selection.calibration import Calibration
from ebda.sizes import override

LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "view": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
}


class Mixing(Covariance):
    """A correlation whose inverse spreads each feature over all."""

    is_diagonal = False
    n_factors = 0

    def decorrelate(self, z: np.ndarray) -> Decorrelated:
        raise NotImplementedError

    def restore(self, e: np.ndarray, values: Decorrelated) -> np.ndarray:
        raise NotImplementedError

    def solve(self, rows: np.ndarray) -> np.ndarray:
        return rows @ np.ones((rows.shape[1], rows.shape[1]))


def unshrunken_rule(
    X: np.ndarray, codes: np.ndarray, class_prior: list[float]
) -> tuple[LinearRule, ClassMoments, np.ndarray]:
    """The rule with eta = z, its moments and the pooled variance."""
    moments = class_moments(X, codes, len(class_prior))
    variance = pooled(moments)
    contrasts = class_contrasts(moments, variance)
    prior = np.array(class_prior)
    rule = linear_rule(moments, contrasts, contrasts.z, Diagonal(), prior)
    return rule, moments, variance.within


def sample(sizes: list[int], p: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(sum(sizes))
    codes = np.repeat(np.arange(len(sizes)), sizes)
    return rng.normal(2.0, 1.5, size=(len(codes), p)) + codes[:, None], codes


@pytest.mark.parametrize("sizes", [[8, 8], [4, 15]])
def test_equal_class_priors_put_the_boundary_at_the_midpoint(sizes: list[int]) -> None:
    X, codes = sample(sizes)
    rule, moments, _ = unshrunken_rule(X, codes, [0.5, 0.5])
    midpoint = moments.means.mean(axis=0)
    score = scores(midpoint[None, :], rule.coef, rule.intercept)
    assert score[0, 0] == pytest.approx(0.0, abs=1e-12)
    at_means = scores(moments.means, rule.coef, rule.intercept)[:, 0]
    assert at_means[0] < 0 < at_means[1]
    assert at_means[0] == pytest.approx(-at_means[1])


def test_shrinkage_and_class_priors_move_the_score_at_the_midpoint_by_log_odds() -> (
    None
):
    X, codes = sample([6, 9])
    moments = class_moments(X, codes, 2)
    contrasts = class_contrasts(moments, pooled(moments))
    eta = np.array([[0.0, 1.0, -2.0, 0.5, 3.0]])
    rule = linear_rule(moments, contrasts, eta, Diagonal(), np.array([0.2, 0.8]))
    midpoint = moments.means.mean(axis=0)
    score = scores(midpoint[None, :], rule.coef, rule.intercept)
    assert score[0, 0] == pytest.approx(np.log(4.0))
    np.testing.assert_array_equal(np.sign(rule.coef), np.sign(eta))


@pytest.mark.parametrize(
    ("sizes", "class_prior"),
    [([6, 9], [0.3, 0.7]), ([4, 5, 8], [0.2, 0.5, 0.3]), ([3, 3, 3, 3], [0.25] * 4)],
)
def test_without_shrinkage_scores_are_gaussian_log_odds(
    sizes: list[int], class_prior: list[float]
) -> None:
    X, codes = sample(sizes)
    rule, moments, variance = unshrunken_rule(X, codes, class_prior)
    density = stats.norm.logpdf(X[:, None, :], moments.means, np.sqrt(variance))
    joint = density.sum(axis=2) + np.log(class_prior)
    want = joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
    got = Calibration.none().log_probabilities(scores(X, rule.coef, rule.intercept))
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def test_constant_features_have_no_coefficient() -> None:
    X, codes = sample([5, 7])
    X[:, 2] = 0.1
    moments = class_moments(X, codes, 2)
    contrasts = class_contrasts(moments, pooled(moments))
    rule = linear_rule(
        moments, contrasts, np.ones((1, 5)), Mixing(), np.array([0.5, 0.5])
    )
    np.testing.assert_array_equal(rule.coef == 0, [[False, False, True, False, False]])


def test_the_rule_leaves_its_ingredients_alone() -> None:
    X, codes = sample([5, 7])
    moments = class_moments(X, codes, 2)
    contrasts = class_contrasts(moments, pooled(moments))
    eta, scale = np.ones((1, 5)), contrasts.scale.copy()
    linear_rule(moments, contrasts, eta, Diagonal(), np.full(2, 0.5))
    np.testing.assert_array_equal(eta, 1.0)
    np.testing.assert_array_equal(contrasts.scale, scale)


# The unbiased midpoint


def test_two_classes_of_one_size_have_no_bias() -> None:
    X, codes = sample([8, 8])
    moments = class_moments(X, codes, 2)
    contrasts = class_contrasts(moments, pooled(moments))
    ingredients = (moments, contrasts, contrasts.z, Diagonal())
    plain = linear_rule(*ingredients, np.full(2, 0.5))
    moved = linear_rule(
        *ingredients, np.full(2, 0.5), divergence=np.full_like(contrasts.z, 1e6)
    )
    np.testing.assert_array_equal(moved.intercept, plain.intercept)
    np.testing.assert_array_equal(moved.coef, plain.coef)


@pytest.mark.parametrize("covariance", ["diagonal", "factor"])
@pytest.mark.parametrize("shrinkage", ["mean", "sparse", "hard"])
def test_classifiers_of_classes_of_one_size_cut_at_the_midpoint(
    covariance: str, shrinkage: str
) -> None:
    sim = make_two_class(12, 300, 20, 1.5, random_state=0)
    parameters = {
        "covariance": covariance,
        "shrinkage": shrinkage,
        "calibrate": False,
    }
    fits = [
        rule(**parameters).fit(sim.data, sim.target)
        for rule in (EBClassifier, PaperRule)
    ]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].intercept_, fits[1].intercept_)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[6, 20], [5, 10, 30]])
def test_the_correction_is_the_expectation_of_the_noise(sizes: list[int]) -> None:
    """Stein's lemma, by simulation of the class means: variances are known."""
    rng = np.random.default_rng(7)
    K, p, n_draws = len(sizes), 40, 4000
    counts = np.array(sizes, dtype=float)
    variance = rng.uniform(0.5, 3, p)
    truth = rng.normal(size=(K, p)) * (rng.uniform(size=p) < 0.3)
    prior = DiscretePrior([-3.0, 0.0, 2.0], [0.15, 0.7, 0.15])
    uniform = np.full(K, 1 / K)
    plain, corrected = [], []
    for _ in range(n_draws):
        noise = rng.normal(size=(K, p)) * np.sqrt(variance / counts[:, None])
        moments = ClassMoments(counts, truth + noise, counts[:, None] * variance)
        contrasts = class_contrasts(
            moments, Variance(variance, variance[None, :], np.inf)
        )
        posterior = prior.posterior(contrasts.z)
        ingredients = (moments, contrasts, posterior.mean, Diagonal(), uniform)
        rule = linear_rule(*ingredients)
        divergence = posterior.sd**2
        moved = linear_rule(*ingredients, divergence=divergence)
        P, Q = contrasts.positive, contrasts.negative
        at_middle = np.einsum("cj,cj->c", rule.coef, (P + Q) / 2 @ truth)
        # With the true midpoint the intercept would be this:
        wanted = log_odds(uniform) - at_middle
        plain.append(rule.intercept - wanted)
        corrected.append(moved.intercept - wanted)
    error = np.std(corrected, axis=0) / np.sqrt(n_draws)
    assert (np.abs(np.mean(plain, axis=0)) > 8 * error).all()
    assert (np.abs(np.mean(corrected, axis=0)) < 4 * error).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parameters", "at_most"),
    [
        ({"covariance": "diagonal", "shrinkage": "mean", "variance": "pooled"}, 0.4),
        ({"covariance": "diagonal", "shrinkage": "mean"}, 0.4),
        # Thresholds keep fewer features, and so less noise that could be biased.
        ({"covariance": "diagonal", "shrinkage": "sparse"}, 0.75),
        ({"covariance": "diagonal", "shrinkage": "hard"}, 0.75),
        # Held-out samples move a midpoint too, and calibrate what is compared: so these
        # rules keep theirs.
        ({}, 0.85),
    ],
)
def test_unequal_classes_err_equally(
    parameters: dict[str, str], at_most: float
) -> None:
    errors = {}
    if parameters:
        parameters = parameters | {"calibrate": False}
    for rule in (PaperRule, EBClassifier):
        found = []
        for seed in range(4):
            sim = make_two_class(45, 2000, 100, 0.5, random_state=seed)
            model = rule(priors="uniform", **parameters)
            model.fit(sim.data[30:], sim.target[30:])
            found.append(
                theory.error_rates(model.coef_, model.intercept_, *sim.means, 1.0)
            )
        errors[rule] = np.mean(found, axis=0)
    small, large = errors[EBClassifier]
    assert 0.5 < small / large < 2
    assert errors[EBClassifier].mean() < at_most * errors[PaperRule].mean()
    assert errors[PaperRule][0] > 10 * errors[PaperRule][1]


# Scores and probabilities


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_contrasts", [1, 3])
@pytest.mark.parametrize("elements", [None, 1, 25], ids=["default", "row", "three"])
def test_scores_are_the_product_in_double_precision(
    dtype: str,
    layout: str,
    n_contrasts: int,
    elements: int | None,
) -> None:
    rng = np.random.default_rng(3)
    X = (rng.normal(0, 50, size=(11, 8)) * rng.integers(0, 2, (11, 8))).astype(dtype)
    coef, intercept = rng.normal(size=(n_contrasts, 8)), rng.normal(size=n_contrasts)
    small = {} if elements is None else {"score_elements": elements}
    with override(**small):
        got = scores(LAYOUTS[layout](X), coef, intercept)
    assert isinstance(got, np.ndarray)
    assert got.dtype == np.float64
    want = X.astype(np.float64) @ coef.T + intercept
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_probabilities_are_finite_sum_to_one_and_follow_the_score(
    n_classes: int,
) -> None:
    rng = np.random.default_rng(4)
    width = 1 if n_classes == 2 else n_classes
    score = rng.uniform(-3, 3, size=(30, width))
    score[10:20] *= 1e5 / 3
    score[20:22] = [[-1e5], [1e5]]
    score[20:22, -1] *= -1
    got = Calibration.none().log_probabilities(score)
    assert got.shape == (30, n_classes)
    assert np.isfinite(got).all()
    np.testing.assert_allclose(np.exp(got).sum(axis=1), 1.0, rtol=1e-12)
    want = (score[:, 0] > 0) if n_classes == 2 else score.argmax(axis=1)
    np.testing.assert_array_equal(got.argmax(axis=1), want)


def test_log_odds_of_two_classes_are_the_score() -> None:
    score = np.array([[-1e5], [-2.0], [0.0], [0.3], [1e5]])
    got = Calibration.none().log_probabilities(score)
    np.testing.assert_allclose(got[:, 1] - got[:, 0], score[:, 0], rtol=1e-14)


def test_many_class_probabilities_ignore_a_common_shift() -> None:
    score = np.array([[0.0, 1.0, 2.0]])
    want = score - np.log(np.exp(score).sum())
    np.testing.assert_allclose(Calibration.none().log_probabilities(score), want)
    np.testing.assert_allclose(
        Calibration.none().log_probabilities(score + 1e5), want, rtol=1e-9
    )


def test_the_standard_deviation_of_a_rule_is_that_of_its_scores() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 40)) * rng.uniform(0.5, 2, 40)
    moments = class_moments(X, np.repeat([0, 1], 6), 2)
    contrasts = class_contrasts(moments, pooled(moments))
    eta = rng.normal(size=contrasts.z.shape)
    for_eta = partial(
        linear_rule, moments, contrasts, covariance=Diagonal(), class_prior=np.ones(2)
    )
    rule = for_eta(eta)
    direct = np.sqrt(np.sum(rule.coef**2 * contrasts.variance))
    assert rule.score_sd == pytest.approx(direct)
    assert for_eta(0 * eta).score_sd == 1.0
    # The same from weights in units of the standard deviations, and their variance.
    weights = eta * np.sqrt(contrasts.variance_factor)
    same = rule_of_weights(
        moments, contrasts, weights.copy(), (weights**2).sum(axis=1), np.ones(2)
    )
    assert same.score_sd == pytest.approx(direct)
    np.testing.assert_allclose(same.coef, rule.coef)
    np.testing.assert_allclose(same.intercept, rule.intercept)


@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("sizes", [[5, 7], [4, 5, 8]])
def test_blocks_and_compiled_loops_do_not_matter(
    sizes: list[int], variance: str
) -> None:
    X, codes = sample(sizes, p=40)
    X[:, [3, 18]] = 0.1
    moments = class_moments(X, codes, len(sizes))
    contrasts = class_contrasts(moments, VARIANCES[variance].estimate(moments))
    prior = np.full(len(sizes), 1 / len(sizes))
    fit = partial(linear_rule, moments, contrasts, contrasts.z, Diagonal(), prior)
    want = fit()
    for small in (
        {"block_features": 7, "summed_features": 7},
        {"compiled_features": 1, "threaded_features": 7},
    ):
        with override(**small):
            got = fit()
        for name in ("coef", "intercept", "score_sd"):
            np.testing.assert_allclose(
                getattr(got, name),
                getattr(want, name),
                rtol=1e-12,
                atol=1e-12 * np.abs(getattr(want, name)).max(),
            )
