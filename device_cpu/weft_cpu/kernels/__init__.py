"""NumPy kernels with TensorFlow's semantics, a family a module: the reference that other devices are compared with."""

from importlib import import_module

from weft.api import Kernels

FAMILIES = (
    "activations", "arithmetic", "array", "bitwise", "blocks", "broadcasting", "candidates", "cast", "checks",
    "codec", "color", "complex_numbers", "conv", "conv_grad", "counting", "ctc_decoder", "ctc_loss", "detection",
    "diagonal", "dilation", "edit_distance", "einsum", "elementwise", "erf", "examples", "fft", "filling",
    "fused_conv", "gradients", "hashing", "indexed", "joining", "linalg", "linear", "loss", "lrn", "messages", "nn",
    "order", "parsing", "pool", "pool_grad", "quantize", "queues", "ragged", "random", "random_crops", "recurrent",
    "reduction", "regex", "reordering", "resize", "sampling", "scan", "search", "segment", "sets", "slicing",
    "sparse", "special", "stacks", "string_formatting", "string_joining", "string_splitting", "strings",
    "summaries", "tables", "tensor_arrays", "tensor_lists", "training", "unicode", "variables", "variant_sums",
)


def register(kernels: Kernels) -> None:
    for family in FAMILIES:
        import_module(f".{family}", __name__).register(kernels)
