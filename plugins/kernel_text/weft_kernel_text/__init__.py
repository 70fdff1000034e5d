"""Kernel source text for device plugins: tables and templates, no driver.

`NODES` has the plan of each op; the functions beside it serve fused kernels.
"""

from .convolution import conv2d
from .depthwise import depthwise_conv2d
from .dialect import CUDA, CUDA_GPU, DIALECTS, OPENCL, OPENCL_CPU, OPENCL_GPU, Dialect, Target
from .elementwise import elementwise
from .epilogue import CHANNEL, FULL, Epilogue, bias
from .expression import Literal, Step, has
from .matmul import matmul
from .nodes import ALIASES, FUSIONS, NODES, FusedKernel, NodeKernel
from .plan import INPUT, OUTPUT, SCRATCH, SIZE, Argument, KernelText, Plan
from .window import Window, sliding

__all__ = [
    "ALIASES", "CHANNEL", "CUDA", "CUDA_GPU", "DIALECTS", "FULL", "FUSIONS", "INPUT", "NODES", "OPENCL", "OPENCL_CPU",
    "OPENCL_GPU", "OUTPUT", "SCRATCH", "SIZE", "Argument", "Dialect", "Epilogue", "FusedKernel", "KernelText",
    "Literal", "NodeKernel", "Plan", "Step", "Target", "Window", "bias", "conv2d", "depthwise_conv2d", "elementwise",
    "has", "matmul", "sliding",
]
