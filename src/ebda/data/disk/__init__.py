"""Data that does not fit in memory: read in blocks, in one pass, the next one ahead.

``EBClassifier().fit(X, y)`` takes these as they are: ``numpy.memmap``, ``zarr.Array``,
``h5py.Dataset``, ``AnnData`` in backed mode or its ``X``, ``pyarrow.dataset.Dataset``,
and what :func:`open_parquet` returns. A :class:`~ebda.data.disk.source.Source` knows how
one of them is read; everything else is the same for all.
"""

from ebda.data.disk.parquet import ParquetTable, open_parquet
from ebda.data.disk.source import Block, Source

__all__ = ["Block", "ParquetTable", "Source", "open_parquet"]
