"""Markov chains with few states: the forward and the backward recursion.

A recursion over p positions in Python would take longer than all of its arithmetic. So
many chains go side by side: those of several folds and starts, each in both directions.
Where they are few, each is cut into blocks. How a block changes a message, whatever the
message, is computed for all blocks side by side; then a message goes from block to
block, and then through all blocks at once. That is exact, and takes a few times sqrt(p)
calls of NumPy instead of p.

The arithmetic is that of probabilities, or that of their logarithms where one step can
be so improbable that probabilities would underflow; it takes a few times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ebda.kernels.threads import one_blas_thread
from ebda.sizes import sizes
from ebda.typing import FloatArray

# Steps less probable than this, as a logarithm, need logarithms: one of them, and what
# the states expect of the values on both sides, still are normal numbers.
_IMPROBABLE = -300.0
# With so many values to move at each position, calls of NumPy are cheap beside the
# arithmetic, which blocks have more of.
_MANY = 512

# What the states (second axis) go on to in one step.
Move = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What chains are known to have done, given all that was seen.

    Parameters
    ----------
    weights : ndarray of shape (n_chains, n_states, n_rows, n)
        Probability of each state at each position.
    pairs : ndarray of shape (n_chains, n_states, n_states)
        Expected number of steps from one state to another, over all rows of a chain.
    log_likelihood : ndarray of shape (n_chains,)
        Log of the sum over all paths, over all rows.
    products : ndarray of shape (n_chains, n_rows, n - 1)
        Mean of the product of the levels of neighbours.
    """

    weights: FloatArray
    pairs: FloatArray
    log_likelihood: FloatArray
    products: FloatArray


def smooth(sites: FloatArray, pair: FloatArray, levels: FloatArray) -> Smoothed:
    """Smooth chains, given the factors that the probability of a path is made of.

    Parameters
    ----------
    sites : ndarray of shape (n_chains, n_states, n_rows, n)
        Logs of the factors of the states at each position; each row is a path of its
        own. A state that is nowhere possible has minus infinity.
    pair : ndarray of shape (n_chains, n_states, n_states)
        Logs of the factors of a step from one state (rows) to another; all finite.
    levels : ndarray of shape (n_chains, n_states)
        What a state stands for.
    """
    improbable = pair.min(axis=(1, 2)) < _IMPROBABLE
    if improbable.any() and not improbable.all():
        kinds = improbable, ~improbable
        parts = [smooth(sites[c], pair[c], levels[c]) for c in kinds]
        order = np.argsort(np.argsort(~improbable, kind="stable"))
        return Smoothed(
            *(
                np.concatenate([getattr(part, name) for part in parts])[order]
                for name in Smoothed.__dataclass_fields__
            )
        )
    logs = bool(improbable.any())
    n = len(sites)
    both = np.concatenate([sites, sites[..., ::-1]])
    steps = np.concatenate([pair, pair.transpose(0, 2, 1)])
    with one_blas_thread():
        found, total = messages(both, steps, logs)
        way_there, way_back = found[:n], found[n:, ..., ::-1]
        joint = _joint_of_logs if logs else _joint
        weights, pairs, products = joint(way_there, way_back, pair, levels)
    return Smoothed(weights, pairs, total[:n].sum(axis=1), products)


