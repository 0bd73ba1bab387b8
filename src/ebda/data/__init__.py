"""What X may be: in memory, on disk, on a Dask cluster, or on a GPU.

The steps of a fit see X through two protocols, :class:`Data` and :class:`Samples`.
:func:`as_data` finds the implementation for what a user gives; :class:`InMemory` is the
one for arrays.
"""

from ebda.data.device import DeviceMemoryWarning, as_host, like, on_device
from ebda.data.finite import NonFiniteError
from ebda.data.memory import InMemory
from ebda.data.opening import OPENERS, Opener, as_data, opener_of
from ebda.data.protocols import Data, GapRule, Labels, Samples
from ebda.data.samples import RowSamples
from ebda.kernels.residuals import NeighbourSums

__all__ = [
    "OPENERS",
    "Data",
    "DeviceMemoryWarning",
    "GapRule",
    "InMemory",
    "Labels",
    "NeighbourSums",
    "NonFiniteError",
    "Opener",
    "RowSamples",
    "Samples",
    "as_data",
    "as_host",
    "like",
    "on_device",
    "opener_of",
]
