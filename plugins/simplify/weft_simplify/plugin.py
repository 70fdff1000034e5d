"""The plugin of graph passes. weft imports this module at every start, so the module is light."""

from typing import Any

from weft.api import hookimpl

WEFT_API = (1, 0)

PASSES = {  # by name in config: the function, and the passes that run before it
    "constants": ("weft_simplify.constant_folding:fold_constants", ()),
    "identities": ("weft_simplify.identities:remove_identities", ("constants",)),
    "cells": ("weft_simplify.lstm_cells:fuse_lstm_cells", ("identities",)),
    "sequences": ("weft_simplify.lstm_sequences:fuse_lstm_sequences", ("cells",)),
    "pads": ("weft_simplify.pads:fold_pads", ("identities",)),
    "batch-norm": ("weft_simplify.batch_norm:fold_batch_norm", ("identities",)),
    "scales": ("weft_simplify.scaling:fold_scaling", ("batch-norm", "pads")),
    "duplicates": ("weft_simplify.common_subexpressions:eliminate_common_subexpressions", ("scales",)),
    "reshapes": ("weft_simplify.reshapes:eliminate_reshapes", ("scales",)),
    "pools": ("weft_simplify.pools:sink_average_pools", ("scales",)),
    "strides": ("weft_simplify.strides:propagate_strides", ("scales",)),
}

ON_REQUEST = {  # functions of passes that no session runs by itself
    "topological-sort": "weft_simplify.graph_order:sort_topologically",
    "dead-nodes": "weft_simplify.dead_nodes:remove_dead_nodes",
    "dedupe-constants": "weft_simplify.shared_constants:dedupe_constants",
    "strip-defaults": "weft_simplify.default_attributes:strip_defaults",
    "add-defaults": "weft_simplify.default_attributes:add_defaults",
}


@hookimpl
def weft_passes(registry: Any) -> None:
    for name, (function, after) in PASSES.items():
        registry.add(name, function, after=after)
    for name, function in ON_REQUEST.items():
        registry.add(name, function, stage="on_request")
