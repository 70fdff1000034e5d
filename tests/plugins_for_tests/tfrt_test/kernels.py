"""All kernels of the plugin."""

from __future__ import annotations

from . import asynchronous, failing, native, simple, values


def register(kernels):
    for module in (simple, failing, asynchronous, values, native):
        module.register(kernels)
