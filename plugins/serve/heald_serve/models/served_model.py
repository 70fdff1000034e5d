"""A loaded version of a model: its signatures, as fronts describe and call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import heald
from heald.api import TensorInfo
from heald.errors import InvalidArgument

DEFAULT_SIGNATURE = "serving_default"
PREDICT, CLASSIFY, REGRESS = (f"tensorflow/serving/{method}" for method in ("predict", "classify", "regress"))


class ServedSignature(NamedTuple):
    """A signature. `call(inputs, options)` takes arrays by name, and returns arrays by name."""

    name: str
    method: str
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    call: Callable[[Mapping[str, Any], Any], Mapping[str, Any]]


def signatures_of(model: Any) -> dict[str, ServedSignature]:
    """The signatures of a loaded model by name. A model without signatures has one, the default.

    Tensors have the names of the file where it declares signatures, as metadata of TensorFlow Serving show them.
    """
    source = getattr(model, "source", None)
    declared = {} if source is None else source.describe().signatures
    loaded = model.signatures or {DEFAULT_SIGNATURE: model}
    return {name: _served_signature(name, signature, declared.get(name)) for name, signature in loaded.items()}


def _served_signature(name: str, signature: Any, declared: Any) -> ServedSignature:
    if declared is not None:
        return ServedSignature(name, declared.method, declared.inputs, declared.outputs, _call_of(signature))
    inputs, outputs = (
        {key: TensorInfo(tensors.get(key, key), meta) for key, meta in metas.items()}
        for metas, tensors in ((signature.inputs, getattr(signature, "fed", {})),
                               (signature.outputs, getattr(signature, "fetched", {}))))
    return ServedSignature(name, PREDICT, inputs, outputs, _call_of(signature))


def _call_of(signature: Any) -> Callable[[Mapping[str, Any], Any], Mapping[str, Any]]:
    input_names, output_names = tuple(signature.inputs), tuple(signature.outputs)

    def call(inputs: Mapping[str, Any], options: Any) -> Mapping[str, Any]:
        results = signature(*[inputs[name] for name in input_names], options=heald.RunOptions() if options is None
                            else options)
        return {output_names[0]: results} if len(output_names) == 1 else results

    return call


def check_inputs(signature: ServedSignature, inputs: Mapping[str, Any]) -> None:
    """Raises InvalidArgument, with TensorFlow Serving's texts, for inputs that are not the signature's."""
    if inputs.keys() == signature.inputs.keys():
        return
    names, expected = (",".join(sorted(keys)) for keys in (inputs, signature.inputs))
    if len(inputs) != len(signature.inputs):
        extra, missing = (",".join(sorted(keys)) for keys in (inputs.keys() - signature.inputs.keys(),
                                                               signature.inputs.keys() - inputs.keys()))
        raise InvalidArgument(
            f"input size does not match signature: {len(inputs)}!={len(signature.inputs)} len({{{names}}}) != "
            f"len({{{expected}}}). Sent extra: {{{extra}}}. Missing but required: {{{missing}}}.")
    alias = min(signature.inputs.keys() - inputs.keys())
    raise InvalidArgument(f"Signature input alias: {alias}(feed name: {signature.inputs[alias].tensor}) not found in "
                          f"request. Inputs expected to be in the set {{{expected}}}.")
