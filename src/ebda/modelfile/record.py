"""Save and load: a model, and with it its evaluation and what it was fitted to."""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ebda import __version__
from ebda.evaluation import Evaluation
from ebda.files import replacing
from ebda.inputs.training_values import TrainingValues
from ebda.modelfile import container
from ebda.modelfile.schemas import EVALUATION, MODEL, TRAINING
from ebda.storage.errors import FormatError, ModelFileError
from ebda.storage.fields import Reader, Scalar, Writer
from ebda.storage.objects import names_of, refuse_unknown, schema_of

_PARTS = ("written_by", "model", "evaluation", "data", "training")


@dataclass(frozen=True, eq=False)
class Record:
    """What a model file holds.

    Parameters
    ----------
    model : estimator
        The fitted model.
    evaluation : Evaluation, optional
        Its cross-validated predictions.
    data : dict, optional
        Facts about the training data and the command.
    written_by : str
        Version of ebda that wrote the file.
    training : TrainingValues, optional
        Ranges of the features in the training data.
    """

    model: Any
    evaluation: Evaluation | None
    data: dict[str, Any] | None
    written_by: str
    training: TrainingValues | None = None


def save(
    model: Any,
    path: str | os.PathLike[str],
    evaluation: Evaluation | None = None,
    data: dict[str, Any] | None = None,
    training: TrainingValues | None = None,
) -> None:
    """Write a fitted model to a file, completely or not at all.

    Parameters
    ----------
    model : EBClassifier, NormalMeans or a baseline
        Fitted. Samples that ``partial_fit`` keeps are not saved.
    path : str or path
        The file, by convention with the ending ``.ebda``. An older one is replaced.
    evaluation : Evaluation, optional
        Cross-validated predictions, to be kept with the model.
    data : dict, optional
        Anything else that JSON can hold, such as names of files and the command; up
        to two megabytes.
    training : TrainingValues, optional
        Ranges of the features, which `ebda predict` compares new samples with.

    Raises
    ------
    TypeError
        For a model or a parameter that a file cannot hold, such as a custom prior;
        for data that JSON cannot hold.

    Warns
    -----
    UserWarning
        If ``random_state`` is a generator: the loaded model has None.

    Examples
    --------
    >>> import tempfile
    >>> from ebda import NormalMeans, load, save
    >>> means = NormalMeans(prior="normal").fit([0.1, -0.4, 3.0, 0.2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(means, f"{folder}/means.ebda")
    ...     load(f"{folder}/means.ebda").prior_ == means.prior_
    True
    """
    schema = schema_of(model)
    if schema is None or schema.role != "model":
        raise TypeError(
            f"a {type(model).__name__} cannot be saved to a model file; what can be "
            f"is {', '.join(names_of('model'))}"
        )
    check_is_fitted(model)
    writer = Writer()
    header: dict[str, Any] = {"written_by": __version__}
    header["model"] = MODEL.encode(model, writer, schema.name)
    if evaluation is not None:
        if not _same_classes(evaluation, model):
            raise ValueError("the evaluation is of other classes than the model")
        header["evaluation"] = EVALUATION.encode(evaluation, writer, "evaluation")
    if data is not None:
        header["data"] = _plain(data)
    if training is not None:
        _check_width(training, model)
        header["training"] = TRAINING.encode(training, writer, "training")
    with replacing(Path(path)) as stream:
        container.write(stream, header, writer.parts)
    if writer.lost_state:
        warnings.warn(
            "random_state is a generator, and its state is not saved: the loaded "
            "model has random_state=None. Give a number to keep it",
            UserWarning,
            stacklevel=2,
        )


def _same_classes(evaluation: Evaluation, model: Any) -> bool:
    return hasattr(model, "classes_") and np.array_equal(
        evaluation.classes, model.classes_
    )


def _check_width(training: TrainingValues, model: Any) -> None:
    """Refuse ranges of other features than those of the model."""
    found, wanted = len(training.low), getattr(model, "n_features_in_", 0)
    if found != wanted:
        raise ValueError(
            f"the training values are of {found} features, and the model has {wanted}"
        )


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """The data as JSON has it, or an error that says what is not JSON."""
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise TypeError("data must be a dict with strings as keys")
    try:
        plain: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"data must be what JSON can hold: {error}") from None
    return plain


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file; nothing in the file is run.

    Predictions are equal to the last bit to those of the model that was saved.
    ``partial_fit`` goes on from the moments, as it does after ``fit``: without the
    samples seen so far.

    Parameters
    ----------
    path : str or path
        A file that :func:`save` has written.

    Raises
    ------
    ModelFileError
        For a file that is not a model file, or damaged, truncated, hostile, or of a
        newer version; the message says which, and what to do.
    OSError
        For a file that is not there, or may not be read.
    """
    return load_record(path).model


def load_record(path: str | os.PathLike[str]) -> Record:
    """Read a model with its evaluation and its data.

    Parameters
    ----------
    path : str or path
        A file that :func:`save` has written.

    Raises
    ------
    ModelFileError, OSError
        As :func:`load`.
    """
    header, arrays = container.read(Path(path))
    try:
        return _record(header, Reader(arrays))
    except FormatError as fault:
        raise ModelFileError(f"{path} cannot be loaded: {fault}") from None


def _record(header: dict[str, Any], reader: Reader) -> Record:
    refuse_unknown(header, _PARTS, "its header")
    writer = Scalar((str,)).decode(
        header.get("written_by"), reader, {}, "its header's written_by"
    )
    model = MODEL.decode(header.get("model"), reader, {}, "the model")
    evaluation, data = None, header.get("data")
    if "evaluation" in header:
        evaluation = EVALUATION.decode(
            header["evaluation"], reader, {}, "the evaluation"
        )
        if not _same_classes(evaluation, model):
            raise FormatError("the evaluation is of other classes than the model")
    if "data" in header and not isinstance(data, dict):
        raise FormatError("its data are not a JSON object")
    training = None
    if "training" in header:
        training = TRAINING.decode(header["training"], reader, {}, "the training data")
        try:
            _check_width(training, model)
        except ValueError as fault:
            raise FormatError(str(fault)) from None
    if len(reader.used) < len(reader.arrays):
        raise FormatError("it holds an array that nothing refers to")
    return Record(model, evaluation, data, writer, training)
