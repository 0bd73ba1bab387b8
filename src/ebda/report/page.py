"""The page: one file that needs no other, and requests nothing from the network."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import numpy.typing as npt

from ebda.evaluation import Evaluation
from ebda.files import write
from ebda.palette import COLOURS, ON_DARK
from ebda.report.case import Case, scored
from ebda.report.cautions import cautions
from ebda.report.features import payload
from ebda.report.fitted import fit, top_features
from ebda.report.markup import Markup, embedded_json, join, tag, text
from ebda.report.overview import caution_list, headline, summary
from ebda.report.prediction import prediction, samples
from ebda.report.provenance import provenance
from ebda.report.words import count
from ebda.rule.shrinkage import pointwise

_SCRIPTS = ("data.js", "plot.js", "figures.js", "table.js", "page.js")
_STYLES = ("page.css", "figures.css", "print.css")
_PACKAGES = ("ebda", "numpy", "scipy", "scikit-learn")


def render(
    model: Any,
    *,
    X: Any = None,
    y: npt.ArrayLike | None = None,
    evaluation: Evaluation | None = None,
    sample_names: Iterable[Any] | None = None,
    data: Mapping[str, Any] | None = None,
    command: str | None = None,
    covariates: Any = None,
) -> str:
    """The report of a fitted model as one HTML page.

    Parameters
    ----------
    model : EBClassifier
        Fitted, or loaded from a file.
    X : array-like or sparse matrix of shape (n_samples, n_features), optional
        Samples, which are searched for batches and for features that separate the
        classes perfectly. Without `evaluation`, their predictions are shown.
    y : array-like of shape (n_samples,), optional
        True classes of these samples.
    evaluation : Evaluation, optional
        Held-out predictions, from :func:`ebda.evaluation.cross_validate` or
        :func:`ebda.evaluation.evaluate`. Without them the page shows no error.
    sample_names : iterable, optional
        Names of the samples of `evaluation` or of X, whichever has as many.
    data : mapping, optional
        What to say about the data: "source", "target", "n_samples", "n_features",
        "transformation", or anything else.
    command : str, optional
        The command that makes the page.
    covariates : array-like or data frame of shape (n_samples, n_covariates), optional
        Those of X, as for ``predict``. Without them the mean of the fit is taken, and a
        page about a model that was adjusted says so.

    Returns
    -------
    str
        The page, which requests nothing from the network.

    Examples
    --------
    >>> import numpy as np
    >>> from ebda import EBClassifier
    >>> from ebda.report import render
    >>> X = np.random.default_rng(0).normal(size=(24, 30))
    >>> y = np.repeat(["sick", "well"], 12)
    >>> page = render(EBClassifier().fit(X, y), X=X, y=y)
    >>> "sick against well" in page
    True
    """
    told = evaluation, sample_names, data, command, covariates
    case = Case.checked(model, X, y, *told)
    found = scored(case)
    features = payload(case)
    shown = len(base64.b64decode(features["column"])) // 4
    script, style = _asset(*_SCRIPTS), palette() + _asset(*_STYLES)
    target = case.data.get("target")
    title = headline(case) if target is None else f"{target}: {headline(case)}"
    source = case.data.get("source")
    return Template(_asset("page.html")).substitute(
        policy=(
            f"default-src 'none'; script-src '{_hash(script)}'; "
            f"style-src '{_hash(style)}'; img-src data:; base-uri 'none'; "
            "form-action 'none'"
        ),
        title=text(title),
        source="" if source is None else tag("p", source, class_="source"),
        style=style,
        script=script,
        summary=summary(case),
        cautions=caution_list(cautions(case)),
        prediction=prediction(case, found),
        samples=samples(case, found),
        chooser=_chooser(case),
        kept=_kept(case, shown),
        curves=_curves(case),
        top=top_features(case),
        fit=fit(case),
        provenance=provenance(case, _versions(), _date()),
        data=embedded_json(features),
    )


def write_report(path: str | os.PathLike[str], model: Any, **options: Any) -> None:
    """Write the report of a fitted model; if that fails, an older file stays as it was.

    Parameters
    ----------
    path : path-like
        Where to write the page.
    model, **options
        As in :func:`render`: X, y, evaluation, sample_names, data, command,
        covariates.
    """
    write(Path(path), render(model, **options))


def palette() -> str:
    """The colours of the classes as a style sheet, in light, in dark and on paper.

    >>> "--c9: #5c4a12" in palette()
    True
    """
    light, dark = (
        " ".join(f"--c{k}: {colour};" for k, colour in enumerate(colours))
        for colours in (COLOURS, ON_DARK)
    )
    wishes = ':root:not([data-theme="light"])'
    rules = [
        f":root {{ {light} }}",
        f':root[data-theme="dark"] {{ {dark} }}',
        f"@media (prefers-color-scheme: dark) {{ {wishes} {{ {dark} }} }}",
        f"@media print {{ :root, :root[data-theme], {wishes} {{ {light} }} }}",
    ]
    for k in range(len(COLOURS)):
        rules.append(f".dot.c{k} {{ fill: var(--c{k}); }}")
        rules.append(f".dots.c{k} {{ stroke: var(--c{k}); }}")
        rules.append(f".side.c{k}::before {{ color: var(--c{k}); }}")
    return "\n".join(rules) + "\n"


def _asset(*names: str) -> str:
    folder = files("ebda.report") / "assets"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


def _hash(content: str) -> str:
    """The hash by which the Content-Security-Policy allows a script or style."""
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _chooser(case: Case) -> Markup:
    """Menu of the contrasts, where there are several."""
    if len(case.contrasts) == 1:
        return Markup("")
    options = [tag("option", c, value=k) for k, c in enumerate(case.contrasts)]
    menu = tag("select", *options, id="contrast")
    return tag("label", "Class compared with all ", menu)


def _kept(case: Case, n: int) -> Markup:
    """Which features the page holds, unless it holds all."""
    if n == case.n_features:
        return Markup("")
    words = (
        f"The page holds the {count(n, 'feature')} with the strongest evidence, out of "
        f"{count(case.n_features)}; the model's ranking has all of them."
    )
    return tag("p", words, class_="kept")


def _curves(case: Case) -> Markup:
    """What each curve of the shrinkage plot is."""
    curves = [
        join([tag("b", name), f": {entry.line}"]) for name, entry in pointwise().items()
    ]
    words = (
        ". A difference is taken as zero where the probability of zero exceeds "
        f"{case.model.zero_threshold:g}."
    )
    return join([join(curves, "; "), words])


def _versions() -> dict[str, str]:
    packages = {name: version(name) for name in _PACKAGES}
    return {**packages, "Python": platform.python_version()}


def _date() -> str:
    """Now, or the moment that a reproducible build sets."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.fromtimestamp(int(fixed), UTC) if fixed else datetime.now(UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
