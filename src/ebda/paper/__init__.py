"""The paper's studies: the settings of each method, as data."""

from ebda.paper.methods import classifier

__all__ = ["classifier"]
