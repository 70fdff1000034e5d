"""Step statistics: the measured times of traced runs, read back from a file of RunMetadata."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from ...errors import InvalidArgument
from ...runtime.contract.device import DeviceName
from ...runtime.support import mapped_file
from ...runtime.support.file_path import file_path
from ...runtime.support.input_file import reading
from ..protobuf.descriptor_pool import parse_message

_HINT = "heald trace MODEL --metadata FILE writes such a file"


def read_statistics(path: str) -> dict[tuple[str, str], float]:
    """Return the mean seconds of each row by (name, device). NODE:copy is the name of a transfer that NODE waits for.

    Files that are written one behind the other are one file with the rows of all.

    Raises NotFound and PermissionDenied for the file, DataLoss for malformed bytes, and InvalidArgument for a file
    without rows, for a device that cannot be read, and for a time below 0. Errors name the file.
    """
    file = file_path(path)
    with reading(file):
        message: Any = parse_message("RunMetadata", mapped_file.read(file))
        times: dict[tuple[str, str], list[float]] = {}
        for device in message.step_stats.dev_stats:
            name = DeviceName.parse(device.device).short
            for row in device.node_stats:
                times.setdefault((row.node_name, name), []).append(_seconds(row))
        if not times:
            raise InvalidArgument("this RunMetadata has no step statistics, expected rows of a traced run", hint=_HINT)
    return {key: fmean(seconds) for key, seconds in times.items()}


def _seconds(row: Any) -> float:
    """Return the time of a row. TensorFlow wrote microseconds alone at first."""
    seconds = row.all_end_rel_nanos / 1e9 or row.all_end_rel_micros / 1e6
    if seconds < 0:
        raise InvalidArgument(f"the time of the row is {seconds} s, which is below 0", node=row.node_name, hint=_HINT)
    return float(seconds)
