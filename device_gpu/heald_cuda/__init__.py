"""CUDA devices for heald, on cuda-core and NVRTC: the GPUs of NVIDIA.

Modules: `driver` makes all calls of CUDA, `command_queue` the order of a device's work. `marks` has points in streams,
`staging` pinned memory, `memory` and `programs` buffers and compiled texts. `native` is the handle that kernels use,
`foreign` reads arrays of other libraries.
"""
