"""Sizes that decide how work is cut, kept or compared, all in one place.

Most of them change nothing but the speed. Tests make them small, to reach every path
with little data:

>>> with override(tile_elements=100):
...     sizes.tile_elements
100
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Sizes:
    """The sizes in use. They are read at each call; see :func:`override`.

    Parameters
    ----------
    tile_elements : int
        Values in a tile of X: 4 MiB of float64. A tile and its working copy stay in the
        cache of a core, and its rows are still long enough to stream.
    tile_rows : int
        Rows of a tile while moments are summed.
    sparse_elements : int
        Nonzeros of sparse input that are summed at a time.
    device_elements : int
        Values in a block of an array on a device: 256 MiB of float64, of which a few
        are needed at a time.
    score_elements : int
        Values of X that are converted to float64 at a time for scores: 8 MiB.
    block_features : int
        Features in a block of NumPy operations: a few float64 vectors of this length
        fit in the cache of a core.
    threaded_features : int
        Features in a block that a thread works on without the interpreter's lock.
    summed_features : int
        Features in a block of floating-point sums. It does not depend on the number of
        threads, and so neither does the sum.
    compiled_elements, compiled_features : int
        Values of a matrix, and entries of a vector, from which compiled loops are used.
        Loading Numba takes 0.35 s. At 60 x 2,000,000 the loops save 0.1 s of each fit;
        below these sizes they would seldom pay for themselves.
    tabulated_values : int
        Values from which posterior summaries are looked up in a table.
    posterior_elements : int
        Values times atoms in a block of posterior weights: 2 MiB of float64.
    grouped_variances : int
        Variances from which they are grouped to fit their prior.
    binned_values : int
        Values from which they are grouped to fit the prior of the effects.
    most_compared, least_compared, compared_values : int
        Rules are compared on at most so many features, and so many values of the
        samples; on at least so many features. More would tell little more about which
        rule suits the data, and fitting would take longer than reading the data.
    held_out : int
        Samples that are held out in folds; once there are so many, further folds would
        tell little more.
    held_out_per_class : int
        Samples of each class that must be among them, if there are so many.
    scaled_samples : int
        Samples whose scales are measured together; those of others follow from them.
    deferred_values : int
        Values that may stay in memory for a posterior that is asked for later: 8 MiB.
    gram_elements : int
        Values of the Gram matrices whose eigenvalues are computed at a time: 2 MiB.
    covariance_block : int
        Covariances that are formed at a time: 8 MiB.
    covariance_pairs : int
        Pairs of features that a sparse covariance may have: it takes up 0.1 GiB, and
        three times as much while it is made.
    paired_features : int
        Features of which all pairs may be compared: 8.6 billion, which takes minutes,
        and 1.5 GiB for the residuals of 1,024 samples.
    split_features : int
        Features that the threshold of covariances is chosen by.
    dense_features : int
        Features up to which a sparse covariance is inverted as a dense matrix; up to
        four times as many where it is mostly nonzero.
    residual_elements : int
        Values of residuals that are kept in memory: 80 MB. Folds need all of those of
        the features that rules are compared on.
    stacked_values : int
        Values of the contrasts of folds that are worked on at a time: 8 MiB.
    chain_values, rough_values : int
        Values that a prior along an order is fitted to, and that one is fitted to which
        is to be compared with others only: runs of neighbours.
    chain_steps : int
        Steps of a hidden Markov chain whose matrices are in memory at a time.
    coarse_values : int
        Values above which a Dirichlet process is first searched for in wider groups.
    loose_values : int
        Values above which it is fitted with a looser default tolerance.
    kept_samples : int
        Samples that are kept for factors and folds: those whose values have the lowest
        hash (:mod:`ebda.data.samples`). This many show the common factors as well as
        ten times as many would, and the Gram matrix stays small.
    most_kept, kept_values : int
        Up to so many samples are kept of few features, with so many values in all: a
        covariance of many samples is worth more than a few factors.
    kept_per_class : int
        Samples that are kept of each class at least, if there are so many.
    persisted_features, persisted_values : int
        Kept samples of a Dask array with so few features, or values, stay on the
        workers whatever memory there is: rules are compared on no more
        (:mod:`ebda.estimators.classifier`), and the folds read them some fifty times.
    mapped_bytes : int
        Bytes of a memory map from which pages that were read are released.
    block_bytes : int
        Bytes of a block read from disk; two are in memory at a time.
    block_rows : int
        Rows that a block from disk should have: to merge its moments costs about as
        much as ten rows of it.
    run_bytes : int
        Bytes that are read in one go from a store without chunks.
    reread_bytes : int
        Bytes of each row that a tile of columns must have for kept samples to be read
        from a memory map that is stored by rows; else they are copied.
    kept_bytes : int
        Bytes of kept samples that stay in memory; more go to a temporary file.
    piece_bytes : int
        Bytes of a piece of a Dask array that has all samples of some features.
    local_bytes : int
        Bytes that samples may take up between steps, with a local scheduler of Dask.
    least_cluster_bytes : int
        Bytes that they may take up on a cluster, however full its memory is.
    unpacked_bytes, unpacked_ratio : int
        Bytes that the content of a file may take up in memory, and how many times as
        much as the file has; the larger counts. More may be the work of an attacker.
    silent_milliseconds : int
        How long a fit takes before it shows a bar, if it is to show one.
    on_disk_percent : int
        Files above this percentage of the free memory are read in blocks by ``ebda
        fit``.
    """

    tile_elements: int = 1 << 19
    tile_rows: int = 2048
    sparse_elements: int = 1 << 19
    device_elements: int = 1 << 25
    score_elements: int = 1 << 20
    block_features: int = 1 << 15
    threaded_features: int = 1 << 18
    summed_features: int = 1 << 18
    compiled_elements: int = 1 << 25
    compiled_features: int = 1 << 19
    tabulated_values: int = 1 << 13
    posterior_elements: int = 1 << 18
    grouped_variances: int = 1 << 15
    binned_values: int = 1000
    most_compared: int = 1 << 15
    least_compared: int = 1 << 12
    compared_values: int = 1 << 22
    held_out: int = 600
    held_out_per_class: int = 1 << 6
    scaled_samples: int = 1 << 10
    deferred_values: int = 1 << 20
    gram_elements: int = 1 << 18
    covariance_block: int = 1 << 20
    covariance_pairs: int = 1 << 22
    paired_features: int = 1 << 17
    split_features: int = 1 << 9
    dense_features: int = 1 << 10
    residual_elements: int = 10_000_000
    stacked_values: int = 1 << 20
    chain_values: int = 1 << 14
    rough_values: int = 1 << 12
    chain_steps: int = 1 << 16
    coarse_values: int = 2_000
    loose_values: int = 100_000
    # data
    kept_samples: int = 1024
    most_kept: int = 1 << 12
    kept_values: int = 10_000_000
    kept_per_class: int = 64
    persisted_features: int = 1 << 12
    persisted_values: int = 1 << 22
    mapped_bytes: int = 1 << 25
    block_bytes: int = 1 << 24
    block_rows: int = 256
    run_bytes: int = 1 << 17
    reread_bytes: int = 1 << 14
    kept_bytes: int = 1 << 25
    piece_bytes: int = 1 << 24
    local_bytes: int = 1 << 28
    least_cluster_bytes: int = 1 << 26
    unpacked_bytes: int = 1 << 30
    unpacked_ratio: int = 20
    silent_milliseconds: int = 2000
    on_disk_percent: int = 50

    def kept(self, n_features: int) -> int:
        """Samples that are kept of data with so many features.

        >>> sizes.kept(100_000), sizes.kept(4000), sizes.kept(50)
        (1024, 2500, 4096)
        """
        fit = self.kept_values // max(n_features, 1)
        return max(self.kept_samples, min(self.most_kept, fit))


sizes = Sizes()


@contextmanager
def override(**values: int) -> Iterator[None]:
    """Use other sizes inside this block, in all threads of the process.

    Parameters
    ----------
    **values
        Sizes by name.
    """
    unknown = set(values) - set(vars(sizes))
    if unknown:
        raise TypeError(f"there is no size named {', '.join(sorted(unknown))}")
    before = {name: getattr(sizes, name) for name in values}
    vars(sizes).update(values)
    try:
        yield
    finally:
        vars(sizes).update(before)
