"""Masked arrays, Arrow tables, AnnData: an error that says where, or the same model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from ebda import EBClassifier, NormalMeans
from ebda.baselines import FAIR, ShrunkenCentroids
from ebda.evaluation import cross_validate
from ebda.priors import PRIORS, DiscretePrior

N, P = 40, 30
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(N, P)), np.arange(N) % 2
X[:, :5] += 2 * Y[:, None]
MASK = np.zeros((N, P), dtype=bool)
MASK[3, 7] = MASK[5, 0] = True
Z = rng.normal(size=N)


def masked(values: Any, *places: int) -> Any:
    return np.ma.array(values, mask=np.isin(np.arange(len(values)), places))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: EBClassifier().fit(X, Y), "X has 2 masked values"),
        (lambda X: EBClassifier().fit(list(X), Y), "X has 2 masked values"),
        (lambda X: FAIR().fit(X, Y), "X has 2 masked values"),
        (lambda X: ShrunkenCentroids().fit(X, Y), "X has 2 masked values"),
        (lambda X: EBClassifier().partial_fit(X, Y, [0, 1]), "X has 2 masked values"),
    ],
)
def test_masked_values_of_x_are_refused(
    call: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"{message}, the first at row 3, column 7"):
        call(np.ma.array(X, mask=MASK))


def test_masked_values_are_refused_in_prediction() -> None:
    model = EBClassifier().fit(X, Y)
    for call in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match="impute or remove these"):
            call(np.ma.array(X, mask=MASK))


def test_masked_labels_and_weights_are_refused() -> None:
    with pytest.raises(ValueError, match=r"y has 1 masked value, .* at position 9;"):
        EBClassifier().fit(X, masked(Y, 9))
    weight = masked(np.ones(N), 4, 6)
    with pytest.raises(ValueError, match="sample_weight has 2 masked values"):
        EBClassifier().fit(X, Y, sample_weight=weight)


@pytest.mark.parametrize("name", [n for n in PRIORS if PRIORS[n].is_estimated])
def test_masked_estimates_are_refused(name: str) -> None:
    estimator = PRIORS[name].estimator
    for fit in (estimator().fit, NormalMeans(name).fit):
        with pytest.raises(ValueError, match="values has 1 masked value"):
            fit(masked(Z, 2))
        with pytest.raises(ValueError, match="scale has 1 masked value"):
            fit(Z, masked(np.ones(N), 2))


def test_masked_values_have_no_posterior() -> None:
    prior = DiscretePrior([0, 2], [0.5, 0.5])
    for summary in (prior.posterior, prior.logpdf):
        with pytest.raises(ValueError, match="values has 1 masked value"):
            summary(masked(Z, 2))


def test_a_mask_without_masked_values_does_not_matter() -> None:
    want = EBClassifier().fit(X, Y, np.ones(N)).coef_
    got = EBClassifier().fit(np.ma.array(X), masked(Y), masked(np.ones(N))).coef_
    np.testing.assert_array_equal(got, want)


def table(**more: Any) -> Any:
    columns = {f"g{j}": column for j, column in enumerate(X.T)}
    return pa.table({**columns, **more})


@pytest.mark.parametrize("rule", [EBClassifier, FAIR, partial(ShrunkenCentroids, 1.0)])
def test_an_arrow_table_is_taken_by_its_columns(rule: Any) -> None:
    want, model = rule().fit(X, Y), rule().fit(table(), pa.array(Y))
    np.testing.assert_array_equal(model.coef_, want.coef_)
    assert model.feature_names_in_.tolist() == [f"g{j}" for j in range(P)]
    np.testing.assert_array_equal(model.predict(table()), want.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(table().rename_columns([f"h{j}" for j in range(P)]))


def test_a_null_of_an_arrow_table_is_a_missing_value() -> None:
    gaps = [1, 0] * (N // 2)
    gaps[4] = None  # type: ignore[call-overload]
    given = table(n=pa.array(gaps))
    with pytest.raises(ValueError, match=r"column 30 \('n'\) .*NaN in row 4"):
        FAIR().fit(given, Y)
    model = EBClassifier().fit(given, Y)
    last = [float("nan") if gap is None else gap for gap in gaps]
    want = EBClassifier().fit(np.column_stack([X, last]), Y)
    np.testing.assert_array_equal(model.coef_, want.coef_)
    assert model.moments_.observed is not None
    assert model.moments_.observed[:, -1].sum() == N - 1


def test_an_arrow_table_needs_other_names_and_numbers() -> None:
    twice = table().append_column("g1", pa.array(np.ones(N)))
    with pytest.raises(ValueError, match=r"duplicated feature names: 'g1' \(2 times\)"):
        EBClassifier().fit(twice, Y)
    with pytest.raises(ValueError, match="could not convert string to float: 'a'"):
        EBClassifier().fit(table(n=["a"] * N), Y)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_matrix, sparse.csc_array])
def test_a_view_of_anndata_is_taken_as_its_copy(kind: Any, tmp_path: Path) -> None:
    """``adata[rows]``, whose X is of a class of anndata's own."""
    rows = np.random.default_rng(1).permutation(N)[:30]
    whole = anndata.AnnData(kind(X))
    whole.write_h5ad(tmp_path / "a.h5ad")
    backed = anndata.read_h5ad(tmp_path / "a.h5ad", backed="r")
    plain = kind(X[rows])
    want = EBClassifier().fit(plain, Y[rows])
    for view in (whole[rows], whole[rows].X, backed[rows], backed[rows].X):
        got = EBClassifier().fit(view, Y[rows])
        np.testing.assert_array_equal(got.coef_, want.coef_)
        np.testing.assert_array_equal(
            got.predict_proba(view), want.predict_proba(plain)
        )
    backed.file.close()


def test_anndata_can_be_cross_validated() -> None:
    got = cross_validate(EBClassifier(), anndata.AnnData(X), Y, n_folds=3)
    want = cross_validate(EBClassifier(), X, Y, n_folds=3)
    np.testing.assert_array_equal(got.probabilities, want.probabilities)
