"""The plugin's kernels: all of them open files. A family is imported at the first request for one of its ops."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from heald.api import Kernels

FAMILIES = {
    "checkpoint_ops": ("MergeV2Checkpoints", "Restore", "RestoreSlice", "RestoreV2", "Save", "SaveSlices", "SaveV2"),
    "vocabulary_ops": ("InitializeTableFromTextFileV2",),
}


def register_kernels(kernels: Kernels) -> None:
    for family, ops in FAMILIES.items():
        kernels.later(ops, partial(_register_family, family))


def _register_family(family: str, kernels: Kernels) -> None:
    import_module(f".{family}", __package__).register_kernels(kernels)
