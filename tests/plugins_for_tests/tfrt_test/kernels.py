"""All kernels of the plugin."""

from __future__ import annotations

from . import asynchronous, failing, native, resnet, simple, values


def register(kernels):
    for module in (simple, failing, asynchronous, values, resnet, native):
        module.register(kernels)
