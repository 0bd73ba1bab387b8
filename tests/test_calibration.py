"""From scores to probabilities: the posterior of slope and noise, and its average."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from ebda.estimators.linear_classifier import label_of
from ebda.rule.linear_rule import log_odds
from ebda.selection.calibration import Calibration, calibrate

EVEN = np.log([0.5, 0.5])


def drawn(
    n: int, K: int, seed: int, slope: float = 0.7, noise: float = 0.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and classes from the model, and the log class probabilities."""
    rng = np.random.default_rng(seed)
    log_prior = np.log(np.arange(1, K + 1) / np.arange(1, K + 1).sum())
    scores = 3 * rng.normal(size=(n, 1 if K == 2 else K))
    full = np.hstack([np.zeros_like(scores), scores]) if K == 2 else scores
    prior = np.exp(log_prior)
    p = (1 - noise) * softmax(slope * full + log_prior, axis=1) + noise * prior
    codes = (rng.uniform(size=(n, 1)) > np.cumsum(p, axis=1)).sum(axis=1)
    return scores, np.minimum(codes, K - 1), log_prior


def test_probabilities_are_the_average_over_the_posterior() -> None:
    """Against an adaptive double integral, at the boundary of even classes."""
    scores, codes, _ = drawn(30, 2, seed=3)
    s = scores[:, 0]
    sign = np.where(codes == 1, 1.0, -1.0)

    def density(a: float, u: float) -> float:
        # u is uniform where 2 e is Beta(1/2, 1/2).
        e = np.sin(np.pi * u / 2) ** 2 / 2
        p = expit(a * s)
        information = (p * (1 - p) * s**2).sum()
        own = (1 - e) * expit(a * s * sign) + e / 2
        return float(np.sqrt(information) * np.exp(np.log(own).sum() + 20))

    def of_score(x: float, a: float, u: float) -> float:
        e = np.sin(np.pi * u / 2) ** 2 / 2
        return density(a, u) * float((1 - e) * expit(a * x) + e / 2)

    unit = s.std()
    box = (0.0, 1.0, np.exp(-4.0) / unit, np.exp(3.5) / unit)
    options = {"epsabs": 0.0, "epsrel": 1e-5}
    total = dblquad(density, *box, **options)[0]
    slope, _, calibration = calibrate(scores, codes, np.ones(30), EVEN)
    for x in (0.5, 2.0, 6.0):
        want = dblquad(lambda a, u, x=x: of_score(x, a, u), *box, **options)[0] / total
        log_p = calibration.log_probabilities(np.array([[slope * x]]))
        assert np.exp(log_p[0, 1]) == pytest.approx(want, abs=2e-3)


def test_with_many_samples_it_is_the_slope_of_a_logistic_regression() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, 3000)
    scores = rng.normal(size=(3000, 1)) + 0.8 * (codes[:, None] - 0.5)
    weight = rng.integers(1, 3, 3000).astype(float)
    other = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-10)
    other.fit(scores, codes, sample_weight=weight)
    slope, _, calibration = calibrate(scores, codes, weight, EVEN)
    assert slope == pytest.approx(other.coef_[0, 0], rel=0.06)
    assert calibration.noise < 0.04  # half of what is possible lies above 0.25


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_slope_and_noise_are_recovered(K: int, noise: float) -> None:
    scores, codes, log_prior = drawn(3000, K, seed=K, slope=1.5, noise=noise)
    slope, _, calibration = calibrate(scores, codes, np.ones(3000), log_prior)
    assert slope == pytest.approx(1.5, rel=0.12)
    assert calibration.noise == pytest.approx(noise, abs=0.03)


def test_a_wrong_label_costs_little() -> None:
    """Without noise in the model, one far sample would flatten all probabilities."""
    rng = np.random.default_rng(5)
    codes = np.repeat([0, 1], 40)
    scores = (3.0 * (2 * codes - 1) + rng.normal(size=80))[:, None]
    wrong = codes.copy()
    wrong[:3] = 1

    def at_two(codes: np.ndarray) -> float:
        slope, _, calibration = calibrate(scores, codes, np.ones(80), EVEN)
        log_p = calibration.log_probabilities(np.array([[2.0 * slope]]))
        return float(np.exp(log_p[0, 1]))

    assert at_two(codes) > 0.97
    assert at_two(wrong) > 0.9
    plain = LogisticRegression(C=np.inf, fit_intercept=False).fit(scores, wrong)
    assert plain.predict_proba([[2.0]])[0, 1] < 0.9


def test_a_weight_is_so_many_samples() -> None:
    scores, codes, log_prior = drawn(40, 3, seed=1)
    weight = np.random.default_rng(0).integers(1, 4, 40)
    once, _, first = calibrate(scores, codes, weight.astype(float), log_prior)
    rows = np.repeat(np.arange(40), weight)
    again, _, second = calibrate(
        scores[rows], codes[rows], np.ones(len(rows)), log_prior
    )
    assert again == pytest.approx(once, rel=1e-10)
    np.testing.assert_allclose(second.share, first.share, rtol=1e-8)
    assert second.noise == pytest.approx(first.noise, rel=1e-8)


