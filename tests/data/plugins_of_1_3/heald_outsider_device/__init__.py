"""A device plugin to copy: a make-believe accelerator with memory of its own, kernels, and an op."""
