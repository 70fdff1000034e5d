"""The plugin's kernels: all of them open files."""

from __future__ import annotations

from weft.api import Kernels

from . import checkpoint_ops, vocabulary_ops


def register_kernels(kernels: Kernels) -> None:
    checkpoint_ops.register_kernels(kernels)
    vocabulary_ops.register_kernels(kernels)
