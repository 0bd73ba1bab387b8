"""How far scores can be believed: the slope that makes log-odds of them.

A linear rule of thousands of features is overconfident if its score is read as a
log-odds. The slope of a logistic regression on scores of held-out samples is what it
should be multiplied by. Firth's penalised likelihood keeps it finite where the classes
are separated.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from ebda.arrays import FloatArray, IntArray


def logistic_slope(
    scores: FloatArray, codes: IntArray, weight: FloatArray, log_prior: FloatArray
) -> float:
    """Factor that makes log-odds of scores, by Firth's penalised likelihood.

    Maximises ``sum_i w_i log p_i + 1/2 log I(a)``, with p the softmax of a times the
    scores plus the log class probabilities, and I the Fisher information of a.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, n_classes)
        Scores, for the second class of two or for each class.
    codes : ndarray of shape (n,)
        Classes.
    weight : ndarray of shape (n,)
        Frequency weights.
    log_prior : ndarray of shape (n_classes,)
        Log class probabilities.
    """
    full = (
        np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores
    )
    unit = np.sqrt(np.average(((full - full.mean(axis=0)) ** 2).sum(axis=1)))
    if not unit > 0:
        return 1.0
    full = full / unit
    row = np.arange(len(codes))

    def loss(log_slope: float) -> float:
        logits = np.exp(log_slope) * full + log_prior
        p = softmax(logits, axis=1)
        mean = (p * full).sum(axis=1)
        information = weight @ ((p * full**2).sum(axis=1) - mean**2)
        fit = weight @ log_softmax(logits, axis=1)[row, codes]
        return float(-fit - 0.5 * np.log(max(information, 1e-300)))

    exact = {"xatol": 1e-10}
    found = minimize_scalar(loss, bounds=(-7.0, 7.0), method="bounded", options=exact)
    return float(np.exp(found.x)) / float(unit)
