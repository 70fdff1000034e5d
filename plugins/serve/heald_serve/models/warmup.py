"""Warm-up: requests that a SavedModel brings, run before its version serves.

`assets.extra/tf_serving_warmup_requests` is a TFRecord file of PredictionLog messages. Any failure fails the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from heald.errors import DataLoss, InvalidArgument, NotFound, Unimplemented, of_system

from ..grpc.tensors import read_tensors
from ..messages import parse_message
from .served_model import DEFAULT_SIGNATURE, ServedSignature, check_inputs

FILE = Path("assets.extra") / "tf_serving_warmup_requests"
MOST_RECORDS = 1000
_HEAD_BYTES, _TAIL_BYTES = 12, 4


def warm_up(path: Path, signatures: Mapping[str, ServedSignature], runs: int) -> int:
    """Run each record `runs` times. Returns the number of records, 0 without a file.

    Raises DataLoss for a file that is no TFRecord file, InvalidArgument for too many records, Unimplemented for a
    record of another kind, and the errors of the runs.
    """
    file = path / FILE
    try:
        data = file.read_bytes() if file.is_file() else b""
    except OSError as error:
        raise of_system(error, file) from error
    count = 0
    for record in _records(data, file):
        count += 1
        if count > MOST_RECORDS:
            raise InvalidArgument(f"Number of warmup records exceeeds the maximum ({MOST_RECORDS}) at {file}")
        for signature, inputs in _runs_of(parse_message("PredictionLog", record), signatures):
            check_inputs(signature, inputs)
            for _ in range(runs):
                signature.call(inputs, None)
    return count


def _records(data: bytes, file: Path) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        head, length = data[at : at + _HEAD_BYTES], int.from_bytes(data[at : at + 8], "little")
        body = data[at + _HEAD_BYTES : at + _HEAD_BYTES + length]
        tail = data[at + _HEAD_BYTES + length : at + _HEAD_BYTES + length + _TAIL_BYTES]
        is_whole = len(head) == _HEAD_BYTES and len(body) == length and len(tail) == _TAIL_BYTES
        if not is_whole or masked_crc32c(head[:8]) != head[8:] or masked_crc32c(body) != tail:
            raise DataLoss(f"Please verify your warmup data is in TFRecord format: '{file}' is damaged at byte {at:,}")
        yield body
        at += _HEAD_BYTES + length + _TAIL_BYTES


def masked_crc32c(data: bytes) -> bytes:
    """The checksum of records: CRC-32C, masked so that it is no CRC of data that contains it."""
    import google_crc32c

    crc: int = google_crc32c.value(data)
    return (((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def _runs_of(log: Any, signatures: Mapping[str, ServedSignature]) -> Iterator[tuple[ServedSignature, dict[str, Any]]]:
    """The signatures and the inputs of a record."""
    kind = log.WhichOneof("log_type")
    if kind == "predict_log":
        request = log.predict_log.request
        signature = _signature(signatures, request.model_spec.signature_name)
        yield signature, read_tensors(request.inputs)
    elif kind in ("classify_log", "regress_log"):
        request = getattr(log, kind).request
        yield _of_examples(signatures, request.model_spec.signature_name, request.input)
    elif kind == "multi_inference_log":
        request = log.multi_inference_log.request
        for task in request.tasks:
            yield _of_examples(signatures, task.model_spec.signature_name, request.input)
    else:
        raise Unimplemented(f"Unsupported log_type for warmup: {kind or 'none'}")


def _of_examples(
    signatures: Mapping[str, ServedSignature], name: str, message: Any
) -> tuple[ServedSignature, dict[str, Any]]:
    signature = _signature(signatures, name)
    return signature, {next(iter(signature.inputs), "inputs"): serialized_examples(message)}


def serialized_examples(message: Any) -> Any:
    """The examples of an Input message as an array of strings: the bytes of the context come before each."""
    if message.WhichOneof("kind") == "example_list_with_context":
        context = message.example_list_with_context.context.SerializeToString()
        examples = message.example_list_with_context.examples
    else:
        context, examples = b"", message.example_list.examples
    if not examples:
        raise InvalidArgument("Input is empty.")
    array = np.empty(len(examples), object)
    array[:] = [context + example.SerializeToString() for example in examples]
    return array


def _signature(signatures: Mapping[str, ServedSignature], name: str) -> ServedSignature:
    try:
        return signatures[name or DEFAULT_SIGNATURE]
    except KeyError:
        raise NotFound(f'Serving signature key "{name or DEFAULT_SIGNATURE}" not found.') from None
