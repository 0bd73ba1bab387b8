"""Loops over arrays, written for speed, and nothing else.

Each kernel is a function of whole arrays. Blocks, threads and the choice between NumPy
and Numba are its own business; what it computes is said by the module that calls it.
"""
