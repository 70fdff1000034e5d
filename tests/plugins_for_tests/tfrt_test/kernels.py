"""All kernels of the plugin."""

from __future__ import annotations

from . import asynchronous, failing, native, op_attributes, resnet, simple, values


def register(kernels):
    for module in (simple, failing, asynchronous, values, resnet, native, op_attributes):
        module.register(kernels)
