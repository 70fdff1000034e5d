"""OpenCL devices for heald, on pyopencl: GPUs and accelerators of all vendors, and CPUs through PoCL."""
