"""A weft plugin to copy: a make-believe accelerator, its kernels, and an op of its own."""
