"""Calibration: from scores to probabilities.

A linear rule with thousands of features is overconfident if its scores are read as
log-odds. Scores of held-out samples tell the slope a by which to multiply them:

    p_i = (1 - e) softmax(a (s_i - m) + log prior) + e prior.

The noise e is the share of samples that the score says nothing about: wrong labels,
and samples that are unlike the others of their class. What is known of these are the
class probabilities. Without it, a few of them would make the slope too small for all
others (Copas 1988), and the class probabilities would then move the boundary too far.

They do so in any case where the log-odds are steeper about the boundary than the one
slope for all scores has it, as held-out scores of real data mostly are. So the midpoint
m moves against them. In units of the standard deviation of the scores it is

    m = (1 - c) log prior / (1 + a),

where c, between 0 and 1, is the part of the shift by the class probabilities that the
held-out samples confirm. It belongs to the scores, ``a (s - m)``: a score that says
nothing, a = 0, leaves the class probabilities.

Where samples have scales of their own, a score says the less the noisier its sample is:
``s - m`` is divided by the square of the scale
(:mod:`ebda.covariance.sample_scale`).

With few held-out samples all three are uncertain. Probabilities are averaged over the
posterior of slope and noise. In advance every order of magnitude of the slope is as
probable, between one that tells next to nothing and one that tells the classes apart
within a fifth of a standard deviation; so scores that separate the held-out samples by
chance are believed less than under a prior that is uniform in the slope itself. The
prior of the noise, which is a half at most, is Beta(1/2, 1/2) on this range. Of c,
uniform in advance, the posterior mean is used: to average over it changes nothing that
can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax, logsumexp, softmax

from ebda.rule.linear_rule import log_odds
from ebda.storage.fields import NOT_NEGATIVE, POSITIVE, Array, Scalar
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray

# Grid of slopes, for scores of unit standard deviation: at the largest slope a
# probability goes from 5 % to 95 % within a fifth of a standard deviation.
_SLOPES: FloatArray = np.exp(np.linspace(-4.0, 3.5, 76))
# Nodes of equal weight under Beta(1/2, 1/2), the arcsine distribution, on 0 to 1/2.
_NOISE: FloatArray = np.sin(np.pi / 4 * (2 * np.arange(16) + 1) / 16) ** 2 / 2
# Parts of the shift by the class probabilities.
_PARTS: FloatArray = np.array([0.0, 0.5, 1.0])
# Slopes with less weight are left out of the average.
_NEGLIGIBLE = 1e-9
# Elements of a block of logits.
_BLOCK = 1 << 20


@dataclass(frozen=True, eq=False)
class Calibration:
    """Probabilities as a function of the decision.

    A decision is a score plus the logarithm of the class probabilities, and
    ``p = sum_j share_j softmax(slope_j score + log prior) + noise prior``: an average
    over slopes, whose geometric mean is 1.

    Parameters
    ----------
    slope, share : ndarray of shape (n_nodes,)
        Slopes relative to that of the decision, and their shares.
    noise : float
        Probability of a sample that the score says nothing about.
    prior : ndarray of shape (n_classes,), optional
        Class probabilities that decisions hold; equal ones if None.
    """

    slope: FloatArray
    share: FloatArray
    noise: float = 0.0
    prior: FloatArray | None = None

    @classmethod
    def none(cls) -> Calibration:
        """For decisions that are log-odds."""
        return cls(np.ones(1), np.ones(1))

    def __repr__(self) -> str:
        low, high = self.slope.min(), self.slope.max()
        return (
            f"Calibration: slopes from {low:.2f} to {high:.2f} of the decision, noise "
            f"{self.noise:.3f}"
        )

    def log_probabilities(
        self, decision: FloatArray, precision: FloatArray | None = None
    ) -> FloatArray:
        """Log class probabilities for decisions of shape (n, 1) or (n, n_classes).

        Finite for every finite decision: the noise keeps them above zero, and
        without it nothing is exponentiated before the logarithm.

        Parameters
        ----------
        decision : ndarray of shape (n, 1) or (n, n_classes)
            Decisions.
        precision : ndarray of shape (n,), optional
            One over the squares of the scales of the samples; 1 if None.

        >>> log_p = Calibration.none().log_probabilities(np.array([[0.0], [1000.0]]))
        >>> log_p[:, 0].round(3).tolist()
        [-0.693, -1000.0]
        """
        k = max(decision.shape[1], 2)
        prior = np.full(k, 1 / k) if self.prior is None else self.prior
        held = log_odds(prior)
        score = decision - held
        if precision is not None:
            score *= precision[:, None]
        if self.noise == 0 and len(self.slope) == 1:
            return _log_softmax(self.slope[0] * score + held)
        p = np.tile(self.noise * prior, (len(decision), 1))
        for slope, share in zip(self.slope, self.share, strict=True):
            p += share * np.exp(_log_softmax(slope * score + held))
        log_p: FloatArray = np.log(p)
        return log_p


def _from_fields(fields: dict[str, Any]) -> Calibration:
    total = fields["share"].sum() + fields["noise"]
    if abs(total - 1) > 1e-6:
        raise ValueError(f"shares and noise must sum to 1, not to {total:g}")
    fields.setdefault("prior", None)
    return Calibration(**fields)


register(
    Schema(
        Calibration,
        {
            "slope": Array(("j",), POSITIVE),
            "share": Array(("j",), NOT_NEGATIVE),
            "noise": Scalar((float,), least=0.0, most=1.0),
            "prior": Array(("k",), ("positive", "a distribution")),
        },
        optional=frozenset({"prior"}),
        build=_from_fields,
    )
)


def _log_softmax(decision: FloatArray) -> FloatArray:
    if decision.shape[1] == 1:
        result: FloatArray = log_expit(np.hstack([-decision, decision]))
    else:
        result = log_softmax(decision, axis=1)
    return result


@dataclass(frozen=True, eq=False)
class ScaledCalibration:
    """Probabilities where the precision of each sample comes after its decisions.

    Parameters
    ----------
    calibration : Calibration
        That of the decisions.
    """

    calibration: Calibration

    def log_probabilities(self, columns: FloatArray) -> FloatArray:
        """Log class probabilities, from decisions and a last column of precisions."""
        return self.calibration.log_probabilities(columns[:, :-1], columns[:, -1])


def calibrate(
    scores: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    log_prior: FloatArray,
    precision: FloatArray | None = None,
) -> tuple[float, FloatArray, Calibration]:
    """What makes log-odds of scores, and how sure that is.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, n_classes)
        Scores of held-out samples, for the second class of two or for each class.
    codes : ndarray of shape (n,)
        Classes.
    weight : ndarray of shape (n,)
        Frequency weights.
    log_prior : ndarray of shape (n_classes,)
        Log class probabilities.
    precision : ndarray of shape (n,), optional
        What scores were multiplied with, and the midpoint is to be.

    Returns
    -------
    slope : float
        The geometric mean of the slope under its posterior.
    midpoint : ndarray of shape (1,) or (n_classes,)
        ``slope * m``.
    calibration : Calibration
        For decisions ``slope * scores - midpoint`` plus the log-odds of the class
        probabilities.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.repeat([0, 1], 500)
    >>> scores = 3.0 * (rng.normal(size=1000) + 2 * codes - 1)[:, None]
    >>> prior = np.log([0.5, 0.5])
    >>> slope, midpoint, calibration = calibrate(scores, codes, np.ones(1000), prior)
    >>> bool(abs(3 * slope - 2) < 0.2), midpoint, calibration.noise < 0.02
    (True, array([0.]), True)
    """
    full = _for_each_class(scores)
    _, unit = _centred(full, weight)
    odds = log_odds(np.exp(log_prior))
    if not unit > 0:
        return 1.0, np.zeros(len(odds)), Calibration.none()
    full = full / unit

    # Even classes do not shift anything.
    parts = _PARTS if np.ptp(log_prior) > 0 else _PARTS[-1:]
    known = full, codes, weight, log_prior
    w = np.ones(1) if precision is None else precision
    shifts = [1 - _moved(part)[:, None] * w for part in parts]
    joint = np.stack([_log_likelihood(*known, shift) for shift in shifts])
    posterior = softmax(joint)
    density = posterior.sum(axis=(0, 2))
    middle = np.exp(density @ np.log(_SLOPES))
    moved = float(np.sum(posterior.sum(axis=2) * [_moved(part) for part in parts]))
    kept = density > _NEGLIGIBLE
    share = density[kept] / density[kept].sum()
    noise = softmax(logsumexp(joint[:, kept], axis=0), axis=1) @ _NOISE
    calibration = Calibration(
        _SLOPES[kept] / middle,
        share * (1 - noise),
        float(share @ noise),
        np.exp(log_prior),
    )
    return float(middle / unit), moved * odds, calibration


def log_evidence(
    scores: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    log_prior: FloatArray,
    fold: IntArray,
    precision: FloatArray | None = None,
) -> FloatArray:
    """Log-probability of the labels given the scores, whatever slope and noise are.

    It judges how well scores separate the classes, not where they are cut: they are
    centred first. The average is over the logarithm of the slope and over the noise.

    Parameters
    ----------
    scores, codes, weight, log_prior, precision
        As in `calibrate`.
    fold : ndarray of int of shape (n,)
        Folds, from 0 on.

    Returns
    -------
    ndarray of shape (1 + n_folds,)
        That of all samples, and those without the samples of each fold.

    Examples
    --------
    >>> codes = np.repeat([0, 1], 20)
    >>> scores = np.random.default_rng(0).normal(size=(40, 1)) + 2 * codes[:, None]
    >>> rest = np.ones(40), np.log([0.5, 0.5]), np.zeros(40, dtype=np.intp)
    >>> good = log_evidence(scores, codes, *rest)
    >>> bad = log_evidence(scores[::-1], codes, *rest)
    >>> bool(good[0] > 40 * np.log(0.5) > bad[0])
    True
    """
    centred, unit = _centred(_for_each_class(scores), weight, precision)
    without = np.arange(fold.max() + 1) != fold[:, None]
    columns = weight[:, None] * np.hstack([np.ones((len(fold), 1)), without])
    if not unit > 0:
        alone: FloatArray = log_prior[codes] @ columns
        return alone
    likelihood = _log_likelihood(centred / unit, codes, columns, log_prior)
    nodes = len(_SLOPES) * len(_NOISE)
    total: FloatArray = logsumexp(likelihood, axis=(0, 1)) - np.log(nodes)
    return total


def _for_each_class(scores: FloatArray) -> FloatArray:
    """A column for each class, also for two."""
    if scores.shape[1] > 1:
        return scores
    return np.hstack([np.zeros_like(scores), scores])


def _centred(
    scores: FloatArray, weight: FloatArray, precision: FloatArray | None = None
) -> tuple[FloatArray, float]:
    """Scores less their mean, and the root of the mean square length of a row.

    Scores that were multiplied with the precision are zero where there is none.
    """
    middle = np.average(scores, axis=0, weights=weight)
    if precision is not None:
        middle = np.outer(precision, middle / np.average(precision, weights=weight))
    centred: FloatArray = scores - middle
    return centred, float(np.sqrt(np.average((centred**2).sum(axis=1), weights=weight)))


def _moved(part: float) -> FloatArray:
    """``a m`` over the log prior, for each slope a."""
    moved: FloatArray = (1 - part) * _SLOPES / (1 + _SLOPES)
    return moved


def _log_likelihood(
    scores: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    log_prior: FloatArray,
    shift: FloatArray | None = None,
) -> FloatArray:
    """Of slope and noise, on the grid of both.

    `weight` may have several columns; then so has the result, in the last axis.
    `shift` is what each slope leaves of the shift by the class probabilities, for each
    sample or all of them.
    """
    n, k = scores.shape
    row, share = np.arange(n), np.exp(log_prior)[codes]
    at_once = max(1, _BLOCK // max(n * k, 1))
    parts = []
    for start in range(0, len(_SLOPES), at_once):
        some = slice(start, start + at_once)
        logits = _SLOPES[some, None, None] * scores
        logits += log_prior if shift is None else shift[some, :, None] * log_prior
        own = softmax(logits, axis=2)[:, row, codes]
        likelihoods = [np.log(own + e * (share - own)) @ weight for e in _NOISE]
        parts.append(np.stack(likelihoods, axis=1))
    return np.concatenate(parts)
