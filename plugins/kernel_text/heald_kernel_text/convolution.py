"""NHWC convolution as a product of the images' patches and the filter, group by group."""

from __future__ import annotations

from math import prod

from heald.api import DType

from .broadcast import Dims
from .dialect import Target
from .epilogue import Epilogue
from .gemm import gemm
from .gemm_problem import GemmProblem
from .lhs import Lhs, Matrix, Patches
from .plan import Plan
from .window import Window


def conv2d(target: Target, dtype: DType, kernel: Dims, window: Window, epilogue: Epilogue | None = None) -> Plan:
    """Inputs: images NHWC, filter HWIO, the epilogue's. The images' channels may be several groups of the filter's."""
    problem, lhs = convolution_problem(dtype, kernel, window)
    return gemm(target, "Conv2D", problem, lhs, epilogue or Epilogue())


def convolution_problem(dtype: DType, kernel: Dims, window: Window) -> tuple[GemmProblem, Lhs]:
    """The product that a convolution is, and its left operand."""
    channels = window.shape[3]
    depth, filters = kernel[2:]
    groups = channels // depth
    columns = filters // groups
    problem = GemmProblem(
        dtype, groups, window.places, prod(kernel[:3]), columns, b_row=filters, b_column=1, b_batch=columns,
        y_row=filters, y_batch=columns, channel_batch=columns,
    )
    return problem, Matrix(dtype, channels, 1, depth) if window.is_point else Patches(dtype, window, depth)
