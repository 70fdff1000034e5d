"""Documents about the server and its models, the same over HTTP and gRPC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import heald
from heald.api import TensorInfo

from ..models.servable import Lease
from ..models.served_model import ServedSignature
from .datatypes import config_type_of, datatype_of

PLATFORM, BACKEND = "tensorflow_savedmodel", "tensorflow"
EXTENSIONS = ("binary_tensor_data", "model_configuration", "model_repository", "statistics")


def server_document() -> dict[str, Any]:
    return {"name": "heald", "version": heald.__version__, "extensions": [*EXTENSIONS]}


def model_document(lease: Lease, signature: ServedSignature, versions: Sequence[int]) -> dict[str, Any]:
    return {"name": lease.name, "versions": [str(version) for version in sorted(versions)], "platform": PLATFORM,
            "inputs": _tensors(signature.inputs), "outputs": _tensors(signature.outputs)}


def _tensors(infos: Mapping[str, TensorInfo]) -> list[dict[str, Any]]:
    return [{"name": name, "datatype": datatype_of(info.meta.dtype), "shape": _shape(info)}
            for name, info in infos.items()]


def _shape(info: TensorInfo) -> list[int]:
    """The sizes; -1 is any. The protocol has no unknown rank; one of any size stands for it."""
    if info.meta.shape is None:
        return [-1]
    return [-1 if size is None else size for size in info.meta.shape]


def config_document(lease: Lease, signature: ServedSignature) -> dict[str, Any]:
    """The configuration: no first dimension is left out, so the maximal batch is 0."""
    inputs, outputs = ([{"name": name, "data_type": config_type_of(info.meta.dtype), "dims": _shape(info)}
                        for name, info in infos.items()] for infos in (signature.inputs, signature.outputs))
    return {"name": lease.name, "platform": PLATFORM, "backend": BACKEND, "max_batch_size": 0, "input": inputs,
            "output": outputs}