def messages(
    sites: FloatArray, pair: FloatArray, logs: bool
) -> tuple[FloatArray, FloatArray]:
    """Sums over all paths up to each position, by their last state.

    Parameters
    ----------
    sites, pair : ndarray
        As in :func:`smooth`.
    logs : bool
        Whether to work with logarithms, and return them.

    Returns
    -------
    messages : ndarray of shape (n_chains, n_states, n_rows, n)
        Up to a factor for each position: they sum to one over the states.
    total : ndarray of shape (n_chains, n_rows)
        Log sums over all whole paths.

    >>> sites, pair = np.log([[[[1.0, 1.0]], [[2.0, 3.0]]]]), np.zeros((1, 2, 2))
    >>> np.exp(messages(sites, pair, logs=False)[1]).round(10)  # (1 + 2) (1 + 3)
    array([[12.]])
    """
    (b, k, n_rows, n), steps = sites.shape, sites.shape[3] - 1
    top = sites.max(axis=1)
    # A step within the blocks takes about four times as long as one between them.
    length = steps if b * k * n_rows >= _MANY else int(np.sqrt(steps) / 2)
    length = max(1, length)
    n_blocks = max(1, -(-steps // length))
    # Within a block first, so that a position of all blocks is one piece of memory.
    seen = np.zeros((b, k, n_rows, n_blocks * length))
    np.subtract(sites[..., 1:], top[:, None, :, 1:], out=seen[..., :steps])
    seen = seen.reshape(b, k, n_rows, n_blocks, length).transpose(4, 0, 1, 2, 3)
    seen = np.ascontiguousarray(seen).reshape(length, b, k, n_rows * n_blocks)
    first = sites[..., 0] - top[..., 0][:, None]
    if not logs:
        np.exp(seen, out=seen)
        first = np.exp(first)
    move = _in_logs(pair) if logs else _in_probabilities(pair)
    see, sums, apart = (
        (np.add, _log_sum, np.subtract) if logs else (np.multiply, _sum, np.divide)
    )
    shape = b, k, n_rows, n_blocks
    begin = np.empty(shape)
    whole = sums(first)
    message = apart(first, whole[:, None])
    begin[..., 0] = message
    if n_blocks > 1:
        product = _blocks(seen, move, see, apart, logs).reshape(b, k, k, *shape[2:])
        for block in range(1, n_blocks):
            message = sums(see(product[..., block - 1], message[:, None]), axis=2)
            message = apart(message, sums(message)[:, None])
            begin[..., block] = message
    # Through all blocks at once.
    found, scale = np.empty_like(seen), np.empty((length, b, n_rows * n_blocks))
    message = begin.reshape(b, k, -1)
    for place, out, size in zip(seen, found, scale, strict=True):
        see(move(message), place, out=out)
        size[:] = sums(out)
        message = apart(out, size[:, None], out=out)
    out = np.empty((b, k, n_rows, n))
    out[..., 0] = begin[..., 0]
    ordered = found.reshape(length, *shape).transpose(1, 2, 3, 4, 0)
    out[..., 1:] = ordered.reshape(b, k, n_rows, -1)[..., :steps]
    log_scale = scale if logs else np.log(scale)
    scales = log_scale.reshape(length, b, n_rows, n_blocks).transpose(1, 2, 3, 0)
    total = whole if logs else np.log(whole)
    total = total + scales.reshape(b, n_rows, -1)[..., :steps].sum(axis=2)
    return out, total + top.sum(axis=2)


def _blocks(
    seen: FloatArray, move: Move, see: np.ufunc, apart: np.ufunc, logs: bool
) -> FloatArray:
    """What a block makes of each state that it might begin with (the third axis).

    Returns an array of shape (n_chains, n_states, n_states, n_rows * n_blocks), each
    block of it up to a factor.
    """
    _, b, k, m = seen.shape
    unit = np.eye(k)
    if logs:
        unit = np.log(unit, where=unit > 0, out=np.full((k, k), -np.inf))
    product = np.broadcast_to(unit[:, :, None], (b, k, k, m))
    for place in seen:
        product = move(product.reshape(b, k, k * m)).reshape(b, k, k, m)
        see(product, place[:, :, None], out=product)
        apart(product, product.max(axis=(1, 2), keepdims=True), out=product)
    return product


def _joint(
    there: FloatArray, back: FloatArray, pair: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights, pairs and products from the messages of both directions.

    Given all, neighbours have the states a and b with probability
    ``there_a pair_ab back_b`` over its sum, which never is formed for each position.
    """
    b, k, n_rows, n = there.shape
    step = np.exp(pair)
    later = np.ascontiguousarray(back[..., 1:]).reshape(b, k, -1)
    weights = np.empty_like(there)
    before = there[..., :-1] * (step @ later).reshape(b, k, n_rows, n - 1)
    size = before.sum(axis=1)
    before /= size[:, None]
    weights[..., :-1] = before
    from_left = (there[..., :-1] / size[:, None]).reshape(b, k, -1)
    pairs = step * (from_left @ later.transpose(0, 2, 1))
    if n > 1:
        last = step.transpose(0, 2, 1) @ from_left.reshape(b, k, n_rows, -1)[..., -1]
        weights[..., -1] = last * back[..., -1]
    else:
        weights[..., -1] = there[..., -1]
    later *= levels[:, :, None]
    from_left *= levels[:, :, None]
    products = np.einsum("bkm,bkm->bm", from_left, step @ later)
    return weights, pairs, products.reshape(b, n_rows, n - 1)


def _joint_of_logs(
    there: FloatArray, back: FloatArray, pair: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The same from logarithms, some steps at a time."""
    b, k, n_rows, n = there.shape
    weights, pairs = np.empty_like(there), np.zeros((b, k, k))
    weights[..., -1] = np.exp(there[..., -1])
    products = np.empty((b, n_rows, n - 1))
    size = max(1, sizes.chain_steps // (b * n_rows))
    for left in range(0, n - 1, size):
        part = slice(left, min(left + size, n - 1))
        after = slice(part.start + 1, part.stop + 1)
        joint = pair[..., None, None] + there[:, :, None, :, part]
        joint += back[:, None, ..., after]
        joint -= joint.max(axis=(1, 2), keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=(1, 2), keepdims=True)
        weights[..., part] = joint.sum(axis=2)
        weights[..., after.stop - 1] = joint[..., -1].sum(axis=1)
        pairs += joint.sum(axis=(3, 4))
        products[..., part] = np.einsum("xa,xabcj,xb->xcj", levels, joint, levels)
    return weights, pairs, products


def _in_probabilities(pair: FloatArray) -> Move:
    forward = np.ascontiguousarray(np.exp(pair).transpose(0, 2, 1))
    return lambda message: forward @ message


def _in_logs(pair: FloatArray) -> Move:
    return lambda message: _log_sum(message[:, :, None] + pair[..., None])


def _sum(values: FloatArray, axis: int = 1) -> FloatArray:
    total: FloatArray = values.sum(axis=axis)
    return total


def _log_sum(logs: FloatArray, axis: int = 1) -> FloatArray:
    top = np.maximum(logs.max(axis=axis, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):  # the log of zero
        total: FloatArray = np.log(np.exp(logs - top).sum(axis=axis))
    total += top.squeeze(axis)
    return total
