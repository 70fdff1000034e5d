"""Kernels for the CPU device over oneDNN's C API, through cffi and without a compiler."""
