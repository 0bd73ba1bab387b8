"""Tables of cubics, and posteriors looked up in them: as exact as stated."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from ebda.kernels import loops
from ebda.kernels.hermite import Table, evaluate_cubics, hermite_coefficients
from ebda.priors import DirichletProcess, DiscretePrior
from ebda.sizes import override, sizes

# What the module states: error in units of the noise, for priors of real data.
STATED = 1e-8
SUMMARIES = ("mean", "prob_zero", "sd")


@pytest.fixture
def eager() -> Iterator[None]:
    """A table for any number of values."""
    with override(tabulated_values=1):
        yield


def priors() -> dict[str, DiscretePrior]:
    rng = np.random.default_rng(0)
    z = rng.normal(size=20_000)
    z[:900] += rng.normal(scale=2.5, size=900)
    z[900:1200] += 4
    many = np.sort(rng.normal(scale=3, size=19))
    return {
        "null": DiscretePrior([0.0], [1.0]),
        "two": DiscretePrior([0.0, 4.0], [0.95, 0.05]),
        "rare": DiscretePrior([-6.0, 0.0, 5.0], [1e-6, 1 - 2e-6, 1e-6]),
        "close": DiscretePrior([-0.02, 0.0, 0.01], [0.3, 0.4, 0.3]),
        "no zero": DiscretePrior([-1.0, 2.0], [0.5, 0.5]),
        "many": DiscretePrior(np.append(0.0, many), np.append(0.6, np.full(19, 0.02))),
        "fitted": DirichletProcess().fit(z).prior_,
    }


def exact(prior: DiscretePrior, z: np.ndarray, scale: float) -> dict[str, np.ndarray]:
    """By Bayes' formula, from logarithms, all atoms at once."""
    log_w = np.log(prior.weights) - 0.5 * ((z[:, None] - prior.atoms) / scale) ** 2
    w = np.exp(log_w - log_w.max(axis=1, keepdims=True))
    w /= w.sum(axis=1, keepdims=True)
    mean = w @ prior.atoms
    variance = np.einsum("kt,kt->k", w, (prior.atoms - mean[:, None]) ** 2)
    return {
        "mean": mean,
        "prob_zero": w @ (prior.atoms == 0).astype(float),
        "sd": np.sqrt(variance),
    }


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("name", priors())
@pytest.mark.parametrize("scale", [1.0, 0.3, 20.0])
def test_the_table_is_as_exact_as_stated(name: str, scale: float) -> None:
    prior = priors()[name].rescale(scale)
    z = scale * np.random.default_rng(1).uniform(-12, 12, 20_000)
    posterior = prior.posterior(z, scale)
    want = exact(prior, z, scale)
    assert posterior.is_tabulated
    np.testing.assert_allclose(posterior.mean, want["mean"], atol=STATED * scale)
    np.testing.assert_allclose(posterior.prob_zero, want["prob_zero"], atol=STATED)
    # Of the square, so that the error near sd = 0 is the root of it.
    np.testing.assert_allclose(
        posterior.sd**2, want["sd"] ** 2, atol=20 * STATED * scale**2
    )
    assert posterior.prob_zero.min() >= 0
    assert posterior.prob_zero.max() <= 1
    # It is a table: the exact formula gives other last digits.
    assert len(prior.atoms) == 1 or (posterior.mean != want["mean"]).any()


@pytest.mark.usefixtures("eager")
def test_values_far_out_are_as_exact() -> None:
    prior = DiscretePrior([0.0, 900.0, 1000.0], [0.9, 0.05, 0.05])
    z = np.linspace(-1000, 1100, 5001)
    got = prior.posterior(z)
    want = exact(prior, z, 1.0)
    assert got.is_tabulated
    # A step of 1000 in mean over a hundredth of the noise: relative to the atoms.
    np.testing.assert_allclose(got.mean, want["mean"], atol=0.2)
    away = np.abs(z - 450) > 2
    away &= np.abs(z - 950) > 2
    np.testing.assert_allclose(got.mean[away], want["mean"][away], atol=1e-9)


