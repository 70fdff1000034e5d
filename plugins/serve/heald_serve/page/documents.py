"""The documents of the page: the state of the server, which it polls, and the signatures of a version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import heald
from heald.api import TensorInfo
from heald.errors import DeadlineExceeded, Unavailable

from ..metrics import Metrics
from ..models.loaded_runtime import MEMORY_FIELDS, MEMORY_GAUGE
from ..models.model_lists import ModelLists
from ..models.model_manager import ModelManager, VersionStatus
from ..models.servable import AVAILABLE, START, Lease
from .class_labels import class_labels

FEWEST_CLASSES = 2


def models_document(manager: ModelManager, lists: ModelLists) -> list[dict[str, Any]]:
    """Each model with its versions in all workers, the highest first. It waits for the workers."""
    return [{"name": name, "versions": _versions(manager.labels(name), _statuses(manager, lists, name))}
            for name in manager.served_names()]


def _statuses(manager: ModelManager, lists: ModelLists, name: str) -> Sequence[VersionStatus]:
    if not manager.has(name):  # a model of the list whose versions were not looked for yet
        return []
    try:
        return merge_statuses(lists.statuses(name))
    except (Unavailable, DeadlineExceeded):  # of a parent that ends
        return manager.statuses(name)


def merge_statuses(rows_of_workers: Sequence[Sequence[VersionStatus]]) -> list[VersionStatus]:
    """The states of versions over all workers. A version serves where it serves in each of them."""
    tables = [{row.version: row for row in rows} for rows in rows_of_workers]
    versions = sorted({version for table in tables for version in table}, reverse=True)
    return [min((table.get(version, VersionStatus(version, START, None)) for table in tables),
                key=lambda row: (row.error is None, row.state == AVAILABLE)) for version in versions]


def _versions(labels: Mapping[str, int], rows: Sequence[VersionStatus]) -> list[dict[str, Any]]:
    return [{"version": str(row.version), "state": row.state, "error": "" if row.error is None else str(row.error),
             "labels": sorted(label for label, version in labels.items() if version == row.version)} for row in rows]


def memory_document(metrics: Metrics) -> dict[str, int | None]:
    """The memory of all workers together; None for what has no number."""
    numbers = {field: int(metrics.gauge_sum(MEMORY_GAUGE + field)) for field in MEMORY_FIELDS}
    return {**numbers, "peak": numbers["peak"] or None, "limit": numbers["limit"] or None}


def devices_document(host: Any) -> dict[str, Any]:
    """Devices of a host. No device is scanned: that may take seconds, and the memory of a GPU."""
    device_types = host.preference()
    scanned = [device_type for device_type in device_types if host.is_scanned(device_type)]
    return {
        "devices": [_device(record) for device_type in scanned for record in host.records(device_type)],
        "unused_device_types": [device_type for device_type in device_types if device_type not in scanned]}


def _device(record: Any) -> dict[str, Any]:
    attributes = {key: str(value) for key, value in record.attributes.items()
                  if isinstance(value, str | int | float) and key != "memory"}
    memory = record.attributes.get("memory")
    return {"name": record.name, "plugin": record.plugin, "status": record.status, "reason": record.reason,
            "remedy": record.remedy, "memory": memory if isinstance(memory, int) else None, "attributes": attributes}


def server_document(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"version": heald.__version__, "workers": options["workers"], "batches": bool(options["enable_batching"]),
            "run_threads": options["rest_api_num_threads"], "most_queued": options["max_queued_requests"],
            "most_connections": options["max_connections"], "most_body_bytes": options["max_body_bytes"],
            "grpc_port": options["port"]}


def version_document(lease: Lease) -> dict[str, Any]:
    """The signatures of a version, and the labels of classes by their number."""
    counts = {info.meta.shape[-1] for signature in lease.signatures.values() for info in signature.outputs.values()
              if info.meta.shape}
    labels = class_labels(lease.path, {count for count in counts if count is not None and count >= FEWEST_CLASSES})
    return {"name": lease.name, "version": str(lease.version),
            "signatures": [{"name": name, "method": signature.method.rpartition("/")[2],
                            "inputs": _tensors(signature.inputs), "outputs": _tensors(signature.outputs)}
                           for name, signature in lease.signatures.items()],
            "class_labels": {str(count): names for count, names in labels.items()}}


def _tensors(infos: Mapping[str, TensorInfo]) -> list[dict[str, Any]]:
    return [{"name": name, "type": info.meta.dtype.name, "shape": _shape(info.meta.shape)}
            for name, info in infos.items()]


def _shape(shape: Sequence[int | None] | None) -> list[int] | None:
    """The sizes, -1 for any; None for an unknown rank."""
    return None if shape is None else [-1 if size is None else size for size in shape]
