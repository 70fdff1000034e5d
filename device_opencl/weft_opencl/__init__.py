"""OpenCL devices for weft, on pyopencl: GPUs and accelerators of whatever vendor, and CPUs through PoCL."""
