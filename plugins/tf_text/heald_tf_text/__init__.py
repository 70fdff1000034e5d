"""The ops of TensorFlow Text: their table, their metadata functions, and kernels for the CPU."""