def test_separated_classes_have_a_finite_slope_in_any_unit() -> None:
    codes = np.repeat([0, 1], 10)
    scores = np.where(codes == 1, 1.0, -1.0)[:, None] * np.linspace(1, 2, 20)[:, None]
    slope, _, calibration = calibrate(scores, codes, np.ones(20), EVEN)
    assert 0 < slope < 20
    # More of the same is more evidence, and the unit of the scores is taken over.
    steeper, _, surer = calibrate(scores, codes, np.full(20, 10.0), EVEN)
    assert steeper > slope
    assert surer.noise < calibration.noise
    scaled, _, _ = calibrate(1e6 * scores, codes, np.ones(20), EVEN)
    assert scaled == pytest.approx(slope / 1e6, rel=1e-9)


def test_equal_scores_are_left_as_they_are() -> None:
    codes = np.array([0, 0, 1, 1])
    slope, _, calibration = calibrate(np.zeros((4, 1)), codes, np.ones(4), EVEN)
    assert slope == 1.0
    assert calibration.noise == 0.0


@pytest.mark.parametrize("K", [2, 4])
def test_probabilities_add_up_and_agree_with_the_decision(K: int) -> None:
    scores, codes, log_prior = drawn(50, K, seed=2)
    slope, _, calibration = calibrate(scores, codes, np.ones(50), log_prior)
    decision = np.vstack([slope * scores, 1e6 * scores])
    log_p = calibration.log_probabilities(decision)
    assert np.isfinite(log_p).all()
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1.0, rtol=1e-12)
    want = (decision[:, 0] > 0) if K == 2 else decision.argmax(axis=1)
    np.testing.assert_array_equal(log_p.argmax(axis=1), want)
    # No sample is surer than the share of samples that scores say nothing about: what
    # is known of these are the class probabilities.
    least = calibration.noise * np.exp(log_prior)
    assert (np.exp(log_p) >= least * (1 - 1e-12)).all()


@pytest.mark.parametrize("K", [2, 4])
def test_a_score_of_nothing_has_the_class_shares(K: int) -> None:
    scores, codes, log_prior = drawn(50, K, seed=6, noise=0.3)
    _, _, calibration = calibrate(scores, codes, np.ones(50), log_prior)
    nothing = log_odds(np.exp(log_prior))[None, :]
    p = np.exp(calibration.log_probabilities(nothing))
    np.testing.assert_allclose(p, np.exp(log_prior)[None, :], rtol=1e-12)


def test_probabilities_are_what_the_formula_says() -> None:
    rng = np.random.default_rng(0)
    slope, share = np.array([0.3, 1.0, 4.0]), np.array([0.2, 0.4, 0.3])
    for K in (2, 3):
        prior = np.arange(1, K + 1) / np.arange(1, K + 1).sum()
        calibration = Calibration(slope, share, 0.1, prior)
        decision = rng.normal(size=(9, 1 if K == 2 else K))
        score = decision - log_odds(prior)
        full = np.hstack([np.zeros((9, 1)), score]) if K == 2 else score
        want = 0.1 * prior + sum(
            w * softmax(a * full + np.log(prior), axis=1)
            for a, w in zip(slope, share, strict=True)
        )
        got = np.exp(calibration.log_probabilities(decision))
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_class_shares_count_where_the_slope_is_doubtful() -> None:
    """A small score for the rare class is not enough, whatever its sign says."""
    calibration = Calibration(
        np.array([0.2, 5.0]), np.array([0.8, 0.1]), 0.1, np.array([0.3, 0.7])
    )
    decision = np.array([[-0.05], [-4.0]])
    log_p = calibration.log_probabilities(decision)
    assert log_p.argmax(axis=1).tolist() == [1, 0]
    labels = label_of(decision, np.array(["rare", "usual"]), calibration)
    assert labels.tolist() == ["usual", "rare"]


def test_many_samples_are_calibrated_in_blocks() -> None:
    """Of slopes; as few samples with weights, which need one block, tell."""
    scores, codes, log_prior = drawn(60, 3, seed=4)
    few, _, calibration = calibrate(scores, codes, np.full(60, 120.0), log_prior)
    rows = np.repeat(np.arange(60), 120)
    many, _, other = calibrate(scores[rows], codes[rows], np.ones(len(rows)), log_prior)
    assert many == pytest.approx(few, rel=1e-12)
    np.testing.assert_allclose(other.share, calibration.share, rtol=1e-9)
    assert other.noise == pytest.approx(calibration.noise, rel=1e-9)


def test_without_calibration_decisions_are_log_odds() -> None:
    decision = np.array([[-1e5], [-2.0], [0.0], [0.3], [1e5]])
    log_p = Calibration.none().log_probabilities(decision)
    np.testing.assert_allclose(log_p[:, 1] - log_p[:, 0], decision[:, 0], rtol=1e-14)
