"""A heald plugin to copy: a make-believe accelerator, its kernels, an op of its own; an allocator and a work queue."""
