"""The paper's studies: the settings of each method, and the oracle rules."""

from ebda.paper.methods import classifier
from ebda.paper.oracles import SupportOracle, optimal_rule

__all__ = ["SupportOracle", "classifier", "optimal_rule"]
