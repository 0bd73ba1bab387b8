"""The two real data sets that come with the package."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
from sklearn.utils import Bunch


def _bunch(name: str, about: str, **extra: str) -> Bunch:
    path = files("ebda.datasets") / "data" / f"{name}.npz"
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        raw = dict(archive)
    source = f"Source: {raw['source']}. Licence: {raw['licence']}."
    return Bunch(
        data=raw["X"],
        target=raw["y"],
        target_names=np.unique(raw["y"]),
        feature_names=raw["feature_names"],
        split=raw["split"],
        DESCR=f"{about}\n\n{source}",
        **{key: raw[column] for key, column in extra.items()},
    )


def load_golub() -> Bunch:
    """Leukemia expression data of Golub et al. (1999), the paper's real data.

    Raw Affymetrix intensities, not log-transformed: 7129 probes in 72 patients with
    acute lymphoblastic leukemia (ALL, 47) or acute myeloid leukemia (AML, 25).

    Returns
    -------
    Bunch
        data : float32 array of shape (72, 7129); target : "ALL" or "AML";
        feature_names : probe names; split : "train" (38) or "test" (34), as in the
        original paper; subtype : "ALL-B", "ALL-T" or "AML"; sample_id; target_names;
        DESCR with source and licence.

    Examples
    --------
    >>> from ebda.datasets import load_golub
    >>> golub = load_golub()
    >>> golub.data.shape, (golub.split == "train").sum().item()
    ((72, 7129), 38)
    """
    return _bunch(
        "golub",
        "Golub et al., Molecular classification of cancer, Science 286 (1999), "
        "531-537: raw intensities of 7129 probes, 38 training and 34 test samples.",
        subtype="y3",
        sample_id="sample_id",
    )


def load_khan() -> Bunch:
    """Small round blue cell tumours of Khan et al. (2001): four classes.

    cDNA log ratios of 2308 genes in 83 samples: Burkitt lymphoma (BL), Ewing
    sarcoma (EWS), neuroblastoma (NB) and rhabdomyosarcoma (RMS).

    Returns
    -------
    Bunch
        data : float32 array of shape (83, 2308); target; feature_names : gene
        descriptions, some of which are not unique; split : "train" (63) or "test"
        (20); target_names; DESCR with source and licence.

    Examples
    --------
    >>> from ebda.datasets import load_khan
    >>> load_khan().target_names.tolist()
    ['BL', 'EWS', 'NB', 'RMS']
    """
    return _bunch(
        "khan",
        "Khan et al., Classification and diagnostic prediction of cancers using gene "
        "expression profiling, Nature Medicine 7 (2001), 673-679: log ratios of 2308 "
        "genes, 63 training and 20 test samples.",
    )
