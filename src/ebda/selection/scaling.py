"""The data with a scale for each sample, and whether it is worth to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ebda.covariance import Summary
from ebda.covariance.sample_scale import SampleScale
from ebda.covariance.scales import may_differ, measure
from ebda.kernels.lengths import lengths
from ebda.moments import VARIANCES, ClassMoments
from ebda.selection.candidates import Recipe
from ebda.selection.folds import distinct
from ebda.sizes import sizes
from ebda.typing import FloatArray

# From how scales are measured to the weighted moments of all samples, and the precision
# of those that are looked at again.
WeighAll = Callable[[SampleScale], tuple[ClassMoments, FloatArray]]
# Rounds of scales, and the means and variances that they are measured with.
_ROUNDS = 3


def seem_to_differ(recipe: Recipe, data: Summary) -> bool:
    """Whether scales differ by more than chance, and weights promise enough.

    Most often the lengths of the residuals alone say no.

    Parameters
    ----------
    recipe : Recipe
        How variances are estimated.
    data : Summary
        The data, or those of its features that rules are compared on.
    """
    return may_differ(data) and measure(_some(data), _by_class(recipe)).is_worthwhile


def _some(data: Summary) -> Summary:
    """The data with few enough samples to measure scales on."""
    samples = data.samples
    assert samples is not None
    if len(samples) <= sizes.scaled_samples:
        return data
    # Equal samples go together, and their order does not matter.
    _, place = distinct(data.key, float(np.abs(data.key).max(initial=0.0)))
    last = int(place.max())
    if last < sizes.scaled_samples:
        return data
    chosen = np.linspace(0, last, sizes.scaled_samples).astype(np.intp)
    some = np.flatnonzero(np.isin(place, chosen))
    return Summary(data.moments, data.contrasts, samples.take(some))


def all_are_kept(data: Summary) -> bool:
    """Whether the samples that are looked at again are all that there are."""
    assert data.samples is not None
    return bool(np.isclose(data.samples.weight.sum(), data.total))


def with_own_scales(
    recipe: Recipe, data: Summary, weigh_all: WeighAll | None
) -> tuple[Summary, SampleScale]:
    """The same data with a scale for each sample.

    Parameters
    ----------
    recipe : Recipe
        How variances are estimated.
    data : Summary
        The data.
    weigh_all : callable or None
        Looks at all samples, where those that are looked at again are not all; None
        where that cannot be done.
    """
    n_classes = len(data.moments.counts)
    assert data.samples is not None
    if data.moments.observed is not None:
        raise ValueError(
            "scales of the samples cannot be measured with missing values: impute "
            'them, or use sample_scale="common"'
        )
    if weigh_all is None and not all_are_kept(data):
        raise ValueError(
            f"scales of the samples need all of them, and {len(data.samples)} of this "
            'stream are kept: give all to one fit, or use sample_scale="common"'
        )
    measured = _some(data)
    part = recipe.part_to_compare(measured)
    samples = measured.samples
    assert samples is not None
    for _ in range(_ROUNDS):
        scales = measure(part, _by_class(recipe))
        assert part.samples is not None
        some = part.samples.with_precision(scales.precision)
        moments = some.moments(n_classes)
        part = Summary(moments, recipe.contrasts(moments), some)
    samples = samples.with_precision(scales.precision)
    moments = part.moments
    if moments.means.shape != data.moments.means.shape:
        moments = samples.moments(n_classes)
    weighted = Summary(moments, recipe.contrasts(moments), samples)
    known = SampleScale.of(scales, weighted)
    if measured is data and all_are_kept(data):
        return weighted, known
    # The others are looked at by what these tell of the scales.
    if all_are_kept(data):
        samples = data.samples.with_precision(_precision(data, known))
        moments = samples.moments(n_classes)
    else:
        assert weigh_all is not None
        moments, precision = weigh_all(known)
        samples = data.samples.with_precision(precision)
    known = replace(known, moments=moments, precision=samples.precision)
    return Summary(moments, recipe.contrasts(moments), samples), known


def _precision(data: Summary, known: SampleScale) -> FloatArray:
    """One over the squares of the scales of all samples, which are in memory."""
    samples = data.samples
    assert samples is not None
    used = known.divisor > 0
    used &= np.isfinite(known.divisor)
    divisor = np.where(used, known.divisor, 1.0)
    rows = data.rows / np.sqrt(samples.weight)[:, None]
    rows *= data.scale / divisor
    rows += ((data.moments.means - known.centre) / divisor)[samples.codes]
    scale = np.where(used, 1.0, np.inf)
    found = lengths(rows, np.zeros(len(scale)), scale, known.rows)
    precision: FloatArray = known.precision_of(found)
    precision *= samples.weight.sum() / (samples.weight @ precision)
    return precision


def _by_class(recipe: Recipe) -> bool:
    return not VARIANCES[recipe.variance].is_common
