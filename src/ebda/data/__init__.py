"""What X may be: in memory, on disk, on a Dask cluster.

:mod:`ebda.data.protocols` says what the steps ask of it.
"""
