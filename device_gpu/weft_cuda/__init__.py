"""CUDA devices for weft, on cuda-core and NVRTC: the GPUs of NVIDIA."""
