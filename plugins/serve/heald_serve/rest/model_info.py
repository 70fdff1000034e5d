"""Status and metadata of models, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heald.api import TensorInfo

from ..grpc.tensors import write_tensor
from ..http.messages import CODE_NAMES
from ..messages import message_class
from ..models.model_manager import VersionStatus
from ..models.servable import Lease


def status_body(rows: Sequence[VersionStatus]) -> bytes:
    return _dump({"model_version_status": [{
        "version": str(row.version), "state": row.state,
        "status": {"error_code": CODE_NAMES[0 if row.error is None else row.error.code],
                   "error_message": "" if row.error is None else str(row.error)}} for row in rows]})


def metadata_body(lease: Lease) -> bytes:
    signatures = {name: {
        "inputs": _tensors(signature.inputs), "outputs": _tensors(signature.outputs),
        "method_name": signature.method, "defaults": _defaults(signature.defaults)}
        for name, signature in lease.signatures.items()}
    return _dump({"model_spec": {"name": lease.name, "signature_name": "", "version": str(lease.version)},
                  "metadata": {"signature_def": {"signature_def": signatures}}})


def _defaults(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Tensors in the JSON form of their messages."""
    from google.protobuf.json_format import MessageToDict

    documents = {}
    for name, array in arrays.items():
        message = message_class("tensorflow.TensorProto")()
        write_tensor(message, array)
        documents[name] = MessageToDict(message, preserving_proto_field_name=True)
    return documents


def _tensors(infos: Mapping[str, TensorInfo]) -> dict[str, Any]:
    return {name: {"dtype": f"DT_{info.meta.dtype.tf_name.upper()}", "tensor_shape": _shape(info.meta.shape),
                   "name": info.tensor} for name, info in infos.items()}


def _shape(shape: Sequence[int | None] | None) -> dict[str, Any]:
    return {"dim": [{"size": str(-1 if size is None else size), "name": ""} for size in shape or ()],
            "unknown_rank": shape is None}


def _dump(document: Any) -> bytes:
    import orjson

    text: bytes = orjson.dumps(document, option=orjson.OPT_INDENT_2)
    return text + b"\n"
