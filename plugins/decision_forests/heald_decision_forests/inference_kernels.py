"""The kernels. They import ydf when a model is loaded, not before."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heald.api import Bind, Kernels, errors

from .model_slot import ModelSlot, slot_of

if TYPE_CHECKING:
    import numpy as np

    from .forest import Forest

    Array = np.ndarray[Any, Any]

READ, LEAVES = "read", "LEAVES"
Run = Callable[..., Any]
FindSlot = Callable[[tuple[Any, ...]], ModelSlot]


def create(b: Bind) -> Run:
    slot = b.resource("decision forest", ModelSlot)
    return lambda out: out.fill(slot)


def load(b: Bind) -> Run:
    def run(handle: Array, path: Array) -> None:
        _load(b, slot_of(handle), path, b.attrs["file_prefix"])

    output_types = b.attrs["output_types"]
    if unknown := [name for name in output_types if name != LEAVES]:
        raise errors.InvalidArgument(f"the output type {unknown[0]!r} is not known; known: {LEAVES}")
    return run


def load_by_identifier(b: Bind) -> Run:
    slot = _identified_slot(b)
    return lambda path: _load(b, slot, path, "")


def _identified_slot(b: Bind) -> ModelSlot:
    return b.resource("decision forest", ModelSlot, name=b.attrs["model_identifier"])


def _load(b: Bind, slot: ModelSlot, path: Array, prefix: str) -> None:
    if path.size != 1:
        raise errors.InvalidArgument(f"path is one text, given {path.size}")
    if not slot.is_empty:
        return
    from .forest import Forest
    from .model_files import read_model

    folder = os.fsdecode(path.item())
    gives_leaves = LEAVES in b.attrs.get("output_types", ())
    forest = Forest(read_model(folder, prefix, b.file, b.ask), b.ask, gives_leaves=gives_leaves)
    if not (forest.is_fast or gives_leaves or b.attrs.get("allow_slow_inference", True)):
        raise errors.Unknown("no fast engine can run the model, and the attribute allow_slow_inference is false")
    slot.put(forest)


def predict(b: Bind) -> Run:
    return _prediction(b, lambda handles: slot_of(*handles))


def predict_by_identifier(b: Bind) -> Run:
    slot = _identified_slot(b)
    return _prediction(b, lambda _: slot)


def _prediction(b: Bind, find_slot: FindSlot) -> Run:
    width = b.attrs["dense_output_dim"]

    def run(*inputs: Array) -> tuple[Array, Array]:
        from .feature_banks import Banks

        forest, banks = find_slot(inputs[6:]).forest(), Banks(*inputs[:6])
        if len(forest.words) != width:
            raise errors.InvalidArgument(f"dense_output_dim is {width}; the model's predictions have "
                                         f"{len(forest.words)} columns")
        count = forest.example_count(banks)
        b.ask(4 * count * width, "the predictions of a decision forest")
        return forest.predict(banks, count), _as_strings(forest)

    return run


def _as_strings(forest: Forest) -> Array:
    import numpy as np

    strings = np.empty(len(forest.words), object)
    strings[:] = forest.words
    return strings


def leaves(b: Bind) -> Run:
    def run(*inputs: Array) -> tuple[Array]:
        from .feature_banks import Banks

        forest, banks = slot_of(inputs[6]).forest(), Banks(*inputs[:6])
        if not forest.gives_leaves:
            raise errors.FailedPrecondition("the decision forest is loaded without its leaves",
                                            hint=f'load it with output_types=["{LEAVES}"]')
        count = forest.example_count(banks)
        b.ask(4 * count * forest.tree_count, "the leaves of a decision forest")
        return (forest.leaves(banks, count),)

    return run


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("SimpleMLCreateModelResource")(create)
    kernels.kernel("SimpleMLLoadModelFromPath", files=(READ,))(load_by_identifier)
    kernels.kernel("SimpleMLLoadModelFromPathWithHandle", files=(READ,))(load)
    kernels.kernel("SimpleMLInferenceOp", allocates=True)(predict_by_identifier)
    kernels.kernel("SimpleMLInferenceOpWithHandle", allocates=True)(predict)
    kernels.kernel("SimpleMLInferenceLeafIndexOpWithHandle", allocates=True)(leaves)
