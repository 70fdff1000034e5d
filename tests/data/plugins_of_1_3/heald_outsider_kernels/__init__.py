"""A kernel pack to copy: kernels for a device of another plugin, the CPU."""
