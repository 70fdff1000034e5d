"""OpenCL devices for weft, on pyopencl: GPUs and accelerators of all vendors, and CPUs through PoCL."""
