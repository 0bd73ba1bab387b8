"""The honest error of a classifier, now and with more samples.

- `cross_validate`, `evaluate`: held-out predictions, as an `Evaluation`.
- `permutation_test`: that error beside those with permuted labels, as a
  `PermutationTest`.
- `plan`, `plan_from_evaluation`: the error to expect with other numbers of samples, as
  a `Plan`.
- `RepeatedEvaluation`: cross-validations with several deals of the folds.
- `panel`: the error against the number of features, and the smallest set of them that
  will do, as a `Panel`.
- `RepeatedEvaluation`: cross-validations with several deals of the folds.
- `Measures`, `Measure`: error, AUC, sensitivity and specificity, with intervals.
- `calibration_bins`: observed shares beside predicted probabilities.
"""

from __future__ import annotations

from ebda.evaluation.choosing import panel
from ebda.evaluation.folds import cross_validate, evaluate
from ebda.evaluation.held_out import CalibrationBins, Evaluation, calibration_bins
from ebda.evaluation.measures import Measure, Measures
from ebda.evaluation.panels import Panel, PanelFeatures
from ebda.evaluation.permutations import PermutationTest, permutation_test
from ebda.evaluation.planned import Plan
from ebda.evaluation.planning import plan, plan_from_evaluation
from ebda.evaluation.repeated import RepeatedEvaluation

__all__ = [
    "CalibrationBins",
    "Evaluation",
    "Measure",
    "Measures",
    "Panel",
    "PanelFeatures",
    "PermutationTest",
    "Plan",
    "RepeatedEvaluation",
    "calibration_bins",
    "cross_validate",
    "evaluate",
    "panel",
    "permutation_test",
    "plan",
    "plan_from_evaluation",
]
