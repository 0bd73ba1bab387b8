"""All features with what is known of each, for a file (``ebda fit --features``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ebda.estimators.classifier import EBClassifier

# Names of the columns that are read most; the rest follows the lists.
_MEAN, _WEIGHT = "mean_", "weight"


def feature_columns(model: EBClassifier, log_base: float | None) -> dict[str, Any]:
    """Columns of the table, best features first.

    Statistics without a prefix are those of the first list (does the feature differ
    between the classes?); ``conditional_`` stands before those of the second (does it
    differ by more than the common factors make of it?), where there are common factors.

    Parameters
    ----------
    model : EBClassifier
        Fitted.
    log_base : float, optional
        Base of the logarithms that were taken. The difference is then that of
        logarithms to base 2, which is the log2 fold change.

    Examples
    --------
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=300, effect=1.0, random_state=0)
    >>> model = EBClassifier(covariance="diagonal").fit(sim.data, sim.target)
    >>> columns = feature_columns(model, None)
    >>> list(columns)[:5]
    ['feature', 'higher_in', 'difference', 't', 'p_value']
    >>> len(columns["feature"])
    300
    """
    ranking, order = model.ranking_, model.ranking_.order
    classes = [str(label) for label in model.classes_.tolist()]
    p, two = model.n_features_in_, len(classes) == 2
    names = getattr(model, "feature_names_in_", np.arange(1, p + 1))
    found = ranking.marginal
    strongest = np.zeros(p, np.intp) if two else found.strongest
    at = strongest, np.arange(p)
    difference = np.atleast_2d(ranking.difference)[at]
    up = np.atleast_2d(found.t)[at] > 0
    columns: dict[str, Any] = {"feature": [str(name) for name in names]}
    if two:
        columns["higher_in"] = [classes[int(k)] for k in up]
    else:
        columns["class"] = [classes[k] for k in strongest]
        columns["direction"] = ["higher" if k else "lower" for k in up]
    if log_base is None:
        columns["difference"] = difference
    else:
        columns["log2_fold_change"] = difference * np.log2(log_base)
    columns |= found.columns()
    if model.n_factors_:
        beyond = ranking.conditional.columns()
        columns |= {f"conditional_{name}": values for name, values in beyond.items()}
    for label, means in zip(classes, model.moments_.means, strict=True):
        columns[f"{_MEAN}{label}"] = means
    if two:
        columns[_WEIGHT] = model.coef_[0]
    else:
        pairs = zip(classes, model.coef_, strict=True)
        columns |= {f"{_WEIGHT}_{label}": row for label, row in pairs}
    return {name: _in(order, values) for name, values in columns.items()}


def _in(order: Any, values: Any) -> list[Any]:
    """The entries in an order; None for a number that is not known."""
    if isinstance(values, np.ndarray):
        return [None if v != v else v for v in values[order].tolist()]
    return [values[j] for j in order.tolist()]
