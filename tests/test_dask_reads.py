"""How often a fit reads each chunk of a Dask array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

from ebda import EBClassifier
from ebda.baselines import IndependenceRule
from ebda.data import Labels, as_data
from ebda.data.dask import running
from ebda.sizes import override, sizes

# More values than stay on the workers whatever memory there is.

# A cluster takes seconds to start.
pytestmark = pytest.mark.slow
N, P = 128, 34_000
HALF = 4 * N * P // 2
Chunks = tuple[int, int]
WIDE, TALL, BOTH = (40, P), (N, 5000), (40, 5000)
# Those of all features are more than are kept in memory, as of larger data.
FEW_RESIDUALS = {"residual_elements": sizes.compared_values}
# Nothing is compared, and no samples are held out.
ALONE = EBClassifier(covariance="factor", shrinkage="mean", calibrate=False)


def load_block(nothing: Any, file: str, folder: str, block_info: Any = None) -> Any:
    """A part of a file; says that it was read by a byte in another."""
    (r0, r1), (c0, c1) = block_info[None]["array-location"]
    with (Path(folder) / f"{r0}-{c0}").open("ab", buffering=0) as count:
        count.write(b"x")
    return np.array(np.load(file, mmap_mode="r")[r0:r1, c0:c1])


@dataclass
class Study:
    """A table on disk, and the model of it in memory."""

    file: Path
    want: EBClassifier

    def counted(self, folder: Path, chunks: Chunks) -> Any:
        return da.map_blocks(
            load_block,
            None,
            str(self.file),
            str(folder),
            chunks=da.core.normalize_chunks(chunks, (N, P)),
            dtype=np.float32,
            meta=np.empty((0, 0), np.float32),
        )


def reads(folder: Path, X: Any) -> set[int]:
    """How often chunks were read, after which the count begins anew."""
    sizes = [path.stat().st_size for path in folder.iterdir()]
    assert len(sizes) in (0, X.npartitions)
    for path in folder.iterdir():
        path.unlink()
    return set(sizes)


@pytest.fixture(scope="module")
def y() -> Any:
    return np.arange(N) % 2


@pytest.fixture(scope="module")
def studies(y: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    """By how features are correlated within the classes."""
    common = {
        "not": np.zeros((0, P)),
        "by two factors": np.random.default_rng(7).normal(size=(2, P)),
        "in blocks": np.repeat(np.eye(P // 20), 20, axis=1),
    }
    folder, found = tmp_path_factory.mktemp("studies"), {}
    for name, loadings in common.items():
        rng = np.random.default_rng(len(loadings))
        X = rng.normal(size=(N, P)) + rng.normal(size=(N, len(loadings))) @ loadings
        X[:, 3000:3100] += y[:, None]
        X = X.astype(np.float32)
        np.save(folder / f"{name}.npy", X)
        found[name] = Study(folder / f"{name}.npy", EBClassifier().fit(X, y))
    used = {name: study.want.selection_.used() for name, study in found.items()}
    assert used["not"] == [("diagonal", "mean")]
    for name in ("by two factors", "in blocks"):
        assert {"shrunken"} <= {covariance for covariance, _ in used[name]}
    assert found["by two factors"].want.n_factors_ == 2
    return found


@pytest.fixture
def one_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def assert_same_fit(got: Any, want: Any) -> None:
    assert np.abs(want.coef_).max() > 0.01
    for name in ("coef_", "intercept_", "z_"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=0, atol=1e-10
        )
    np.testing.assert_array_equal(got.selected_, want.selected_)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("chunks", [WIDE, TALL, BOTH])
def test_what_fits_is_read_once(
    chunks: Chunks, y: Any, studies: Any, tmp_path: Path
) -> None:
    X = studies["by two factors"].counted(tmp_path, chunks)
    assert_same_fit(EBClassifier().fit(X, y), studies["by two factors"].want)
    assert reads(tmp_path, X) == {1}
    IndependenceRule().fit(X, y)
    assert reads(tmp_path, X) == {1}


@pytest.mark.slow
@override(kept_samples=N // 2, most_kept=N // 2, kept_per_class=8)
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("chunks", [WIDE, TALL, BOTH])
def test_of_many_samples_those_that_fit_are_read_again(
    chunks: Chunks, y: Any, studies: Any, tmp_path: Path
) -> None:
    want = EBClassifier().fit(np.load(studies["by two factors"].file), y)
    X = studies["by two factors"].counted(tmp_path, chunks)
    assert_same_fit(EBClassifier().fit(X, y), want)
    assert reads(tmp_path, X) == {2}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("correlated", "chunks", "expected", "alone"),
    [
        ("not", WIDE, 2, 3),  # moments, features compared; Gram matrix in two runs
        ("not", BOTH, 2, 2),
        # and the Gram matrix and the loadings of all features, and products with the
        # residuals under the shrunken covariance: two for z, two for each shrinkage
        ("by two factors", TALL, 8, 3),
        ("by two factors", BOTH, 8, 3),
        ("by two factors", WIDE, 9, 4),
        ("in blocks", BOTH, 10, 3),
    ],
)
def test_what_does_not_fit_is_read_a_few_times(
    correlated: str,
    chunks: Chunks,
    expected: int,
    alone: int,
    y: Any,
    studies: Any,
    tmp_path: Path,
) -> None:
    study = studies[correlated]
    X = study.counted(tmp_path, chunks)
    assert X.nbytes > HALF
    with override(local_bytes=HALF, piece_bytes=HALF // 3, **FEW_RESIDUALS):
        assert_same_fit(EBClassifier().fit(X, y), study.want)
        assert reads(tmp_path, X) == {expected}
        ALONE.fit(X, y)
        assert reads(tmp_path, X) == {alone}
        clone(ALONE).set_params(covariance="diagonal").fit(X, y)
        assert reads(tmp_path, X) == {1}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("correlated", "chunks", "expected"),
    [
        ("not", WIDE, 3),  # the third is the search for wild values
        ("by two factors", TALL, 3),
        ("by two factors", WIDE, 3),
        ("in blocks", BOTH, 3),
    ],
)
def test_residuals_that_fit_here_are_read_once(
    correlated: str,
    chunks: Chunks,
    expected: int,
    y: Any,
    studies: Any,
    tmp_path: Path,
) -> None:
    """Gram matrix, loadings and products are made of those in memory."""
    study = studies[correlated]
    X = study.counted(tmp_path, chunks)
    assert sizes.compared_values < X.size <= sizes.residual_elements
    with override(local_bytes=HALF, piece_bytes=HALF // 3):
        assert_same_fit(EBClassifier().fit(X, y), study.want)
        assert reads(tmp_path, X) == {expected}
        ALONE.fit(X, y)
        assert reads(tmp_path, X) == {2}


@override(local_bytes=HALF // 2, piece_bytes=HALF // 3)
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("chunks", [WIDE, TALL, BOTH])
def test_each_sum_reads_once(
    chunks: Chunks, y: Any, studies: Any, tmp_path: Path
) -> None:
    X = studies["not"].counted(tmp_path, chunks)
    data = as_data(X)
    assert data is not None
    moments, kept = data.summarise(Labels(y, 2), keep=True)
    assert kept is not None
    assert reads(tmp_path, X) == {1}
    scale = np.ones(P)
    kept.loadings(moments.means, scale, np.ones((N, 1)))
    assert reads(tmp_path, X) == {1}
    kept.neighbour_sums(moments.means, scale, np.zeros(P, int))
    assert reads(tmp_path, X) == {1}
    kept.scores(np.ones((1, P)))
    assert reads(tmp_path, X) == {1}
    kept.moments_by(y, 2, 2)
    assert reads(tmp_path, X) == {1}
    part = kept.features(np.arange(0, P, 7))
    assert reads(tmp_path, X) == {1}
    part.gram(moments.means[:, ::7], scale[::7])
    assert reads(tmp_path, X) == set()
    # All rows of a column at one place: in runs that fit, each of whole columns of
    # chunks where those do.
    kept.gram(moments.means, scale)
    runs = math.ceil(X.nbytes / (HALF // 2))
    assert reads(tmp_path, X) == {runs if chunks == WIDE else 1}


def test_reads_of_workers(y: Any, studies: Any, tmp_path: Path) -> None:
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as local,
        Client(local),
    ):
        study = studies["by two factors"]
        X = study.counted(tmp_path, BOTH)
        once = ALONE.fit(X, y).coef_
        assert reads(tmp_path, X) == {1}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running.Runner, "budget", lambda self: HALF)
            for more, expected, alone in (({}, 3, 2), (FEW_RESIDUALS, 8, 3)):
                with override(**more):
                    assert_same_fit(EBClassifier().fit(X, y), study.want)
                    assert reads(tmp_path, X) == {expected}
                    again = ALONE.fit(X, y).coef_
                assert reads(tmp_path, X) == {alone}  # there was nothing to compare
                np.testing.assert_allclose(once, again, rtol=0, atol=1e-10)
        labels = study.want.predict(X)
        assert reads(tmp_path, X) == set()
        labels.compute()
        assert reads(tmp_path, X) == {1}


def test_what_rules_are_compared_on_always_stays_on_the_workers() -> None:
    assert sizes.persisted_features == sizes.least_compared
    assert sizes.persisted_values == sizes.compared_values
