"""What X may be: in memory, on disk, on a Dask cluster.

:mod:`ebda.data.protocols` says what the steps ask of it.
"""

from ebda.data.memory import InMemory
from ebda.data.opening import as_data
from ebda.data.protocols import Data
from ebda.data.samples import Samples

__all__ = ["Data", "InMemory", "Samples", "as_data"]
