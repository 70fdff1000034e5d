"""Kernels for the CPU device over oneDNN's C API, through cffi and without a compiler.

Modules: `library` opens oneDNN, `memory` and `primitives` wrap its C API, and `workspace` lends memory between
primitives. `packing` lays out large weights in threads, `epilogue` fuses elementwise functions behind products.
`contraction` makes products of einsums, `function_matching` finds activations in graphs. `single_thread` keeps little
work on one thread, `winograd_tiling` cuts images. `bf16_pass` is the pass to bfloat16. `kernels/` has the families.
"""