def test_few_values_are_exact() -> None:
    prior = priors()["many"]
    z = np.random.default_rng(2).normal(size=500)
    posterior = prior.posterior(z)
    assert not posterior.is_tabulated
    want = exact(prior, z, 1.0)
    for name in SUMMARIES:
        np.testing.assert_allclose(getattr(posterior, name), want[name], atol=1e-13)


def test_a_table_is_for_many_values_of_one_scale() -> None:
    prior = priors()["two"]
    z = np.linspace(-3, 5, 100)

    def tabulated(z: np.ndarray, scale: float | np.ndarray = 1.0) -> bool:
        return prior.posterior(z, scale).is_tabulated

    with override(tabulated_values=100):
        assert tabulated(z)
        assert tabulated(z.reshape(4, 25))
        assert not tabulated(z[:-1])  # few
        assert tabulated(z, np.ones(100))  # as a model file brings it back
        assert not tabulated(z, np.linspace(1, 2, 100))  # a scale each
        wide = np.append(z[:-1], 1e6)
        assert not tabulated(wide)  # too wide for the nodes
        assert tabulated(wide, 1e4)
    assert not tabulated(z)
    assert tabulated(np.zeros(sizes.tabulated_values))


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("kind", ["wide", "mixed"])
def test_wide_ranges_and_mixed_scales_fall_back_to_the_exact_formula(
    kind: str,
) -> None:
    prior = priors()["two"]
    rng = np.random.default_rng(3)
    z = rng.normal(size=400)
    scale = np.ones(400) if kind == "wide" else rng.uniform(0.5, 2, 400)
    if kind == "wide":
        z[0] = 1e7
    posterior = prior.posterior(z, 1.0 if kind == "wide" else scale)
    assert not posterior.is_tabulated
    for s in np.unique(scale):
        of_it = scale == s
        want = exact(prior, z[of_it], s)
        for name in SUMMARIES:
            np.testing.assert_allclose(
                getattr(posterior, name)[of_it], want[name], atol=1e-12
            )


@pytest.mark.usefixtures("eager")
def test_rows_keep_their_shape() -> None:
    prior = priors()["two"]
    z = np.random.default_rng(4).normal(size=(3, 200))
    got = prior.posterior(z)
    assert got.mean.shape == got.sd.shape == got.prob_zero.shape == (3, 200)
    for name in SUMMARIES:  # a look-up does not depend on the other values
        part = getattr(got, name)[:, 50:90]
        some = prior.posterior(np.clip(z, z[:, 50:90].min(), None)[:, 50:90])
        np.testing.assert_allclose(getattr(some, name), part, atol=1e-8, err_msg=name)
    np.testing.assert_allclose(got.mean.ravel(), exact(prior, z.ravel(), 1.0)["mean"])


def test_cubics_pass_through_a_cubic() -> None:
    z = np.random.default_rng(5).uniform(-2, 3, 1000)
    cubic = Table.of(lambda x: (x**3 - 2 * x, 3 * x**2 - 2), 0.7, z.min(), z.max())
    np.testing.assert_allclose(cubic.at(z), z**3 - 2 * z, atol=1e-12)


def test_the_ends_may_be_nodes_or_equal() -> None:
    z = np.array([-1.0, 0.0, 1.0])
    for values in (z, np.zeros(3), np.full(3, 1 / 128)):
        sine = Table.of(
            lambda x: (np.sin(x), np.cos(x)), 1.0, values.min(), values.max()
        )
        np.testing.assert_allclose(sine.at(values), np.sin(values), atol=1e-14)


def test_the_error_falls_with_the_fourth_power_of_the_step() -> None:
    """As of Hermite's cubics: h^4 / 384 of the fourth derivative."""
    z = np.linspace(0, 3, 4001)
    error = [
        np.abs(
            Table.of(lambda x: (np.sin(x), np.cos(x)), s, 0.0, 3.0).at(z) - np.sin(z)
        ).max()
        for s in (32.0, 16.0)
    ]
    assert error[0] / error[1] == pytest.approx(16, rel=0.1)
    assert error[0] == pytest.approx(0.25**4 / 384, rel=0.1)


