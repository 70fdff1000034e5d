"""Host programs as users of TFRT know them: the kernels of its dialects, in `kernels`."""
