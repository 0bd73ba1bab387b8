"""What X may be: in memory, on disk, or on a Dask cluster.

The steps of a fit see X through two protocols, :class:`Data` and :class:`Samples`.
:func:`as_data` finds the implementation for what a user gives; :class:`InMemory` is the
one for arrays.
"""

from ebda.data.finite import NonFiniteError
from ebda.data.memory import InMemory
from ebda.data.opening import OPENERS, Opener, as_data
from ebda.data.protocols import Data, GapRule, Labels, Samples
from ebda.data.samples import RowSamples
from ebda.kernels.residuals import NeighbourSums

__all__ = [
    "OPENERS",
    "Data",
    "GapRule",
    "InMemory",
    "Labels",
    "NeighbourSums",
    "NonFiniteError",
    "Opener",
    "RowSamples",
    "Samples",
    "as_data",
]
