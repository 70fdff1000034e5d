"""A plugin to copy: a simulated accelerator with kernels and an op of its own, an allocator and a work queue."""
