"""Data types that live longer than one kernel call: resources of a session, and the values of variant tensors.

Kernels import this package. The package imports no kernel.
"""
