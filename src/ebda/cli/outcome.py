"""What a fit has given: for the model file, for machines and for people."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebda import __version__
from ebda.cli import summary
from ebda.estimators.classifier import EBClassifier
from ebda.evaluation import Evaluation
from ebda.inputs import Table
from ebda.inputs.blocks import counted


@dataclass(frozen=True, eq=False)
class Fitted:
    """What a fit has given."""

    model: EBClassifier
    cross_validated: Evaluation | None
    tested: Evaluation | None
    seconds: dict[str, float]

    @property
    def evaluation(self) -> Evaluation | None:
        """The error that model file and report keep."""
        return self.cross_validated or self.tested


def about(table: Table, judged: Table, options: argparse.Namespace) -> dict[str, Any]:
    """What the model file keeps of the data, so that others are read the same way."""
    return {
        "source": Path(table.source).name,
        "format": table.format,
        "n_samples": table.n_samples,
        "n_features": table.n_features,
        "target": table.target,
        "labels": None if options.labels is None else options.labels.name,
        "classes": {str(label): n for label, n in table.class_counts.items()},
        "orientation": table.orientation,
        "transformation": table.transformation,
        "log": options.log,
        "impute": options.impute,
        "layer": options.layer,
        "drop": options.drop,
        "duplicates": options.duplicates,
        "notes": list(table.notes),
        "command": options.command_line,
        "fitted_to": table.fingerprint(),
        "evaluated_on": judged.fingerprint(),
    }


def record(
    table: Table,
    fitted: Fitted,
    written: dict[str, Path],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Everything that is printed, for machines."""
    model = fitted.model
    both = {"evaluation": fitted.cross_validated, "test": fitted.tested}
    return {
        "ebda": __version__,
        "data": about(table, table, options),
        "classes": model.classes_,
        **{
            name: None if found is None else summary.evaluation_record(found)
            for name, found in both.items()
        },
        "n_factors": model.n_factors_,
        "selection": summary.selection_record(model.selection_),
        "n_selected": summary.n_selected(model),
        "top_features": summary.top_features(model, options.top),
        "seconds": fitted.seconds,
        "files": written,
    }


def words(fitted: Fitted, written: dict[str, Path], options: argparse.Namespace) -> str:
    """Everything that is printed, for people."""
    parts = []
    crossed, model = fitted.cross_validated, fitted.model
    if crossed is not None:
        title = f"Cross-validation in {crossed.n_folds} folds"
        if crossed.n_folds < options.cv:
            title += " (no more, because the rarest class has no more samples)"
        parts.append(summary.evaluation_words(crossed, title))
    if fitted.tested is not None:
        title = f"Test samples of {options.test}"
        parts.append(summary.evaluation_words(fitted.tested, title))
    if fitted.evaluation is None:
        parts.append("The error is not known: neither --cv nor --test.")
    factors = counted(model.n_factors_, "common factor")
    parts += [
        f"{model.selection_.reason} {factors} within the classes.\n"
        f"{model.selection_.table()}",
        summary.feature_words(model, options.top),
        "Time: " + ", ".join(f"{k} {v:.1f} s" for k, v in fitted.seconds.items()),
    ]
    parts += [f"Written: {path}" for path in written.values()]
    return "\n\n".join(parts)
