"""Kernel source text for device plugins: tables and templates, no driver.

`NODES` has the plan of each op; the functions beside it serve fused kernels. `bind_plan` makes the kernel of a node
from a plan and a `LaunchDriver`.
"""

from .bound_plan import BoundPlan, Launch, LaunchDriver, bind_plan
from .convolution import conv2d
from .copies import transpose
from .depthwise import depthwise_conv2d
from .dialect import CUDA, CUDA_GPU, DIALECTS, METAL_GPU, OPENCL, OPENCL_CPU, OPENCL_GPU, WGSL_GPU, Dialect, Target
from .elementwise import elementwise
from .epilogue import CHANNEL, FULL, Epilogue, bias
from .expression import Literal, Step, has
from .fused_plans import HEADS, Product, fused_product
from .gemm_problem import GemmProblem
from .host_results import register_host_results
from .image_plans import window_of
from .kernel_parts import KernelParts, Language, Pointer
from .lhs import Lhs, Matrix, Patches
from .matmul import matmul
from .nodes import ALIASES, FUSIONS, NODES, FusedKernel, NodeKernel
from .plan import GROUPS, INPUT, OUTPUT, SCRATCH, SIZE, Argument, KernelText, Plan, check_plan, check_sizes
from .products import Ending, check_product, product_problem, simple_ending
from .window import Window, sliding

__all__ = [
    "ALIASES", "CHANNEL", "CUDA", "CUDA_GPU", "DIALECTS", "FULL", "FUSIONS", "GROUPS", "HEADS", "INPUT",
    "METAL_GPU", "NODES", "OPENCL", "OPENCL_CPU", "OPENCL_GPU", "OUTPUT", "SCRATCH", "SIZE", "WGSL_GPU",
    "Argument", "BoundPlan", "Dialect", "Ending", "Epilogue", "FusedKernel",
    "GemmProblem", "KernelParts", "KernelText", "Language", "Launch", "LaunchDriver", "Lhs", "Literal", "Matrix",
    "NodeKernel", "Patches", "Plan", "Pointer", "Product", "Step", "Target", "Window", "bias", "bind_plan",
    "check_plan", "check_product", "check_sizes", "conv2d", "depthwise_conv2d", "elementwise", "fused_product",
    "has", "matmul", "product_problem", "register_host_results", "simple_ending", "sliding", "transpose",
    "window_of",
]
