"""Metadata functions of TensorFlow's ops, a family a module; RULES has them by op."""

from importlib import import_module

from .rules import RULES

__all__ = ["RULES"]
FAMILIES = (
    "array", "blocks", "broadcasting", "codec", "color", "conv", "counting", "ctc", "detection", "diagonal",
    "elementwise", "fft", "filling", "indexed", "joining", "linalg", "linear", "loss", "nn", "order", "parsing",
    "pool", "quantize", "queues", "ragged", "random", "recurrent", "reduction", "reordering", "resize", "scan",
    "search", "segment", "sets", "slicing", "sparse", "stacks", "strings", "summaries", "tables", "tensor_arrays",
    "tensor_lists", "training", "variables",
)

for _family in FAMILIES:
    import_module(f".{_family}", __name__)
