"""From scores to probabilities: slope, noise and midpoint, and the evidence."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from ebda.estimators.linear_classifier import label_of
from ebda.rule.linear_rule import log_odds
from ebda.selection.calibration import Calibration, calibrate, log_evidence

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
        # u is uniform where 2 e is Beta(1/2, 1/2), and log a is uniform.
        e = np.sin(np.pi * u / 2) ** 2 / 2
        own = (1 - e) * expit(a * s * sign) + e / 2
        return float(np.exp(np.log(own).sum() + 20) / a)

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


# The midpoint


def moved_by_hand(s: np.ndarray, codes: np.ndarray, prior: np.ndarray) -> float:
    """E (1 - c) a / (1 + a) of two classes, by sums over a grid of one's own.

    Scores have unit standard deviation, and the grid of slopes the ends of the other.
    """
    a = np.exp(np.linspace(-4.0, 3.5, 601))[:, None, None]
    u = (np.arange(200) + 0.5) / 200
    e = (np.sin(np.pi * u / 2) ** 2 / 2)[:, None]
    own_prior, odds = prior[codes], np.log(prior[1] / prior[0])
    total = moved = 0.0
    for c in (0.0, 0.5, 1.0):
        m = (1 - c) * odds / (1 + a)
        p = expit(a * (s - m) + odds)
        own = np.where(codes == 1, p, 1 - p)
        # The prior is uniform in the logarithm of the slope, as the grid is.
        density = np.exp(np.log((1 - e) * own + e * own_prior).sum(axis=2) + 20)
        total += density.sum()
        moved += (density * (1 - c) * a[:, 0] / (1 + a[:, 0])).sum()
    return moved / total


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_midpoint_is_what_the_formula_says(seed: int) -> None:
    scores, codes, log_prior = drawn(30, 2, seed)
    prior = np.exp(log_prior)
    _, midpoint, _ = calibrate(scores, codes, np.ones(30), log_prior)
    s = scores[:, 0] / scores.std()
    odds = log_odds(prior)
    want = moved_by_hand(s, codes, prior) * odds
    np.testing.assert_allclose(midpoint, want, rtol=0.01)
    share = midpoint / odds
    assert share > 0
    assert share < 1


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_midpoint_has_no_unit_and_moves_along_the_log_prior(K: int) -> None:
    scores, codes, log_prior = drawn(60, K, seed=1)
    known = codes, np.ones(60), log_prior
    _, midpoint, _ = calibrate(scores, *known)
    odds = log_odds(np.exp(log_prior))
    share = midpoint / odds
    np.testing.assert_allclose(share, share[0])
    assert 0 < share[0] < 1
    _, other, _ = calibrate(1e6 * scores, *known)
    np.testing.assert_allclose(other, midpoint, rtol=1e-9)
    even = np.full(K, -np.log(K))
    _, nowhere, _ = calibrate(scores, codes, np.ones(60), even)
    np.testing.assert_allclose(nowhere, 0.0, atol=1e-12)


@pytest.mark.parametrize(("c", "within"), [(1.0, (0.0, 0.1)), (0.0, (0.4, 1.0))])
def test_the_midpoint_is_where_the_samples_have_it(
    c: float, within: tuple[float, float]
) -> None:
    """Drawn with the whole shift by the class probabilities, and with what is least."""
    rng = np.random.default_rng(0)
    log_prior = np.log([0.1, 0.9])
    odds, a = float(log_prior[1] - log_prior[0]), 2.0
    s = rng.normal(size=5000)
    s /= s.std()
    p = expit(a * (s - (1 - c) * odds / (1 + a)) + odds)
    codes = (rng.uniform(size=5000) < p).astype(int)
    slope, midpoint, _ = calibrate(s[:, None], codes, np.ones(5000), log_prior)
    assert slope == pytest.approx(2.0, rel=0.15)
    assert within[0] <= midpoint[0] / odds <= within[1]
    if c == 0:
        assert midpoint[0] == pytest.approx(a * odds / (1 + a), rel=0.1)


@pytest.mark.parametrize("K", [2, 3])
def test_scores_that_say_nothing_leave_the_class_probabilities(K: int) -> None:
    rng = np.random.default_rng(K)
    prior = np.array([0.1, 0.9]) if K == 2 else np.array([0.1, 0.3, 0.6])
    codes = rng.choice(K, p=prior, size=3000)
    scores = rng.normal(size=(3000, 1 if K == 2 else K))
    slope, midpoint, calibration = calibrate(
        scores, codes, np.ones(3000), np.log(prior)
    )
    odds = log_odds(prior)
    assert (np.abs(midpoint) < 0.1 * np.abs(odds)).all()
    decision = slope * scores[:50] - midpoint + odds
    p = np.exp(calibration.log_probabilities(decision))
    np.testing.assert_allclose(p, np.tile(prior, (50, 1)), atol=0.06)
    assert (p.argmax(axis=1) == K - 1).all()


# The evidence


def evidence(
    scores: np.ndarray,
    codes: np.ndarray,
    log_prior: np.ndarray,
    weight: np.ndarray | None = None,
) -> float:
    weight = np.ones(len(codes)) if weight is None else weight
    fold = np.zeros(len(codes), dtype=np.intp)
    return float(log_evidence(scores, codes, weight, log_prior, fold)[0])


@pytest.mark.parametrize("K", [2, 3])
def test_the_evidence_is_an_integral(K: int) -> None:
    """Against an adaptive double integral, with weights and unequal classes."""
    scores, codes, log_prior = drawn(25, K, seed=K)
    weight = np.random.default_rng(0).integers(1, 3, 25).astype(float)
    full = np.hstack([np.zeros_like(scores), scores]) if K == 2 else scores
    full = full - np.average(full, axis=0, weights=weight)
    full /= np.sqrt(np.average((full**2).sum(axis=1), weights=weight))
    prior = np.exp(log_prior)

    def likelihood(log_a: float, u: float) -> float:
        e = np.sin(np.pi * u / 2) ** 2 / 2
        p = softmax(np.exp(log_a) * full + log_prior, axis=1)
        own = ((1 - e) * p + e * prior)[np.arange(25), codes]
        return float(np.exp(weight @ np.log(own) + 20))

    total = dblquad(likelihood, 0.0, 1.0, -4.0, 3.5, epsabs=0.0, epsrel=1e-5)[0]
    want = np.log(total / 7.5) - 20
    got = evidence(scores, codes, log_prior, weight)
    assert got == pytest.approx(want, abs=0.05)  # the grid has its ends in full


@pytest.mark.parametrize("K", [2, 3])
def test_the_evidence_of_all_labels_adds_up_to_one(K: int) -> None:
    scores, _, log_prior = drawn(6, K, seed=5)
    labels = product(range(K), repeat=6)
    total = sum(np.exp(evidence(scores, np.array(y), log_prior)) for y in labels)
    assert total == pytest.approx(1.0, rel=1e-10)


def test_equal_scores_are_evidence_for_the_class_shares_alone() -> None:
    _, codes, log_prior = drawn(40, 3, seed=2)
    equal = np.full((40, 3), 5.0)
    want = log_prior[codes].sum()
    assert evidence(equal, codes, log_prior) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("K", [2, 4])
def test_the_evidence_has_no_unit_no_cut_and_no_order(K: int) -> None:
    scores, codes, log_prior = drawn(40, K, seed=2)
    want = evidence(scores, codes, log_prior)
    shift = np.arange(scores.shape[1]) + 3.0
    moved = evidence(1e5 * scores + shift, codes, log_prior)
    assert moved == pytest.approx(want, rel=1e-9)
    order = np.random.default_rng(0).permutation(40)
    assert evidence(scores[order], codes[order], log_prior) == pytest.approx(want)
    other = -scores if K == 2 else scores[:, ::-1]
    assert evidence(other, K - 1 - codes, log_prior[::-1]) == pytest.approx(want)


@pytest.mark.parametrize("K", [2, 3])
def test_the_evidence_counts_a_weight_as_so_many_samples(K: int) -> None:
    scores, codes, log_prior = drawn(40, K, seed=3)
    weight = np.random.default_rng(0).integers(0, 4, 40)
    rows = np.repeat(np.arange(40), weight)
    got = evidence(scores, codes, log_prior, weight.astype(float))
    want = evidence(scores[rows], codes[rows], log_prior)
    assert got == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("K", [2, 3])
def test_the_evidence_without_a_fold_is_the_sum_over_its_labels(K: int) -> None:
    """What remains of a probability if some of its labels are not looked at."""
    scores, codes, log_prior = drawn(12, K, seed=4)
    fold = np.arange(12) % 4
    got = log_evidence(scores, codes, np.ones(12), log_prior, fold)
    assert got.shape == (5,)
    assert got[0] == pytest.approx(evidence(scores, codes, log_prior))
    for f in range(4):
        total = 0.0
        for labels in product(range(K), repeat=3):
            other = codes.copy()
            other[fold == f] = labels
            total += np.exp(evidence(scores, other, log_prior))
        assert got[1 + f] == pytest.approx(np.log(total), rel=1e-9)


def test_the_evidence_tells_better_scores() -> None:
    """Ten times out of ten, with 60 samples and half of the noise."""
    for seed in range(10):
        scores, codes, log_prior = drawn(60, 2, seed, slope=1.0)
        noise = 3 * np.random.default_rng(100 + seed).normal(size=(60, 1))
        good = evidence(scores, codes, log_prior)
        assert good > evidence(scores + noise, codes, log_prior)
        assert good > log_prior[codes].sum() > evidence(-scores, codes, log_prior)
