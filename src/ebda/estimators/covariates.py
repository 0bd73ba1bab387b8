"""Covariates of the samples: numbers and categories, as the columns of a design.

A number is a column. A category has an indicator column for each of its levels; those
that tell nothing new within the classes, such as the first, have no slopes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ebda.data import Data
from ebda.data.finite import refuse_masked
from ebda.estimators.validation import as_text, describe_columns
from ebda.listing import counted, joined, quoted
from ebda.moments.regression import centred_by_class, explained, independent_columns
from ebda.moments.values import ValueDesign, regress_values, value_rows
from ebda.storage.fields import Array
from ebda.storage.objects import Schema, register
from ebda.typing import FloatArray, IntArray

# A class indicator that covariates explain up to this share of is confounded.
_CONFOUNDED = 1 - 1e-8
# From this share on a caution is given: the variance of a difference doubles.
_PARTLY = 0.5


@dataclass(frozen=True, eq=False)
class Variables:
    """Covariates as they were given, one entry per variable.

    Parameters
    ----------
    names : list of str
        Their names.
    values : list of ndarray of shape (n_samples,)
        Numbers, or strings for categories.
    """

    names: list[str]
    values: list[npt.NDArray[Any]]

    @classmethod
    def of(cls, covariates: Any, n: int) -> Variables:
        """From an array, a list of rows, or a data frame of pandas or polars.

        >>> found = Variables.of([["a", 1], ["b", 2]], 2)
        >>> found.names, [v.tolist() for v in found.values]
        (['covariate 0', 'covariate 1'], [['a', 'b'], [1.0, 2.0]])
        """
        refuse_masked(covariates=covariates)
        if hasattr(covariates, "columns"):
            names = [str(name) for name in covariates.columns]
            columns = [np.asarray(covariates[name]) for name in covariates.columns]
        elif isinstance(covariates, dict):
            names = [str(name) for name in covariates]
            columns = [_as_given(column) for column in covariates.values()]
        else:
            table = _as_given(covariates)
            if table.ndim == 1:
                name = getattr(covariates, "name", None)
                names = ["covariate" if name is None else str(name)]
                table = table[:, None]
            elif table.ndim == 2:
                names = [f"covariate {j}" for j in range(table.shape[1])]
            else:
                raise ValueError(f"covariates have {table.ndim} dimensions; give two")
            columns = list(table.T)
        for name, column in zip(names, columns, strict=True):
            if column.shape != (n,):
                raise ValueError(
                    f"covariate {name!r} has shape {column.shape}, but X has "
                    f"{counted(n, 'sample')}: give one value for each"
                )
        if len(set(names)) < len(names):
            raise ValueError("two covariates have the same name; rename one")
        pairs = zip(names, columns, strict=True)
        return cls(names, [_plain(name, column) for name, column in pairs])


def _as_given(values: Any) -> npt.NDArray[Any]:
    """An array of numbers, or of objects: NumPy makes numbers text beside text."""
    table = np.asarray(values)
    if table.dtype.kind in "US":
        table = np.asarray(values, dtype=object)
    return table


def _plain(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Numbers as float64, and everything else as text."""
    cells = column.tolist()
    missing = [i for i, cell in enumerate(cells) if cell is None or cell != cell]
    if missing:
        raise ValueError(
            f"covariate {name!r} has {counted(len(missing), 'missing value')}, the "
            f"first in row {missing[0]}; fill them in, or leave these samples out"
        )
    number = (int, float, np.integer, np.floating)
    if all(isinstance(cell, number) and not isinstance(cell, bool) for cell in cells):
        values = np.array(cells, dtype=np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"covariate {name!r} has infinite values")
        return values
    return np.array(as_text(cells, f"covariate {name!r}"), dtype=object)


