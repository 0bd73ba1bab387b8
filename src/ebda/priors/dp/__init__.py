"""The Dirichlet process prior: the paper's Algorithm 1, and its converged form."""
