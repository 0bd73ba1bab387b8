"""How far held-out scores separate the classes, with standard errors.

The separation is half the distance of the class means of the scores in units of the
standard deviation within the classes,

    d = (mean score of the class - mean score of the others) / (2 sd).

It says whether a rule separates the classes at all.
"""

from __future__ import annotations

import numpy as np

from ebda.selection.folds import HeldOut
from ebda.typing import FloatArray


def separation(held_out: HeldOut) -> tuple[FloatArray, FloatArray, FloatArray]:
    """d and the standard deviation of each candidate, and the samples' influence on d.

    Returns
    -------
    d, sd : ndarray of shape (n_candidates,)
    influence : ndarray of shape (n_candidates, n_held_out)
        The covariance of d is about ``influence @ influence.T``.
    """
    S, codes, w = held_out.scores, held_out.codes, held_out.weight
    n_contrasts = S.shape[2]
    total = w.sum()
    classes = np.unique(codes)
    # The class that a contrast is for: the second of two, else each.
    own = classes[1:] if n_contrasts == 1 else classes
    columns = np.zeros(1, dtype=np.intp) if n_contrasts == 1 else own
    distance = np.zeros(len(S))
    influence = np.zeros(S.shape[:2])
    shares = np.array([w[codes == k].sum() for k in own])
    for k, column, share in zip(own, columns, shares / shares.sum(), strict=True):
        for member, sign in ((codes == k, 1.0), (codes != k, -1.0)):
            weight = np.where(member, w, 0.0)
            score = S[:, :, column]
            mean = score @ weight / weight.sum()
            distance += share * sign * mean
            influence += share * sign * weight / weight.sum() * (score - mean[:, None])
    residual = S.copy()
    for k in classes:
        member = codes == k
        mean = np.einsum("mnc,n->mc", S[:, member], w[member]) / w[member].sum()
        residual[:, member] -= mean[:, None, :]
    square = (residual**2).mean(axis=2)
    variance = square @ w / max(total - len(classes), 1.0)
    sd = np.sqrt(variance)
    unit = np.where(sd > 0, sd, 1.0)
    d = distance / (2 * unit)
    influence /= 2 * unit[:, None]
    influence -= d[:, None] / 2 * w / total * (square / unit[:, None] ** 2 - 1)
    return d, sd, influence / np.sqrt(np.maximum(w, 1e-300))
