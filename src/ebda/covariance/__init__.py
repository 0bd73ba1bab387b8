"""The within-class covariance: what the rule divides by, and what z is freed from."""