@dataclass(frozen=True, eq=False)
class Covariates:
    """What covariates make of the features; ``print(covariates)`` says it.

    Parameters
    ----------
    names : ndarray of str of shape (n_variables,)
        The covariates.
    variable : ndarray of int of shape (n_columns,)
        The covariate that each column of the design is of.
    level : ndarray of str of shape (n_columns,)
        Which category a column indicates; "" for a number.
    is_number : ndarray of bool of shape (n_columns,)
        Whether it is a number.
    centre : ndarray of shape (n_columns,)
        Mean of each column over the samples of the fit.
    slopes : ndarray of shape (n_columns, n_features)
        What a unit of each column adds to each feature; zero for columns that others
        tell.
    explained : ndarray of shape (n_classes,)
        The share of each class's indicator that they explain: 1 would be confounded.
    between : ndarray of shape (n_contrasts, n_columns, 1 or n_features), optional
        Covariance of contrasts and slopes
        (:func:`ebda.rule.linear_rule.slope_covariance`).
    divergence : ndarray of shape (n_contrasts, n_features), optional
        What each feature's error of the slopes counts in the scores. Given where
        `between` is.
    """

    names: npt.NDArray[Any]
    variable: IntArray
    level: npt.NDArray[Any]
    is_number: npt.NDArray[np.bool_]
    centre: FloatArray
    slopes: FloatArray
    explained: FloatArray
    between: FloatArray | None = None
    divergence: FloatArray | None = None

    def offsets(self, coef: FloatArray) -> FloatArray:
        """What each feature takes from the scores for a unit of each column.

        It is what the slope makes of the coefficient, less the bias that the errors of
        the slopes have. Of shape (n_contrasts, n_columns, n_features).

        Parameters
        ----------
        coef : ndarray of shape (n_contrasts, n_features)
            Coefficients.
        """
        offsets: FloatArray = coef[:, None] * self.slopes
        if self.between is not None and self.divergence is not None:
            offsets -= self.divergence[:, None] * self.between
        return offsets

    @property
    def bias(self) -> FloatArray | None:
        """What the errors of the slopes take from the score for a unit of each column.

        Of shape (n_contrasts, n_columns).
        """
        if self.between is None or self.divergence is None:
            return None
        bias: FloatArray = (self.divergence[:, None] * self.between).sum(axis=2)
        return bias

    def with_bias(self, between: FloatArray, divergence: FloatArray) -> Covariates:
        """The same with the bias of the columns that have slopes.

        Parameters
        ----------
        between : ndarray of shape (n_contrasts, n_slopes, 1 or n_features)
            Covariance of contrasts and slopes.
        divergence : ndarray of shape (n_contrasts, n_features)
            That of the rule.
        """
        every = np.zeros((len(between), len(self.variable), between.shape[2]))
        every[:, self.slopes.any(axis=1)] = between
        return replace(self, between=every, divergence=divergence)

    def columns_of(self, given: Variables) -> FloatArray:
        """The columns of other samples, less the mean of those of the fit.

        A category that is new has the mean, and a warning.
        """
        names = self.names.tolist()
        if given.names != names:
            raise ValueError(
                f"the covariates are {quoted(given.names, 6)}, but those of the fit "
                f"were {quoted(names, 6)}; give the same, in this order"
            )
        out = np.empty((len(given.values[0]), len(self.variable)))
        for v, values in enumerate(given.values):
            own = np.flatnonzero(self.variable == v)
            is_number = bool(self.is_number[own[0]])
            if is_number != (values.dtype.kind == "f"):
                kind = "numbers" if is_number else "categories"
                raise ValueError(f"covariate {names[v]!r} had {kind} in the fit")
            if is_number:
                out[:, own[0]] = values - self.centre[own[0]]
                continue
            known = values[:, None] == self.level[own]
            out[:, own] = known - self.centre[own]
            new = ~known.any(axis=1)
            if new.any():
                out[np.ix_(new, own)] = 0.0
                strange = quoted(np.unique(values[new]).tolist())
                warnings.warn(
                    f"covariate {names[v]!r} has {strange}, which no sample of the "
                    "fit had; the mean is used instead",
                    UserWarning,
                    stacklevel=5,
                )
        return out

    @property
    def caution(self) -> str:
        """How far the covariates are confounded with the classes; empty if little."""
        worst = float(self.explained.max())
        if worst <= _PARTLY:
            return ""
        return (
            f"Covariates ({joined(self.names.tolist())}) and classes are partly "
            f"confounded: they explain {worst:.0%} of which samples are in which "
            f"class. Differences have {1 / (1 - worst):.1f} times the variance of a "
            "balanced design."
        )

    def __repr__(self) -> str:
        rank = int(np.count_nonzero(self.slopes.any(axis=1)))
        first = (
            f"Adjusted for {joined(self.names.tolist())}: {rank} columns of the "
            "design. Classes are compared, and samples without covariates predicted, "
            "at the mean of the covariates."
        )
        return " ".join(filter(None, [first, self.caution]))


