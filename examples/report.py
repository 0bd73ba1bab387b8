"""The report of the leukemia data, written from Python.

python examples/report.py [FILE]
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd

from ebda import EBClassifier
from ebda.datasets import load_golub
from ebda.evaluation import cross_validate
from ebda.report import write_report


def main(path: str = "golub.html", n_folds: int = 5) -> None:
    """Fit, cross-validate, write the page."""
    golub = load_golub()
    logarithms = np.sign(golub.data) * np.log1p(np.abs(golub.data))
    X = pd.DataFrame(logarithms, columns=golub.feature_names)  # names of features
    model = EBClassifier().fit(X, golub.target)
    write_report(
        path,
        model,
        X=X,  # is searched for batches and leaks
        y=golub.target,
        evaluation=cross_validate(EBClassifier(), X, golub.target, n_folds),
        sample_names=[f"patient {number}" for number in golub.sample_id],
        data={
            "source": "Golub et al. (1999), Affymetrix intensities of 72 patients",
            "target": "leukemia",
            "n_samples": X.shape[0],
            "n_features": X.shape[1],
            "transformation": "sign(x) log(1 + |x|)",
        },
        command=f"python {' '.join(sys.argv)}",
    )
    print(f"Wrote {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
