"""Markov chains with few states: the forward and the backward recursion.

A recursion over p positions in Python would take longer than all of its arithmetic. So
a chain is cut into blocks. How a block changes a message, whatever the message, is
computed for all blocks side by side; then a message goes from block to block, and then
through all blocks at once. That is exact, and takes a few times sqrt(p) calls of NumPy
instead of p.

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

# Steps less probable than this, as a logarithm, need logarithms: two of them, and what
# the states expect of the values in between, still are normal numbers.
_IMPROBABLE = -300.0

# What the states (first axis) go on to in one step; how a message and what is seen at a
# position go together; the sums over the states.
Move = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What chains are known to have done, given all that was seen.

    Parameters
    ----------
    weights : ndarray of shape (n_rows, n, n_states)
        Probability of each state at each position.
    pairs : ndarray of shape (n_states, n_states)
        Expected number of steps from one state to another, over all rows.
    log_likelihood : float
        Log of the sum over all paths, over all rows.
    products : ndarray of shape (n_rows, n - 1)
        Mean of the product of the levels of neighbours.
    """

    weights: FloatArray
    pairs: FloatArray
    log_likelihood: float
    products: FloatArray


def messages(
    sites: FloatArray, pair: FloatArray, logs: bool
) -> tuple[FloatArray, FloatArray]:
    """Log sums over all paths up to each position, by their last state.

    Parameters
    ----------
    sites : ndarray of shape (n_states, n_rows, n)
        Logs of the factors of the states at each position.
    pair : ndarray of shape (n_states, n_states)
        Logs of the factors of a step from one state (rows) to another.
    logs : bool
        Whether to work with logarithms.

    Returns
    -------
    messages : ndarray of shape (n_states, n_rows, n)
        Up to a constant for each position.
    total : ndarray of shape (n_rows,)
        Log sums over all whole paths.

    >>> sites, pair = np.log([[[1.0, 1.0]], [[2.0, 3.0]]]), np.zeros((2, 2))
    >>> np.exp(messages(sites, pair, logs=False)[1]).round(10)  # (1 + 2) (1 + 3)
    array([12.])
    """
    (k, n_rows, n), steps = sites.shape, sites.shape[2] - 1
    top = sites.max(axis=0)
    # A step within the blocks takes about four times as long as one between them.
    length = max(1, int(np.sqrt(steps) / 2))
    n_blocks = -(-steps // length)
    # Within a block first, so that a position of all blocks is one piece of memory.
    seen = np.zeros((k, n_rows, n_blocks * length))
    np.subtract(sites[..., 1:], top[:, 1:], out=seen[..., :steps])
    seen = seen.reshape(k, n_rows, n_blocks, length).transpose(3, 0, 1, 2)
    seen = np.ascontiguousarray(seen) if logs else np.exp(seen)
    first = sites[..., 0] - top[:, 0]
    move = _in_logs(pair) if logs else _in_probabilities(pair)
    see, sums, apart = (
        (np.add, _log_sum, np.subtract) if logs else (np.multiply, _sum, np.divide)
    )

    def go(message: FloatArray, place: FloatArray) -> tuple[FloatArray, FloatArray]:
        moved = move(message)
        see(moved, place, out=moved)
        total = sums(moved)
        apart(moved, total, out=moved)
        return moved, total

    # What a block makes of each state that it might begin with (the second axis).
    unit = np.log(np.eye(k), where=np.eye(k) > 0, out=np.full((k, k), -np.inf))
    product = np.broadcast_to(
        (unit if logs else np.eye(k))[:, :, None, None], (k, k, n_rows, n_blocks)
    )
    shift = np.zeros((n_rows, n_blocks))
    for place in seen:
        product = move(product)
        see(product, place[:, None], out=product)
        largest = product.max(axis=(0, 1))
        apart(product, largest, out=product)
        shift += largest if logs else np.log(largest)
    message = first if logs else np.exp(first)
    begin = np.empty((k, n_rows, n_blocks))
    for block in range(n_blocks):
        total = sums(message)
        message = apart(message, total)
        begin[..., block] = message
        message = sums(see(product[..., block], message), axis=1)
    # Through all blocks at once.
    found = np.empty((length, k, n_rows, n_blocks))
    scale = np.empty((length, n_rows, n_blocks))
    message = begin
    for j, place in enumerate(seen):
        message, scale[j] = go(message, place)
        found[j] = message
    with np.errstate(divide="ignore"):  # the log of zero
        log_found = found if logs else np.log(found)
        log_scale = scale if logs else np.log(scale)
    out = np.empty((k, n_rows, n))
    out[..., 0] = first
    flat = log_found.transpose(1, 2, 3, 0).reshape(k, n_rows, -1)
    out[..., 1:] = flat[..., :steps]
    scales = log_scale.transpose(1, 2, 0).reshape(n_rows, -1)[:, :steps]
    whole = _log_sum(first) + scales.sum(axis=1) + top.sum(axis=1)
    return out, whole


def _in_probabilities(pair: FloatArray) -> Move:
    forward = np.exp(pair).T

    def move(message: FloatArray) -> FloatArray:
        flat: FloatArray = forward @ message.reshape(len(message), -1)
        return flat.reshape(message.shape)

    return move


def _in_logs(pair: FloatArray) -> Move:
    def move(message: FloatArray) -> FloatArray:
        flat = message.reshape(len(message), 1, -1) + pair[:, :, None]
        return _log_sum(flat).reshape(message.shape)

    return move


def _sum(values: FloatArray, axis: int = 0) -> FloatArray:
    total: FloatArray = values.sum(axis=axis)
    return total


def _log_sum(logs: FloatArray, axis: int = 0) -> FloatArray:
    top = np.maximum(logs.max(axis=axis, keepdims=True), -1e300)
    with np.errstate(divide="ignore"):  # the log of zero
        total: FloatArray = np.log(np.exp(logs - top).sum(axis=axis))
    total += top.squeeze(axis)
    return total


def smooth(sites: FloatArray, pair: FloatArray, levels: FloatArray) -> Smoothed:
    """Smooth chains, given the factors that the probability of a path is made of.

    Parameters
    ----------
    sites : ndarray of shape (n_states, n_rows, n)
        Logs of the factors of the states at each position; each row is a chain.
    pair : ndarray of shape (n_states, n_states)
        Logs of the factors of a step from one state (rows) to another; all finite.
    levels : ndarray of shape (n_states,)
        What a state stands for.
    """
    k, n_rows, n = sites.shape
    logs = bool(pair.min() < _IMPROBABLE)
    with one_blas_thread():
        forward, total = messages(sites, pair, logs)
        backward, _ = messages(sites[..., ::-1], pair.T, logs)
    backward = backward[..., ::-1]
    weights, pairs = np.empty((k, n_rows, n)), np.zeros((k, k))
    products = np.empty((n_rows, n - 1))
    size = max(1, sizes.chain_steps // n_rows)
    for left in range(0, n - 1, size):
        part = slice(left, min(left + size, n - 1))
        after = slice(part.start + 1, part.stop + 1)
        # Of both states at once, given all.
        joint = pair[:, :, None, None] + forward[:, None, :, part]
        joint += backward[None, :, :, after]
        joint -= joint.max(axis=(0, 1))
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=(0, 1))
        weights[..., part] = joint.sum(axis=1)
        weights[..., after.stop - 1] = joint[..., -1].sum(axis=0)
        pairs += joint.sum(axis=(2, 3))
        products[:, part] = np.einsum("a,abcj,b->cj", levels, joint, levels)
    return Smoothed(np.moveaxis(weights, 0, 2), pairs, float(total.sum()), products)
