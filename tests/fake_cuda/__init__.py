"""A CUDA driver without a GPU: the plugin's driver functions, over texts that the machine's C++ compiler compiled.

It checks the program that drives it: order of streams, freed memory, missing waits, arguments. Its success says that
the device's logic and the kernels' text agree, and nothing about a GPU.
"""
