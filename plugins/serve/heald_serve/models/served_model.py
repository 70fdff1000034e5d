"""A loaded version of a model: its signatures, as fronts describe and call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import heald
from heald.api import TensorInfo, dtypes
from heald.errors import HealdError, InvalidArgument

from ..brief_runs import RunTimes, are_ops_brief, may_be_brief

DEFAULT_SIGNATURE = "serving_default"
PREDICT, CLASSIFY, REGRESS = (f"tensorflow/serving/{method}" for method in ("predict", "classify", "regress"))


class ServedSignature(NamedTuple):
    """A signature. `call(inputs, options)` takes arrays by name, and returns arrays by name.

    `defaults`: arrays of inputs that a call may leave out. They join after batching: they have no row of a request.
    `times`: of its runs; None for a signature that runs in threads alone.
    """

    name: str
    method: str
    inputs: Mapping[str, TensorInfo]
    outputs: Mapping[str, TensorInfo]
    call: Callable[[Mapping[str, Any], Any], Mapping[str, Any]]
    defaults: Mapping[str, Any] = MappingProxyType({})
    times: RunTimes | None = None


def signatures_of(model: Any, is_stateful: Callable[[str], bool] = lambda _: True) -> dict[str, ServedSignature]:
    """The signatures of a loaded model by name. A model without signatures has one, the default.

    Tensors have the names of the file where it declares signatures, as metadata of TensorFlow Serving show them.
    `is_stateful` tells it of an op.
    """
    source = getattr(model, "source", None)
    declared = {} if source is None else source.describe().signatures
    loaded = model.signatures or {DEFAULT_SIGNATURE: model}
    may_run_briefly = _may_run_briefly(model, is_stateful)
    return {name: _served_signature(name, signature, declared.get(name))._replace(
        times=RunTimes() if may_run_briefly else None) for name, signature in loaded.items()}


def _may_run_briefly(model: Any, is_stateful: Callable[[str], bool]) -> bool:
    """True for a model on the CPU whose runs take a time that its inputs' shapes decide."""
    try:
        if isinstance(model, heald.Model):
            return may_be_brief(model.graph, is_stateful) and _are_on_cpu(
                assignment.device for assignment in model.placement().values())
        list_ops = getattr(model, "program_ops", None)  # a loader of a plugin may give any model
        ops = None if list_ops is None else list_ops()
        return ops is not None and are_ops_brief(ops, is_stateful) and _are_on_cpu(model.program_devices)
    except HealdError:
        return False


def _are_on_cpu(devices: Iterable[str | None]) -> bool:
    return all(not device or device.startswith("CPU") for device in devices)


def _served_signature(name: str, signature: Any, declared: Any) -> ServedSignature:
    if declared is not None:
        return ServedSignature(name, declared.method, declared.inputs, declared.outputs,
                               _call_of(signature, declared.defaults), declared.defaults)
    inputs, outputs = (
        {key: TensorInfo(tensors.get(key, key), meta) for key, meta in metas.items()}
        for metas, tensors in ((signature.inputs, getattr(signature, "fed", {})),
                               (signature.outputs, getattr(signature, "fetched", {}))))
    return ServedSignature(name, PREDICT, inputs, outputs, _call_of(signature, {}))


def _call_of(
    signature: Any, defaults: Mapping[str, Any]
) -> Callable[[Mapping[str, Any], Any], Mapping[str, Any]]:
    input_names, output_names = tuple(signature.inputs), tuple(signature.outputs)

    def call(inputs: Mapping[str, Any], options: Any) -> Mapping[str, Any]:
        arrays = {**defaults, **inputs} if defaults else inputs
        values = [arrays[name] for name in input_names]
        results = signature(*values) if options is None else signature(*values, options=options)
        return {output_names[0]: results} if len(output_names) == 1 else results

    return call


def has_types(signature: ServedSignature, inputs: Mapping[str, Any]) -> bool:
    """True where each array has the element type of its input."""
    return all(info.meta.dtype is None or dtypes.of_numpy(inputs[name].dtype) is info.meta.dtype
               for name, info in signature.inputs.items() if name in inputs)


def _check_type(name: str, info: TensorInfo, array: Any) -> None:
    """Raises InvalidArgument for another element type. None is an array not yet read."""
    wanted = info.meta.dtype
    if array is None or wanted is None:
        return
    dtype = dtypes.of_numpy(array.dtype)
    if dtype is not wanted:
        raise InvalidArgument(f"Expects input {name} to be {wanted.tf_name} but {dtype.tf_name} is provided")


def check_inputs(signature: ServedSignature, inputs: Mapping[str, Any]) -> None:
    """Raises InvalidArgument, with TensorFlow Serving's texts, for inputs that are not the signature's.

    A feed of heald converts numbers where that loses nothing. A server does not: its clients state a type.
    """
    needed = signature.inputs.keys() - inputs.keys() - signature.defaults.keys()
    if not needed and inputs.keys() <= signature.inputs.keys():
        for name, array in inputs.items():
            _check_type(name, signature.inputs[name], array)
        return
    names, expected = (",".join(sorted(keys)) for keys in (inputs, signature.inputs))
    if len(inputs) != len(signature.inputs) or not needed:
        extra, missing = (",".join(sorted(keys)) for keys in (inputs.keys() - signature.inputs.keys(), needed))
        raise InvalidArgument(
            f"input size does not match signature: {len(inputs)}!={len(signature.inputs)} len({{{names}}}) != "
            f"len({{{expected}}}). Sent extra: {{{extra}}}. Missing but required: {{{missing}}}.")
    alias = min(needed)
    raise InvalidArgument(f"Signature input alias: {alias}(feed name: {signature.inputs[alias].tensor}) not found in "
                          f"request. Inputs expected to be in the set {{{expected}}}.")
