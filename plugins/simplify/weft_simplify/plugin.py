"""What the plugin brings. This module is imported whenever weft starts: it is light."""

from typing import Any

from weft.api import hookimpl

WEFT_API = (1, 0)

PASSES = {  # by name: the function, and the passes that make work for it
    "constants": ("weft_simplify.constants:evaluated", ()),
    "identities": ("weft_simplify.identities:removed", ("constants",)),
    "cells": ("weft_simplify.cells:joined", ("identities",)),
    "sequences": ("weft_simplify.sequences:joined", ("cells",)),
    "pads": ("weft_simplify.pads:explicit", ("identities",)),
    "batch-norm": ("weft_simplify.batch_norm:folded", ("identities",)),
    "scales": ("weft_simplify.scales:folded", ("batch-norm", "pads")),
    "duplicates": ("weft_simplify.duplicates:merged", ("scales",)),
    "reshapes": ("weft_simplify.reshapes:avoided", ("scales",)),
    "pools": ("weft_simplify.pools:behind", ("scales",)),
    "strides": ("weft_simplify.strides:moved", ("scales",)),
}


@hookimpl
def weft_passes(registry: Any) -> None:
    for name, (function, after) in PASSES.items():
        registry.add(name, function, after=after)