def _from_fields(fields: dict[str, Any]) -> Covariates:
    between = fields.get("between")
    if (between is None) != ("divergence" not in fields):
        raise ValueError("the covariance with the slopes goes with the divergence")
    if between is not None and between.shape[2] not in (1, fields["slopes"].shape[1]):
        raise ValueError("the covariance with the slopes is of other features")
    return Covariates(**fields)


register(
    Schema(
        Covariates,
        {
            "names": Array(("v",), ("free of duplicates",), object),
            "variable": Array(("q",), ("zero or more",), np.int64, below="v"),
            "level": Array(("q",), (), object),
            "is_number": Array(("q",), (), np.bool_),
            "centre": Array(("q",)),
            "slopes": Array(("q", "p")),
            "explained": Array(("k",), ("zero or more",)),
            "between": Array(("c", "q", "u")),
            "divergence": Array(("c", "p")),
        },
        optional=frozenset({"between", "divergence"}),
        build=_from_fields,
    )
)


@dataclass(frozen=True, eq=False)
class Columns:
    """Covariates of the samples of a fit, as columns of the design.

    Parameters
    ----------
    names : list of str
        The covariates.
    variable, level, is_number
        As in :class:`Covariates`.
    values : ndarray of shape (n_samples, n_columns)
        The columns.
    """

    names: list[str]
    variable: IntArray
    level: npt.NDArray[Any]
    is_number: npt.NDArray[np.bool_]
    values: FloatArray

    @classmethod
    def of(cls, given: Variables) -> Columns | None:
        """The columns; None where no covariate varies."""
        variable: list[int] = []
        level: list[str] = []
        is_number: list[bool] = []
        columns: list[npt.NDArray[Any]] = []
        for v, values in enumerate(given.values):
            numeric = values.dtype.kind == "f"
            names = [""] if numeric else np.unique(values).tolist()
            for name in names:
                variable.append(v)
                level.append(name)
                is_number.append(numeric)
                columns.append(values if numeric else values == name)
        table = np.column_stack(columns).astype(np.float64)
        if (table == table[0]).all():
            return None
        return cls(
            given.names,
            np.array(variable),
            np.array(level, dtype=object),
            np.array(is_number),
            table,
        )

    def refuse_confounded(self, classes: npt.NDArray[Any], share: FloatArray) -> None:
        """An error where covariates tell a class exactly.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
            Labels.
        share : ndarray of shape (n_classes,)
            What they explain of each class's indicator.
        """
        bad = np.flatnonzero(share > _CONFOUNDED)
        if bad.size:
            names = quoted(self.names, 6)
            what = "covariate" if len(self.names) == 1 else "covariates"
            raise ValueError(
                f"the {what} {names} cannot be told from the class "
                f"{classes.tolist()[bad[0]]!r}: each of their values occurs in samples "
                "of this class only, or never in one. No method can tell such a batch "
                "from the class; leave the covariate out and say so, or measure "
                "samples of the class in other batches"
            )


