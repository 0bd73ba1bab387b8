"""The discrete prior and its posterior, against arithmetic of fifty digits."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ebda.priors import DiscretePrior
from ebda.sizes import override, sizes
from profiles import examples

SUMMARIES = ("mean", "prob_zero", "sd", "lfsr")
PRIOR = DiscretePrior([-3.0, 0.0, 0.5, 4.0], [0.1, 0.6, 0.2, 0.1])


@dataclass
class Exact:
    """Posterior of one value, rounded to float at the very end."""

    mean: float
    prob_zero: float
    sd: float
    lfsr: float
    logpdf: float
    weights: list[Decimal]


def exact_posterior(prior: DiscretePrior, z: float, scale: float = 1.0) -> Exact:
    with localcontext() as context:
        context.prec = 50
        atoms = [Decimal(a) for a in prior.atoms.tolist()]
        masses = [Decimal(w) for w in prior.weights.tolist()]
        s = Decimal(scale)
        logs = [
            w.ln() - ((Decimal(z) - a) / s) ** 2 / 2
            for a, w in zip(atoms, masses, strict=True)
        ]
        top = max(logs)
        weights = [(x - top).exp() for x in logs]
        total = sum(weights, Decimal(0))
        weights = [w / total for w in weights]
        pairs = list(zip(atoms, weights, strict=True))
        mean = sum(a * w for a, w in pairs)
        spread = sum(w * (a - mean) ** 2 for a, w in pairs)
        return Exact(
            mean=float(mean),
            prob_zero=float(sum(w for a, w in pairs if a == 0)),
            sd=float(Decimal(spread).sqrt()),
            lfsr=float(
                min(
                    sum(w for a, w in pairs if a <= 0),
                    sum(w for a, w in pairs if a >= 0),
                )
            ),
            logpdf=float(top + total.ln() - s.ln()) - math.log(2 * math.pi) / 2,
            weights=weights,
        )


def assert_exact(
    prior: DiscretePrior, z: float, scale: float = 1.0, rtol: float = 1e-12
) -> None:
    want, got = exact_posterior(prior, z, scale), prior.posterior(z, scale)
    for name in SUMMARIES:
        # Below the smallest normal number, digits are lost.
        expected = pytest.approx(getattr(want, name), rel=rtol, abs=1e-300)
        assert getattr(got, name) == expected, name
    np.testing.assert_allclose(prior.logpdf(z, scale), want.logpdf, rtol=rtol)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_moderate_values_agree_with_normal_densities(scale: float) -> None:
    z = np.linspace(-6.0, 6.0, 25)
    got = PRIOR.posterior(z, scale)
    for i, x in enumerate(z):
        joint = PRIOR.weights * stats.norm.pdf(x, PRIOR.atoms, scale)
        density = math.fsum(joint)
        mean = math.fsum(joint * PRIOR.atoms) / density
        variance = math.fsum(joint * (PRIOR.atoms - mean) ** 2) / density
        assert got.mean[i] == pytest.approx(mean, rel=1e-11, abs=1e-14)
        assert got.prob_zero[i] == pytest.approx(joint[1] / density, rel=1e-12)
        assert got.sd[i] == pytest.approx(math.sqrt(variance), rel=1e-12)
        wrong = min(math.fsum(joint[:2]), math.fsum(joint[1:])) / density
        assert got.lfsr[i] == pytest.approx(wrong, rel=1e-12)
        assert PRIOR.logpdf(x, scale) == pytest.approx(math.log(density), rel=1e-12)


@pytest.mark.parametrize("z", [-1e6, -1e3, -40.0, 0.0, 1e-9, 27.3, 1e3, 1e6])
@pytest.mark.parametrize("scale", [0.7, 1.0, 1e3])
def test_far_values_agree_with_fifty_digits(z: float, scale: float) -> None:
    assert_exact(PRIOR, z, scale, rtol=1e-10)


@pytest.mark.parametrize(
    ("atoms", "z"),
    [
        ([3.0, 3.000001, 2.999999], 1e6),
        ([3.0, 3.000001, 2.999999], -1e6),
        ([0.0, 1e-6, -1e-6], 1e6),
        ([0.0, 1e-5], -1e6),
        ([1e6, 1e6 + 0.25, 1e6 - 1.5], 1e6),
        ([1e6, 1e6 + 2.0**-20, 0.0], 1e6 + 3.0),
        ([-1e6, -1e6 + 0.5, 1e6], -1e6 + 0.3),
        ([1e6, 1e6 + 1e-5], -1e6),
        ([2.0, 2.0 + 1e-13, 2.0 - 1e-13], 2.0),
        ([2.0, 2.5], 2.25),
    ],
)
def test_atoms_close_to_each_other_and_far_from_zero(
    atoms: list[float], z: float
) -> None:
    prior = DiscretePrior(atoms, np.arange(1.0, len(atoms) + 1))
    want, got = exact_posterior(prior, z), prior.posterior(z)
    # The spread has the digits that the mean leaves: those of the atoms.
    room = 4e-16 * np.abs(prior.atoms).max()
    assert got.sd == pytest.approx(want.sd, rel=1e-6, abs=room)
    assert got.mean == pytest.approx(want.mean, rel=1e-14)
    assert got.prob_zero == pytest.approx(want.prob_zero, rel=1e-8, abs=1e-300)
    assert prior.logpdf(z) == pytest.approx(want.logpdf, rel=1e-14)


def test_weights_that_outweigh_the_distance() -> None:
    prior = DiscretePrior([0.0, 20.0, 40.0], [1.0, 1e-100, 1e-290])
    for z in (0.0, 11.0, 30.0, 45.0):
        assert_exact(prior, z)


def test_scales_differ_by_observation() -> None:
    z = np.array([-2.0, 0.0, 3.0])
    scale = np.array([0.3, 1.0, 40.0])
    got = PRIOR.posterior(z, scale)
    for i in range(3):
        alone = PRIOR.posterior(z[i], scale[i])
        for name in SUMMARIES:
            assert getattr(got, name)[i] == pytest.approx(getattr(alone, name), 1e-14)
        logpdf = PRIOR.logpdf(z[i], scale[i])
        assert PRIOR.logpdf(z, scale)[i] == pytest.approx(logpdf, 1e-14)
        assert_exact(PRIOR, z[i], scale[i])


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (3, 0), (1, 2, 3)])
def test_summaries_keep_the_shape_of_the_values(shape: tuple[int, ...]) -> None:
    z = np.linspace(-3.0, 5.0, math.prod(shape)).reshape(shape)
    got, flat = PRIOR.posterior(z), PRIOR.posterior(z.ravel())
    for name in SUMMARIES:
        assert getattr(got, name).shape == shape
        np.testing.assert_array_equal(getattr(got, name).ravel(), getattr(flat, name))
    assert got.interval()[0].shape == got.interval()[1].shape == shape
    assert np.shape(PRIOR.logpdf(z)) == shape
    np.testing.assert_array_equal(np.ravel(PRIOR.logpdf(z)), PRIOR.logpdf(z.ravel()))


def test_a_transposed_matrix_keeps_values_and_scales_together() -> None:
    z = np.arange(6.0).reshape(2, 3)
    scale = 1 + z / 10
    want = PRIOR.posterior(z, scale).mean
    np.testing.assert_array_equal(PRIOR.posterior(z.T, scale.T).mean, want.T)


@pytest.mark.parametrize("factor", [1e-6, 0.3, 1e5, -2.0])
def test_everything_scales_with_the_unit(factor: float) -> None:
    z = np.linspace(-5.0, 6.0, 13)
    want = PRIOR.posterior(z, 0.8)
    size = abs(factor)
    prior = PRIOR.rescale(factor)
    got = prior.posterior(factor * z, 0.8 * size)
    np.testing.assert_allclose(got.mean, factor * want.mean, rtol=1e-11)
    np.testing.assert_allclose(got.sd, size * want.sd, rtol=1e-11)
    np.testing.assert_allclose(got.prob_zero, want.prob_zero, rtol=1e-11)
    np.testing.assert_allclose(got.lfsr, want.lfsr, rtol=1e-11)
    ends = [factor * end for end in want.interval()]
    np.testing.assert_allclose(got.interval(), ends if factor > 0 else ends[::-1])
    logpdf = prior.logpdf(factor * z, 0.8 * size)
    np.testing.assert_allclose(logpdf, PRIOR.logpdf(z, 0.8) - np.log(size), rtol=1e-11)


@pytest.mark.parametrize("atom", [0.0, 2.5, -1e6])
def test_a_single_atom_is_certain(atom: float) -> None:
    z = np.array([-1e6, -1.0, 0.0, 2.5, 1e6])
    got = DiscretePrior([atom], [7.0]).posterior(z)
    np.testing.assert_array_equal(got.mean, atom)
    np.testing.assert_array_equal(got.sd, 0.0)
    np.testing.assert_array_equal(got.prob_zero, float(atom == 0))
    np.testing.assert_array_equal(got.lfsr, float(atom == 0))
    np.testing.assert_array_equal(got.interval(0.5), atom)
    np.testing.assert_allclose(
        DiscretePrior([atom], [7.0]).logpdf(z), stats.norm.logpdf(z, atom), rtol=1e-14
    )


@pytest.mark.parametrize("elements", [1, 9, 4 * 7])
def test_blocks_of_any_size_agree(elements: int) -> None:
    z = np.linspace(-8.0, 8.0, 45).reshape(9, 5)
    scale = np.linspace(0.5, 3.0, 45).reshape(9, 5)

    def everything() -> np.ndarray:
        posterior = PRIOR.posterior(z, scale)
        summaries = [getattr(posterior, name) for name in SUMMARIES]
        return np.stack([*summaries, *posterior.interval(), PRIOR.logpdf(z, scale)])

    want = everything()
    with override(posterior_elements=elements):
        np.testing.assert_allclose(everything(), want, rtol=1e-13, atol=1e-15)


def test_more_values_than_a_default_block() -> None:
    n = sizes.posterior_elements // 2 + 3
    z = np.linspace(-5.0, 5.0, n)
    prior = DiscretePrior([-1.0, 1.0], [1.0, 1.0])
    np.testing.assert_allclose(prior.posterior(z).mean, np.tanh(z), rtol=1e-9)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.8, 0.95, 1 - 1e-9])
@pytest.mark.parametrize("z", [-1e6, -3.0, 0.2, 1.5, 3.7])
def test_the_interval_holds_its_level_between_quantiles(level: float, z: float) -> None:
    prior = DiscretePrior(np.arange(-6.0, 7.0) / 2, np.arange(1.0, 14.0))
    weights = exact_posterior(prior, z).weights
    lower, upper = prior.posterior(z).interval(level)
    tail = (1 - level) / 2
    below = np.array([float(sum(weights[: i + 1])) for i in range(13)])
    above = np.array([float(sum(weights[i:])) for i in range(13)])
    assert lower == prior.atoms[below > tail].min()
    assert upper == prior.atoms[above > tail].max()
    inside = (prior.atoms >= lower) & (prior.atoms <= upper)
    assert float(sum(np.array(weights)[inside])) >= level - 1e-12


def test_both_tails_of_the_interval_count_what_is_lost_next_to_one() -> None:
    ulp = 2.0**-53
    prior = DiscretePrior([0, 1, 2, 3, 4], [1, *[0.4 * ulp] * 4])
    level = 1 - 2 * ulp  # a tail of one ulp: more than two of the small atoms
    # Noise so wide that the posterior is the prior.
    assert prior.posterior(0.0, 1e9).interval(level) == (0.0, 2.0)
    assert prior.rescale(-1.0).posterior(0.0, 1e9).interval(level) == (-2.0, 0.0)


def test_the_average_is_the_mixture_in_equal_parts() -> None:
    parts = [DiscretePrior([0, 1], [1, 3]), DiscretePrior([-2, 0], [1, 1])]
    got = DiscretePrior.average(iter(parts))
    np.testing.assert_array_equal(got.atoms, [-2.0, 0.0, 1.0])
    np.testing.assert_allclose(got.weights, [0.25, 0.375, 0.375])
    densities = [np.exp(part.logpdf(0.7)) for part in parts]
    assert np.exp(got.logpdf(0.7)) == pytest.approx(np.mean(densities))


def test_atoms_are_sorted_merged_and_normalised() -> None:
    prior = DiscretePrior([3, 0.0, -1, 3, -0.0, 9], [1, 2, 4, 2, 1, 0])
    np.testing.assert_array_equal(prior.atoms, [-1.0, 0.0, 3.0])
    np.testing.assert_allclose(prior.weights, [0.4, 0.3, 0.3])
    assert not np.signbit(DiscretePrior([-0.0], [1.0]).atoms[0])
    assert prior.pi0 == pytest.approx(0.3)
    assert DiscretePrior([1.0, 2.0], [1.0, 1.0]).pi0 == 0.0


def test_equal_priors_are_equal_whatever_the_order() -> None:
    assert DiscretePrior([1, 0], [1, 3]) == DiscretePrior([0, 1], [0.75, 0.25])
    assert DiscretePrior([1, 0], [1, 3]) != DiscretePrior([1, 0], [3, 1])
    assert DiscretePrior([1, 0], [1, 3]) != DiscretePrior([2, 0], [1, 3])
    assert DiscretePrior([1], [1]) != "a prior"


@pytest.mark.parametrize(
    "again",
    [
        lambda prior: prior,
        lambda prior: pickle.loads(pickle.dumps(prior)),
        copy.deepcopy,
        copy.copy,
    ],
    ids=["new", "pickle", "deepcopy", "copy"],
)
def test_a_prior_never_changes(again: Callable[[DiscretePrior], DiscretePrior]) -> None:
    prior = again(DiscretePrior([0, 3], [9, 1]))
    assert prior == DiscretePrior([0, 3], [9, 1])
    for name in ("atoms", "weights"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(prior, name)[0] = 5.0
        with pytest.raises(FrozenInstanceError):
            setattr(prior, name, np.zeros(2))


def test_a_prior_does_not_follow_the_arrays_it_was_made_of() -> None:
    atoms, weights = np.array([0.0, 1.0]), np.array([0.5, 0.5])
    prior = DiscretePrior(atoms, weights)
    atoms[0], weights[0] = 9.0, 9.0
    assert prior == DiscretePrior([0, 1], [1, 1])


@pytest.mark.parametrize(
    ("atoms", "weights", "message"),
    [
        ([], [], "at least one each"),
        ([0, 1], [1], r"shapes \(2,\) and \(1,\)"),
        ([[0, 1]], [[1, 1]], "vectors of one length"),
        ([0, np.nan], [1, 1], "atoms must be finite"),
        ([0, np.inf], [1, 1], "atoms must be finite"),
        ([0, 1], [1, -1e-9], "weights must be finite, non-negative"),
        ([0, 1], [1, np.nan], "weights must be finite"),
        ([0, 1], [0, 0], "not all zero"),
    ],
)
def test_bad_priors_are_refused(
    atoms: list[float], weights: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DiscretePrior(atoms, weights)


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0]])
def test_bad_scales_are_refused(scale: float | list[float]) -> None:
    for function in (PRIOR.posterior, PRIOR.logpdf):
        with pytest.raises(ValueError, match="scale must be positive and finite"):
            function([1.0, 2.0], scale)


def test_scales_of_another_shape_are_refused() -> None:
    want = r"scale has shape \(3,\), which does not fit values of shape \(2,\)"
    for function in (PRIOR.posterior, PRIOR.logpdf):
        with pytest.raises(ValueError, match=want):
            function([1.0, 2.0], [1.0, 1.0, 1.0])


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 95, np.nan])
def test_bad_levels_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        PRIOR.posterior(0.0).interval(level)


def test_no_priors_have_no_average() -> None:
    with pytest.raises(ValueError, match="cannot average no priors"):
        DiscretePrior.average([])


def priors(bound: float = 20.0) -> st.SearchStrategy[DiscretePrior]:
    atom = st.floats(-bound, bound) | st.just(0.0)
    pairs = st.tuples(atom, st.floats(1e-3, 1.0))
    return st.lists(pairs, min_size=1, max_size=8).map(
        lambda pairs: DiscretePrior(*zip(*pairs, strict=True))
    )


@examples(50)
@given(
    prior=priors(), z=st.floats(-1e6, 1e6) | st.floats(-25, 25), s=st.floats(0.05, 50)
)
def test_any_posterior_agrees_with_fifty_digits(
    prior: DiscretePrior, z: float, s: float
) -> None:
    want, got = exact_posterior(prior, z, s), prior.posterior(z, s)
    room = 1e-14 * np.abs(prior.atoms).max()
    # An exponent of size e is known to e units in the last place, and one beyond
    # 700 leaves no weight.
    assert got.mean == pytest.approx(want.mean, rel=1e-9, abs=1e-9)
    assert got.sd == pytest.approx(want.sd, rel=1e-5, abs=room + 1e-150)
    assert got.prob_zero == pytest.approx(want.prob_zero, rel=1e-9, abs=1e-300)
    assert got.lfsr == pytest.approx(want.lfsr, rel=1e-9, abs=1e-300)
    assert prior.logpdf(z, s) == pytest.approx(want.logpdf, rel=1e-12, abs=1e-12)


@examples(50)
@given(
    prior=priors(),
    z=st.lists(st.floats(-1e6, 1e6) | st.floats(-25, 25), min_size=2, max_size=9),
    s=st.floats(0.05, 50),
)
def test_summaries_stay_in_range_and_the_mean_rises_with_z(
    prior: DiscretePrior, z: list[float], s: float
) -> None:
    got = prior.posterior(np.sort(z), s)
    room = 1e-13 * np.abs(prior.atoms).max()
    assert (np.diff(got.mean) >= -room).all()
    assert (got.mean >= prior.atoms[0] - room).all()
    assert (got.mean <= prior.atoms[-1] + room).all()
    assert ((got.prob_zero >= 0) & (got.prob_zero <= 1)).all()
    assert ((got.lfsr >= 0) & (got.lfsr <= 1)).all()
    assert (got.lfsr >= got.prob_zero * (1 - 1e-12)).all()
    assert (got.sd <= (prior.atoms[-1] - prior.atoms[0]) / 2 + room).all()
    lower, upper = got.interval(0.9)
    assert (lower <= upper).all()
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) >= 0).all()
    assert np.isin(np.stack([lower, upper]), prior.atoms).all()


@examples(30)
@given(prior=priors(), s=st.floats(0.5, 3.0))
def test_posteriors_average_to_the_prior(prior: DiscretePrior, s: float) -> None:
    z = np.arange(-60.0, 60.0, 0.05)  # the trapezium rule is exact to rounding here
    mass = np.exp(prior.logpdf(z, s)) * 0.05
    got = prior.posterior(z, s)
    second = prior.weights @ prior.atoms**2
    assert mass.sum() == pytest.approx(1.0, abs=1e-10)
    assert mass @ got.mean == pytest.approx(prior.weights @ prior.atoms, abs=1e-9)
    assert mass @ got.prob_zero == pytest.approx(prior.pi0, abs=1e-10)
    assert mass @ (got.mean**2 + got.sd**2) == pytest.approx(second, rel=1e-9, abs=1e-9)


@examples(50)
@given(prior=priors(bound=6.0), z=st.floats(-9, 9), s=st.floats(0.5, 3.0))
def test_the_mean_is_the_formula_of_tweedie(
    prior: DiscretePrior, z: float, s: float
) -> None:
    step = 1e-4
    slope = (prior.logpdf(z + step, s) - prior.logpdf(z - step, s)) / (2 * step)
    assert prior.posterior(z, s).mean == pytest.approx(z + s * s * slope, abs=1e-4)
