"""The plugin of graph passes. heald imports this module at every start, so the module is light."""

from typing import Any, NamedTuple

from heald.api import hookimpl

HEALD_API = (1, 3)


class _Pass(NamedTuple):
    """A pass: its function in `heald_simplify.passes`, its effect, the properties that stay, and the passes before it.

    All are idempotent.
    """

    function: str
    about: str
    preserves: str
    after: tuple[str, ...] = ()


_VALUES = "kept nodes and their values, up to rounding"
_EXACT = "kept nodes and their exact values"

PASSES = {  # by name in config; sessions run them
    "constants": _Pass("constants:fold_constants", "computes nodes that need constants alone", _EXACT),
    "identities": _Pass("identities:remove_identities", "removes nodes that return their input", _EXACT,
                        ("constants",)),
    "slices": _Pass("slices:drop_unread_ends", "leaves out the ends of slices that take one element along their axes",
                    _EXACT, ("identities",)),
    "activations": _Pass("activations:fuse_activations", "makes one node of the nodes of an activation", _VALUES,
                         ("identities",)),
    "cells": _Pass("cells:fuse_lstm_cells", "makes one node of the dozen nodes of an LSTM step", _VALUES,
                   ("identities",)),
    "sequences": _Pass("sequences:fuse_lstm_sequences", "makes one node of all steps of an unrolled LSTM", _VALUES,
                       ("cells",)),
    "loops": _Pass("loops:fuse_recurrent_loops", "makes one node of a loop over the steps of an LSTM, a GRU or an RNN",
                   _VALUES, ("identities",)),
    "pads": _Pass("pads:fold_pads", "turns zeros around images into the padding of a convolution", _EXACT,
                  ("identities",)),
    "batch-norm": _Pass("batch_norm:fold_batch_norm",
                        "multiplies batch normalisation into weights and biases of the layers around it", _VALUES,
                        ("identities",)),
    "scales": _Pass("scales:fold_scaling", "multiplies factors and shifts of channels into weights and biases", _VALUES,
                    ("batch-norm", "pads")),
    "duplicates": _Pass("duplicates:eliminate_common_subexpressions",
                        "merges nodes with equal op, attributes and inputs", _EXACT, ("scales", "slices")),
    "reshapes": _Pass("reshapes:eliminate_reshapes", "makes one product of a Dense layer over sequences", _VALUES,
                      ("scales",)),
    "pools": _Pass("pools:sink_average_pools", "takes means of windows at the place with fewer channels", _VALUES,
                   ("scales",)),
    "strides": _Pass("strides:propagate_strides", "skips the elements that a strided convolution skips", _EXACT,
                     ("scales",)),
    "maps": _Pass("maps:batch_maps", "computes all rows at once that a loop computes one by one", _VALUES,
                  ("loops",)),
    "invariants": _Pass("invariants:hoist_invariants", "computes before a loop what each of its turns would compute",
                        _EXACT, ("duplicates", "maps")),
    "counts": _Pass("counts:count_loops", "makes a For of a While that counts its turns", _EXACT,
                    ("invariants", "reshapes", "pools", "strides")),
}

ON_REQUEST = {  # no session runs these by itself
    "topological-sort": _Pass("topological_sort:sort_topologically", "each node comes after its sources",
                              "everything but the order of nodes"),
    "dead-nodes": _Pass("dead_nodes:remove_dead_nodes",
                        "removes nodes that no kept node needs, and functions that no node calls", _EXACT),
    "dedupe-constants": _Pass("dedupe_constants:dedupe_constants",
                              "one constant for all with equal type, shape, bytes, device and control edges", _EXACT),
    "strip-defaults": _Pass("strip_defaults:strip_defaults", "without attributes that have the default of their op",
                            "everything but these attributes"),
    "add-defaults": _Pass("add_defaults:add_defaults", "with the default of each attribute that a node leaves out",
                          "everything but these attributes"),
    "consolidate-attributes": _Pass("consolidate_attributes:consolidate_attributes",
                                    "a node states the shapes of its outputs once", "everything but these attributes"),
    "drop-output-shapes": _Pass("drop_output_shapes:drop_output_shapes", "no node states _output_shapes",
                                "everything but these attributes"),
    "drop-unregistered-attributes": _Pass("drop_unregistered_attributes:drop_unregistered_attributes",
                                          "no node has an attribute that its op does not declare",
                                          "everything but these attributes"),
    "constant-folding": _Pass("constant_folding:fold_constants_in_order",
                              "computes constants that wait for the nodes whose results they replace", _VALUES),
    "remapper": _Pass("remapper:fuse_layers",
                      "makes one fused op of a layer, its bias or batch normalisation, and its activation", _VALUES),
    "name-compression": _Pass("name_compression:compress_names", "short names for everything in functions",
                              "the graph's nodes, names of functions, values"),
}


@hookimpl
def heald_passes(registry: Any) -> None:
    for stage, rows in (("graph", PASSES), ("on_request", ON_REQUEST)):
        for name, row in rows.items():
            registry.add(name, f"heald_simplify.passes.{row.function}", stage=stage, after=row.after, about=row.about,
                         preserves=row.preserves)
