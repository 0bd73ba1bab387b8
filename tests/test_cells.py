"""Counting values in cells, and their range: with NumPy and with compiled loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebda.kernels import loops
from ebda.kernels.cells import CellSums, cell_sums, round_to_steps
from ebda.kernels.extremes import minmax
from ebda.kernels.threads import allow_threads
from ebda.priors.cells import group
from ebda.sizes import override

SETTINGS = 2.0**-24, 0.02, 10.0, 1003
NEVER = 1 << 40


def values(n: int = 5000) -> np.ndarray:
    z = 3 * np.random.default_rng(0).normal(size=n)
    z[:4] = 10.0, -10.0, 0.0, 1e6
    return z


def assert_same_sums(got: CellSums, want: CellSums) -> None:
    for name in CellSums._fields:
        np.testing.assert_array_equal(
            getattr(got, name), getattr(want, name), err_msg=name
        )


def test_sums_are_those_of_a_histogram() -> None:
    z = values()
    step, width, farthest, size = SETTINGS
    sums = cell_sums(z, *SETTINGS)
    x = round_to_steps(z, step)
    near = x[np.abs(x) <= farthest]
    cell = np.floor(near / width)
    excess = near / step - np.rint(cell * width / step)
    place = cell.astype(int) + size // 2
    np.testing.assert_array_equal(sums.counts, np.bincount(place, minlength=size))
    np.testing.assert_array_equal(sums.excess, np.bincount(place, excess, size))
    assert sums.squares == (excess**2).sum()
    np.testing.assert_array_equal(sums.beyond, x[np.abs(x) > farthest])
    assert 1e6 in sums.beyond
    assert not len(cell_sums(z[np.abs(z) < 9], *SETTINGS).beyond)


@pytest.mark.parametrize("block", [1, 17, 4999, 5000])
def test_blocks_threads_and_loops_change_nothing(block: int) -> None:
    z = values()
    want = cell_sums(z, *SETTINGS)
    with override(block_features=block):
        assert_same_sums(cell_sums(z, *SETTINGS), want)
    for threads in (1, 2):
        with (
            override(compiled_features=1, threaded_features=block + 500),
            allow_threads(threads),
        ):
            assert_same_sums(cell_sums(z, *SETTINGS), want)


def test_the_loops_without_a_compiler() -> None:
    z = values(3000)
    want = cell_sums(z, *SETTINGS)
    found, squares, n_beyond = loops.cell_sums(z, *SETTINGS, 0, len(z))
    np.testing.assert_array_equal(found, [want.counts, want.excess])
    assert (squares, n_beyond) == (want.squares, len(want.beyond))


@given(
    z=st.lists(st.floats(-1e4, 1e4) | st.floats(-12, 12), min_size=1, max_size=40),
    seed=st.integers(0, 9),
)
def test_cells_are_the_same_in_any_order_with_or_without_loops(
    z: list[float], seed: int
) -> None:
    values = np.array(z)
    scale = np.broadcast_to(1.0, values.shape)
    with override(binned_values=1, compiled_features=1):
        compiled = group(np.random.default_rng(seed).permutation(values), scale)
    with override(binned_values=1, compiled_features=NEVER):
        plain = group(values, scale)
    for name in ("value", "count", "precision", "within"):
        np.testing.assert_array_equal(
            getattr(compiled, name), getattr(plain, name), err_msg=name
        )
    assert plain.count.sum() == len(values)
    assert (np.diff(plain.value) > 0).all()
    np.testing.assert_allclose(
        plain.count @ plain.value, values.sum(), rtol=1e-6, atol=1e-5
    )


@given(st.lists(st.floats(width=64), min_size=1, max_size=30))
def test_minmax_is_that_of_numpy(values: list[float]) -> None:
    z = np.array(values)
    with override(block_features=4):
        np.testing.assert_array_equal(minmax(z), (z.min(), z.max()))


def test_minmax_is_that_of_all_blocks() -> None:
    z = np.arange(10.0)
    with override(block_features=3):
        for shift in range(10):
            assert minmax(np.roll(z, shift)) == (0.0, 9.0)
        assert np.isnan(minmax(np.array([1.0, 2.0, 3.0, np.nan, 0.0]))).all()


def test_minmax_of_values_that_are_apart_in_memory() -> None:
    z = np.arange(10.0)
    assert minmax(z[::-3]) == (0.0, 9.0)
