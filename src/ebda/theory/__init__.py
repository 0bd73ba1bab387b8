"""Theoretical error rates (Section 2 of the paper), with known parameters or prior.

- `error_rate`, `error_rates`, `optimal_error`, `c_p`: exact values for given means and
  covariance (equation 5).
- `elliptical_error_rate`: the same for elliptical distributions, such as the
  multivariate t, by the distribution of the scale of a sample.
- `optimal_worst_case`, `worst_case_error`, `theorem1_bound`: worst cases over the
  paper's parameter space (equation 6 and Theorem 1).
- `theorem2`, `growth`: how far a rule may be from the optimal one (Theorem 2), and the
  quantities that the theorems need to vanish.
- `check_conditions`: whether an estimator of eta meets Conditions 1 and 2.
- `hard_threshold`, `hard_threshold_risk`, `t_tail_bound`, `null_effects_bound`: hard
  thresholding at b_n (Remark 2), and what the proofs need of it.
- `expected_error`: the expected error of a classifier that knows the prior. To plan
  from data that are there, use `ebda.evaluation.plan`.

A covariance is given as a number, a vector, a matrix, an `AR1` or a `LowRank`; see
`as_covariance`.
"""

from __future__ import annotations

from ebda.theory.conditions import Conditions, check_conditions
from ebda.theory.covariances import (
    AR1,
    Covariance,
    Dense,
    Diagonal,
    LowRank,
    as_covariance,
)
from ebda.theory.elliptical import (
    MixedScale,
    Scale,
    StudentScale,
    elliptical_error_rate,
)
from ebda.theory.known_prior import expected_error
from ebda.theory.optimality import Growth, Optimality, growth, theorem2
from ebda.theory.rates import c_p, error_rate, error_rates, optimal_error
from ebda.theory.thresholding import (
    hard_threshold,
    hard_threshold_risk,
    null_effects_bound,
    t_tail_bound,
)
from ebda.theory.worst_case import optimal_worst_case, theorem1_bound, worst_case_error

__all__ = [
    "AR1",
    "Conditions",
    "Covariance",
    "Dense",
    "Diagonal",
    "Growth",
    "LowRank",
    "MixedScale",
    "Optimality",
    "Scale",
    "StudentScale",
    "as_covariance",
    "c_p",
    "check_conditions",
    "elliptical_error_rate",
    "error_rate",
    "error_rates",
    "expected_error",
    "growth",
    "hard_threshold",
    "hard_threshold_risk",
    "null_effects_bound",
    "optimal_error",
    "optimal_worst_case",
    "t_tail_bound",
    "theorem1_bound",
    "theorem2",
    "worst_case_error",
]
