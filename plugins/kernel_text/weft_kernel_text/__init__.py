"""Kernel source text for device plugins: tables and templates, no driver."""

from .dialect import CUDA, CUDA_GPU, DIALECTS, OPENCL, OPENCL_CPU, OPENCL_GPU, Dialect, Target
from .elementwise import elementwise
from .plan import INPUT, OUTPUT, SCRATCH, SIZE, Argument, KernelText, Plan
from .steps import Literal, Step, has, step

__all__ = [
    "CUDA", "CUDA_GPU", "DIALECTS", "INPUT", "OPENCL", "OPENCL_CPU", "OPENCL_GPU", "OUTPUT", "SCRATCH", "SIZE",
    "Argument", "Dialect", "KernelText", "Literal", "Plan", "Step", "Target", "elementwise", "has", "step",
]