def test_rows_of_nodes_are_tables_of_their_own() -> None:
    x = np.linspace(0, 3, 7) + np.array([[0.0], [10.0]])
    coefficients = hermite_coefficients(np.sin(x), 0.5 * np.cos(x))
    assert coefficients.shape == (4, 2, 6)
    t = np.linspace(0, 1, 5)
    for row in range(2):
        got = evaluate_cubics(coefficients[:, row], np.full(5, 3), t)
        np.testing.assert_allclose(got, np.sin(x[row, 3] + 0.5 * t), atol=3e-4)
        np.testing.assert_array_equal(
            coefficients[:, row],
            hermite_coefficients(np.sin(x[row]), 0.5 * np.cos(x[row])),
        )


def sine_table() -> Table:
    return Table.of(lambda x: (np.sin(x), np.cos(x)), 1.0, -2.0, 3.0)


def test_the_compiled_loop_is_the_table() -> None:
    table, z = sine_table(), np.random.default_rng(6).uniform(-3, 4, 3000)
    want = table.at(z)
    with override(compiled_features=1):
        np.testing.assert_allclose(table.at(z), want, rtol=1e-12)
        np.testing.assert_array_equal(table.at(z), table.at(z))
    got = np.empty_like(z)  # and the same lines without a compiler
    loops.cubics(z, table.step, table.first, table.coefficients, got, 0, len(z))
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_blocks_of_any_size_give_the_same_bits() -> None:
    table, z = sine_table(), np.linspace(-3, 4, 1000)
    want = table.at(z)
    with override(block_features=7):
        np.testing.assert_array_equal(table.at(z), want)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("compiled_features", [1, 1 << 40])
def test_values_that_moved_after_the_table_was_made_stay_inside(
    compiled_features: int,
) -> None:
    z = np.linspace(-3, 3, 2000)
    prior = DiscretePrior([0.0, 2.0], [0.5, 0.5])
    with override(compiled_features=compiled_features):
        want = prior.posterior(z.copy()).mean
        posterior = prior.posterior(z)
        z *= 1e9
        got = posterior.mean
    np.testing.assert_allclose(got[[0, -1]], want[[0, -1]], atol=0.05)
    assert np.isfinite(got).all()


# What is kept


@pytest.mark.usefixtures("eager")
def test_summaries_of_many_values_are_new_arrays() -> None:
    posterior = priors()["two"].posterior(np.linspace(-5, 5, 300))
    for name in SUMMARIES:
        first = getattr(posterior, name)
        want = first.copy()
        first[:] = -7.0
        np.testing.assert_array_equal(getattr(posterior, name), want, err_msg=name)


def test_summaries_of_few_values_are_kept() -> None:
    posterior = priors()["two"].posterior(np.linspace(-5, 5, 300))
    for name in (*SUMMARIES, "lfsr"):
        assert getattr(posterior, name) is getattr(posterior, name)


@pytest.mark.parametrize("tabulated_values", [1, 1000])
def test_a_pickled_posterior_has_its_fields_and_no_more(tabulated_values: int) -> None:
    z = np.linspace(-5, 5, 300)
    with override(tabulated_values=tabulated_values):
        posterior = priors()["two"].posterior(z)
        fresh = pickle.dumps(posterior)
        want = {name: getattr(posterior, name) for name in SUMMARIES}
        used = pickle.dumps(posterior)
        assert len(used) == len(fresh)
        again = pickle.loads(used)
        assert again.is_tabulated == posterior.is_tabulated
        for name in SUMMARIES:
            np.testing.assert_array_equal(getattr(again, name), want[name])


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_with_their_place(bad: float) -> None:
    z = np.zeros(10)
    z[7] = bad
    with pytest.raises(ValueError, match="at position 7"):
        DiscretePrior([0.0], [1.0]).posterior(z)
