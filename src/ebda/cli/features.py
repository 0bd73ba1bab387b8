"""The two lists of features, for the terminal and as JSON."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np

from ebda.estimators.classifier import EBClassifier
from ebda.listing import escaped
from ebda.rule.ranking import FeatureList, Ranking

# The expected share of false discoveries in a list.
LEVEL = 0.05
_WIDEST = 40
# Letters of a line of text.
_LINE = 88


def listed_features(
    model: EBClassifier,
    ranking: Ranking,
    found: FeatureList,
    top: int,
    log_base: float | None,
) -> list[dict[str, Any]]:
    """The first features of a list; none that is not selected.

    Parameters
    ----------
    model : EBClassifier
        Fitted.
    ranking : Ranking
        Of the model.
    found : FeatureList
        One of its lists.
    top : int
        How many features at most.
    log_base : float, optional
        Base of the logarithms that were taken: then the difference is given as a log2
        fold change.
    """
    order = found.order[: min(top, int(found.selected(LEVEL).sum()))]
    classes, names = model.classes_.tolist(), ranking.names
    t, difference = np.atleast_2d(found.t), np.atleast_2d(ranking.difference)
    name, unit = "difference", 1.0
    if log_base is not None:
        name, unit = "log2_fold_change", float(np.log2(log_base))
    records = []
    for j in order.tolist():
        k = int(found.strongest[j])
        up = bool(t[k, j] > 0)
        if len(classes) == 2:
            where = f"higher in {classes[int(up)]}"
        else:
            where = f"{'higher' if up else 'lower'} in {classes[k]}"
        statistics = {key: float(row[j]) for key, row in found.columns().items()}
        records.append(
            {
                "feature": str(j + 1) if names is None else str(names[j]),
                "direction": where,
                name: float(difference[k, j] * unit),
                **statistics,
            }
        )
    return records


def features_record(
    model: EBClassifier, top: int, log_base: float | None
) -> dict[str, Any]:
    """Both lists for JSON."""
    ranking = model.ranking_
    marginal, conditional = ranking.marginal, ranking.conditional
    return {
        "n_selected": int(marginal.selected(LEVEL).sum()),
        "top_features": listed_features(model, ranking, marginal, top, log_base),
        "n_conditional": int(conditional.selected(LEVEL).sum()),
        "top_conditional": listed_features(model, ranking, conditional, top, log_base),
    }


def feature_words(model: EBClassifier, top: int, log_base: float | None) -> str:
    """Both lists as tables, each with what it is about."""
    ranking, n_factors = model.ranking_, model.n_factors_
    asked = ranking.marginal.question
    parts = [f"{asked}\n{_table(model, ranking, ranking.marginal, top, log_base)}"]
    if n_factors:
        table = _table(model, ranking, ranking.conditional, top, log_base)
        parts.append(f"{ranking.conditional.question}\n{table}")
    else:
        parts.append(
            "No common factors were found within the classes, so that there is no "
            "second list, of differences beyond them."
        )
    return "\n\n".join(parts)


def _table(
    model: EBClassifier,
    ranking: Ranking,
    found: FeatureList,
    top: int,
    log_base: float | None,
) -> str:
    n, p = int(found.selected(LEVEL).sum()), model.n_features_in_
    doubt = found.doubt(LEVEL)
    if not n:
        none = f"No feature does, at a false discovery rate of {LEVEL:.0%}."
        return fill(f"{none} {doubt}".strip(), _LINE)
    rows = listed_features(model, ranking, found, top, log_base)
    verb = "does" if n == 1 else "do"
    said = f"{n} of {p} {verb}, at a false discovery rate of {LEVEL:.0%}. {doubt}"
    if not rows:
        return fill(said.strip(), _LINE)
    names = [escaped(row["feature"]) for row in rows]
    wide = min(max(*map(len, names), len("feature")), _WIDEST)
    unit = "difference" if log_base is None else "log2_fold_change"
    statistic = "t" if found.t.ndim == 1 else "f"
    head = f"  {'feature':<{wide}}  {unit.replace('_', ' '):>16}"
    lines = [
        fill(f"{said.strip()} The first {len(rows)}:", _LINE),
        f"{head}{statistic.upper() if statistic == 'f' else statistic:>10}   q-value",
    ]
    lines += [
        f"  {_cut(name, wide):<{wide}}  {row[unit]:>16.3g}{row[statistic]:>10.2f}"
        f"{row['q_value']:>10.2g}  {escaped(row['direction'])}"
        for name, row in zip(names, rows, strict=True)
    ]
    return "\n".join(lines)


def _cut(name: str, wide: int) -> str:
    return name if len(name) <= wide else f"{name[: wide - 3]}..."
