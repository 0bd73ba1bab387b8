"""The Dirichlet process prior: the paper's Algorithm 1, and a fit that converges."""