def regress(
    columns: Columns,
    data: Data,
    classes: npt.NDArray[Any],
    codes: IntArray,
    weight: FloatArray,
    names: npt.NDArray[Any] | None,
) -> tuple[Covariates, IntArray, ValueDesign | None]:
    """Regress the features on covariates within the classes, in one pass over them.

    Returns what was found, which columns have slopes, and what missing values change,
    for which another pass is made where there are any.

    Parameters
    ----------
    columns : Columns
        The covariates.
    data : Data
        The features.
    classes, codes
        Labels, and the place of each sample's among them.
    weight : ndarray of shape (n_samples,)
        Weights of the samples.
    names : ndarray, optional
        Names of the features.
    """
    n_classes = len(classes)
    for v, name in enumerate(columns.names):
        alone = Columns([name], *_only(columns, columns.variable == v))
        alone.refuse_confounded(
            classes, explained(alone.values, codes, n_classes, weight)
        )
    share = explained(columns.values, codes, n_classes, weight)
    columns.refuse_confounded(classes, share)
    within = centred_by_class(columns.values, codes, weight)
    used = independent_columns(within, weight)
    C = within[:, used]
    if weight.sum() - n_classes - len(used) <= 0:
        raise ValueError(
            f"cannot fit: {counted(len(used), 'column')} of covariates and {n_classes} "
            f"classes leave no degrees of freedom of {weight.sum():g} samples; leave "
            "covariates out"
        )
    weighted = C * weight[:, None]
    products = data.products(weighted.T)
    centre = weight @ columns.values / weight.sum()
    slopes, values = np.zeros((len(columns.variable), data.shape[1])), None
    if np.isfinite(products).all():
        slopes[used] = np.linalg.solve(weighted.T @ C, products)
    else:
        away = (columns.values - centre)[:, used] - C
        slopes[used], values = _of_values(
            data, Within(codes, n_classes, C, away, weight), names
        )
    found = Covariates(
        np.array(columns.names, dtype=object),
        columns.variable,
        columns.level,
        columns.is_number,
        centre,
        slopes,
        np.clip(share, 0.0, 1.0),
    )
    return found, used, values


@dataclass(frozen=True, eq=False)
class Within:
    """Columns of covariates within the classes.

    Parameters
    ----------
    codes : ndarray of int of shape (n_samples,)
        Classes.
    n_classes : int
        Number of classes.
    within : ndarray of shape (n_samples, n_columns)
        Columns less their class means.
    away : ndarray of shape (n_samples, n_columns)
        Class means of each sample, less those of all.
    weight : ndarray of shape (n_samples,)
        Weights.
    """

    codes: IntArray
    n_classes: int
    within: FloatArray
    away: FloatArray
    weight: FloatArray


def _of_values(
    data: Data, design: Within, names: npt.NDArray[Any] | None
) -> tuple[FloatArray, ValueDesign]:
    """Slopes on the values that are there, and what they change in standard errors."""
    codes, k, weight = design.codes, design.n_classes, design.weight
    unit = np.sqrt(weight @ design.within**2)
    rows, masks = value_rows(codes, k, design.within / unit, weight)
    sums, counts = np.split(data.value_products(rows, masks), [len(rows)])
    bad = np.flatnonzero(~np.isfinite(sums).all(axis=0))
    if bad.size:
        raise ValueError(
            f"X has infinity in {describe_columns(bad, names)}, or values too large "
            "for a regression on covariates"
        )
    first = np.array([np.flatnonzero(codes == c)[0] for c in range(k)])
    moved = design.away[first]
    found = regress_values(sums, counts, moved / unit)
    inverse = found.inverse / np.multiply.outer(unit, unit)[..., None]
    between = np.linalg.inv((design.within * weight[:, None]).T @ design.within)
    complete = np.diag(1 / np.bincount(codes, weight, k)) + moved @ between @ moved.T
    values = ValueDesign(
        found.class_covariates * unit[:, None],
        inverse,
        found.rank,
        found.confounded,
        complete,
    )
    return found.slopes / unit[:, None], values


def _only(columns: Columns, own: npt.NDArray[np.bool_]) -> tuple[Any, ...]:
    return (
        columns.variable[own],
        columns.level[own],
        columns.is_number[own],
        columns.values[:, own],
    )
