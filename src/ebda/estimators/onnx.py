"""Models for other runtimes: a fitted classifier as an ONNX graph, by skl2onnx.

skl2onnx is told how to convert the linear classifiers of this package, alone or at the
end of a scikit-learn pipeline. The graph computes the scores in float64 whatever the
type of its input: with thousands of features, sums in float32 lose what a probability
needs. (ONNX's own operator ``LinearClassifier``, in float32, is off by 5e-5 on the
leukaemia data, and this graph by 3e-8.)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ebda import __version__
from ebda.covariance.sample_scale import SampleScale
from ebda.covariance.scales import moderate
from ebda.estimators.linear_classifier import LinearClassifier
from ebda.rule.linear_rule import log_odds

_OPSET = 18
# Name of the node at which a runtime stops where X has missing values.
_REFUSES_NAN = "X_contains_NaN__impute_missing_values_before_this_model"


def to_onnx(model: Any, dtype: npt.DTypeLike = np.float32) -> Any:
    """The fitted classifier as an ONNX model with labels and probabilities.

    Parameters
    ----------
    model : EBClassifier, a baseline, or a Pipeline that ends in one
        Fitted; with labels that are strings, whole numbers or truth values (which
        become 0 and 1).
    dtype : {float32, float64}
        Type of the input and of the probabilities.

    Returns
    -------
    onnx.ModelProto
        Its input is ``X``, of shape (n_samples, n_features); its outputs are ``label``
        and ``probabilities``, one column per class in the order of ``classes_``. Names
        of the features are in its metadata, as JSON under ``feature_names``. Write it
        with ``Path("model.onnx").write_bytes(proto.SerializeToString())``. It stops at
        a sample with missing values, unlike the model: impute them before.

    Examples
    --------
    >>> from ebda import EBClassifier, to_onnx
    >>> from ebda.datasets import make_two_class
    >>> sim = make_two_class(n_features=200, effect=1.0, random_state=0)
    >>> proto = to_onnx(EBClassifier().fit(sim.data, sim.target))
    >>> [output.name for output in proto.graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import convert_sklearn, update_registered_converter
        from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    except ImportError:
        raise ImportError("to_onnx needs skl2onnx: pip install 'ebda[onnx]'") from None

    classifier = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(classifier, LinearClassifier):
        raise TypeError(
            f"a {type(classifier).__name__} cannot be converted to ONNX; what can be "
            "is a classifier of ebda, or a Pipeline that ends in one"
        )
    check_is_fitted(classifier)
    if not hasattr(classifier, "coef_"):
        raise TypeError(
            f"this {type(classifier).__name__} cannot be converted to ONNX: its rule "
            "is not linear"
        )
    tensors = {"float32": FloatTensorType, "float64": DoubleTensorType}
    name = np.dtype(dtype).name
    if name not in tensors:
        raise ValueError(f"dtype must be one of {list(tensors)}, got {name!r}")
    labels(classifier.classes_)
    kind = type(classifier)
    update_registered_converter(kind, f"Ebda{kind.__name__}", _shapes, _convert)
    proto = convert_sklearn(
        model,
        "ebda",
        [("X", tensors[name]([None, model.n_features_in_]))],
        f"{kind.__name__} of ebda {__version__}",
        target_opset=_OPSET,
    )
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        entry = proto.metadata_props.add()
        entry.key, entry.value = "feature_names", json.dumps(names.tolist())
    return proto


def labels(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The labels as ONNX can give them out: strings in UTF-8, or int64.

    >>> labels(np.array([False, True]))
    array([0, 1])
    """
    values = classes.tolist()
    if all(isinstance(value, str) for value in values):
        return np.array([value.encode() for value in values], dtype=object)
    try:
        if not all(isinstance(value, int) for value in values):
            raise TypeError
        return np.array(values, dtype=np.int64)
    except (TypeError, OverflowError):
        raise TypeError(
            "ONNX has labels that are strings or whole numbers of 64 bits, and these "
            f"are {values[0]!r}, ...; fit the model with such labels"
        ) from None


def _shapes(operator: Any) -> None:
    """Types of the outputs, as skl2onnx wants to know them."""
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    classes = labels(operator.raw_operator.classes_)
    n = operator.inputs[0].get_first_dimension()
    kind = Int64TensorType if classes.dtype == np.int64 else StringTensorType
    operator.outputs[0].set_type(kind([n]))
    operator.outputs[1].type.shape = [n, len(classes)]


def _precision(
    scale: SampleScale, x: str, node: Callable[..., str], constant: Callable[..., str]
) -> str:
    """Nodes for the precision of each sample (`SampleScale.precision_of`)."""

    def double(name: str, values: Any) -> str:
        # 11 is TensorProto.DOUBLE.
        return constant(name, 11, np.ascontiguousarray(values, dtype=np.float64))

    axis = constant("features", 7, np.array([1]))  # 7 is TensorProto.INT64
    means = scale.rows[: len(scale.moments.means)]
    r = node("Sub", [x, double("centre", scale.centre)])
    r = node("Div", [r, double("divisor", scale.divisor)])
    on_means = node("MatMul", [r, double("means", means.T)])
    squares = node("ReduceSumSquare", [r, axis], keepdims=1)
    if len(scale.directions):
        along = node("MatMul", [r, double("directions", scale.directions.T)])
        left_out = node("ReduceSumSquare", [along, axis], keepdims=1)
        squares = node("Sub", [squares, left_out])
        at_means = node("MatMul", [along, double("at_means", scale.at_means.T)])
        on_means = node("Sub", [on_means, at_means])
    twice = node("Mul", [on_means, double("two", [2.0])])
    squares = node("Sub", [squares, twice])
    squares = node("Add", [squares, double("left_of_means", scale.left_of_means)])
    nearest = node("ReduceMin", [squares, axis], keepdims=1)
    mean = node("Div", [nearest, double("expected", [scale.expected])])
    mean = node("Max", [mean, double("least", [scale.least])])
    # The moderated square is linear in the square.
    known = scale.n_effective, scale.degrees_of_freedom, scale.variance
    at_zero, at_one = moderate(np.array([0.0, 1.0]), *known)
    own = node("Mul", [mean, double("own", [at_one - at_zero])])
    s2 = node("Add", [own, double("rest", [at_zero])])
    return node("Div", [double("unit", [scale.unit]), s2])


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Nodes of the graph: scores, probabilities, the place of the largest."""
    from skl2onnx.common.data_types import guess_proto_type
    from skl2onnx.proto import onnx_proto

    types = onnx_proto.TensorProto
    rule = operator.raw_operator

    def constant(name: str, kind: int, values: npt.NDArray[Any]) -> str:
        unique: str = scope.get_unique_variable_name(name)
        container.add_initializer(unique, kind, values.shape, values.ravel().tolist())
        return unique

    def node(op: str, inputs: list[str], output: str = "", **attributes: Any) -> str:
        result: str = output or scope.get_unique_variable_name(op.lower())
        unique = scope.get_unique_operator_name(op)
        container.add_node(op, inputs, result, name=unique, **attributes)
        return result

    label, probabilities = (output.full_name for output in operator.outputs)
    x = node("Cast", [operator.inputs[0].full_name], to=types.DOUBLE)
    coef = constant("coef", types.DOUBLE, np.ascontiguousarray(rule.coef_.T))
    product = node("MatMul", [x, coef])
    score = node("Add", [product, constant("intercept", types.DOUBLE, rule.intercept_)])
    # The average over slopes (ebda.selection.calibration) on an axis of its own, and
    # the noise.
    scale, k = getattr(rule, "sample_scale_", None), len(rule.classes_)
    calibration = rule._calibration()
    if scale is not None:
        calibration = calibration.calibration
    prior = np.full(k, 1 / k) if calibration.prior is None else calibration.prior
    held = log_odds(prior)
    two = k == 2
    free = node("Sub", [score, constant("held", types.DOUBLE, held)])
    if scale is not None:
        free = node("Mul", [free, _precision(scale, x, node, constant)])
    axis = constant("axis", types.INT64, np.array([2]))
    slope = constant("slope", types.DOUBLE, calibration.slope)
    scaled = node("Mul", [node("Unsqueeze", [free, axis]), slope])
    logits = node("Add", [scaled, constant("log_prior", types.DOUBLE, held[:, None])])
    if two:
        logits = node("Concat", [node("Neg", [logits]), logits], axis=1)
        each = node("Sigmoid", [logits])
    else:
        each = node("Softmax", [logits], axis=1)
    share = constant("share", types.DOUBLE, calibration.share[:, None])
    mixed = node("Squeeze", [node("MatMul", [each, share]), axis])
    noise = constant("noise", types.DOUBLE, calibration.noise * prior)
    p = node("Add", [mixed, noise])
    # A tie goes to the first class, as in predict.
    best = node("ArgMax", [p], axis=1, keepdims=0)
    # A graph cannot tell what a missing value is expected to be. There is no label for
    # the place after the last class, and the runtime stops at that node.
    after = constant("no_class", types.INT64, np.array([k]))
    features = constant("features", types.INT64, np.array([1]))
    total = node("ReduceSum", [x, features], keepdims=0)
    place = node("Where", [node("IsNaN", [total]), after, best])
    classes = labels(rule.classes_)
    kind = types.INT64 if classes.dtype == np.int64 else types.STRING
    known = [constant("classes", kind, classes), place]
    name = scope.get_unique_operator_name(_REFUSES_NAN)
    container.add_node("Gather", known, label, name=name, axis=0)
    node("Cast", [p], probabilities, to=guess_proto_type(operator.outputs[1].type))
