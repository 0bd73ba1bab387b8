"""Data on disk, read in blocks, in one pass; the next block is read meanwhile.

``EBClassifier().fit(X, y)`` takes ``numpy.memmap``, ``zarr.Array``, ``h5py.Dataset``,
``AnnData`` in backed mode or its ``X``, ``pyarrow.dataset.Dataset``, and what
:func:`open_parquet` returns. A :class:`Source` knows how to read one of them;
everything else is the same for all.
"""

from ebda.data.disk.parquet import ParquetTable, open_parquet
from ebda.data.disk.passes import BlockedData
from ebda.data.disk.source import Block, Source

__all__ = ["Block", "BlockedData", "ParquetTable", "Source", "open_parquet"]
