"""The ops: their signatures in TF-DF, and the metadata functions, which have all checks of types and shapes.

An inference op takes its features in banks. The first three banks are matrices with a row for each example and a column
for each feature of one kind. The other three are one bank of categorical sets, a ragged tensor of three dimensions:
`values`, the splits of the values into sets (`dim_1`), and the splits of the sets into examples (`dim_2`). A bank of a
kind that the model lacks has no columns, and its number of rows means nothing.
"""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, OpSpec, ValueInfo, dtypes, info, shape_text

MATRICES = ("numerical_features", "boolean_features", "categorical_int_features")
SETS = ("categorical_set_int_features_values", "categorical_set_int_features_row_splits_dim_1",
        "categorical_set_int_features_row_splits_dim_2")
_BANKS = [f"{name}: {kind}" for name, kind in zip((*MATRICES, *SETS), ("float", "float", "int32", "int32", "int64",
                                                                      "int64"), strict=True)]


def _handle(_: Attrs) -> ValueInfo:
    return info(dtypes.resource, ())


def _load(_: Attrs, *inputs: ValueInfo) -> tuple[()]:
    *handle, path = inputs
    _check_handle(*handle)
    if path.shape not in (None, (), (1,), (None,)):
        raise InvalidArgument(f"path is one text, given a tensor of shape {shape_text(path.shape)}")
    return ()


def _predict(attrs: Attrs, *inputs: ValueInfo) -> tuple[ValueInfo, ValueInfo]:
    _check_handle(*inputs[6:])
    width = attrs["dense_output_dim"]
    return info(dtypes.float32, (_example_count(inputs[:6]), width)), info(dtypes.string, (width,))


def _leaves(_: Attrs, *inputs: ValueInfo) -> ValueInfo:
    _check_handle(*inputs[6:])
    return info(dtypes.int32, (_example_count(inputs[:6]), None))


def _check_handle(*handles: ValueInfo) -> None:
    for handle in handles:
        if handle.shape not in (None, ()):
            raise InvalidArgument(f"the handle of a model is a scalar, given one of shape {shape_text(handle.shape)}")


def _example_count(banks: tuple[ValueInfo, ...]) -> int | None:
    """Return the number of examples, or None while it is unknown. Raises InvalidArgument for banks that disagree."""
    for names, rank in ((MATRICES, 2), (SETS, 1)):
        for name, bank in zip(names, banks[:3] if rank == 2 else banks[3:], strict=True):
            if bank.shape is not None and len(bank.shape) != rank:
                raise InvalidArgument(f"{name} has {rank} dimensions, given shape {shape_text(bank.shape)}")
    used_shapes = [bank.shape for bank in banks[:3] if bank.shape is not None and bank.shape[1]]
    counts = {shape[0] for shape in used_shapes if shape[0] is not None}
    if len(counts) > 1:
        raise InvalidArgument(f"the banks have {' and '.join(map(str, sorted(counts)))} examples; one number is needed")
    return counts.pop() if counts else None


_WITH_HANDLE = [*_BANKS, "model_handle: resource"]
_DENSE = ["dense_predictions: float", "dense_col_representation: string"]

OPS = (
    OpSpec("SimpleMLCreateModelResource", [], ["model_handle: resource"],
           ["container: string = ''", "shared_name: string = ''"], metadata=_handle, stateful=True),
    OpSpec("SimpleMLLoadModelFromPath", ["path: string"], [], ["model_identifier: string"], metadata=_load,
           stateful=True),
    OpSpec("SimpleMLLoadModelFromPathWithHandle", ["model_handle: resource", "path: string"], [],
           ["output_types: list(string) = []", "file_prefix: string = ''", "allow_slow_inference: bool = true"],
           metadata=_load, stateful=True),
    OpSpec("SimpleMLInferenceOp", _BANKS, _DENSE, ["model_identifier: string", "dense_output_dim: int >= 1"],
           metadata=_predict, stateful=True),
    OpSpec("SimpleMLInferenceOpWithHandle", _WITH_HANDLE, _DENSE, ["dense_output_dim: int >= 1"], metadata=_predict,
           stateful=True),
    OpSpec("SimpleMLInferenceLeafIndexOpWithHandle", _WITH_HANDLE, ["leaves: int32"], metadata=_leaves, stateful=True),
)
