"""CUDA devices for heald, on cuda-core and NVRTC: the GPUs of NVIDIA."""
