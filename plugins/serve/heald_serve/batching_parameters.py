"""The parameters of batching, as TensorFlow Serving's BatchingParameters state them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from heald.errors import InvalidArgument, Location

from .messages import read_text_message

FILE_OF_VERSION = "batching_params.pbtxt"


class BatchingParameters(NamedTuple):
    """`allowed_batch_sizes`: ascending, the last is `max_execution_batch_size`; a batch is filled up to one of them."""

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    num_batch_threads: int = os.cpu_count() or 1
    thread_pool_name: str = "batch_threads"
    allowed_batch_sizes: tuple[int, ...] = ()
    pad_variable_length_inputs: bool = False
    enable_large_batch_splitting: bool = False
    max_execution_batch_size: int = 1000


def read_batching_parameters(file: Path) -> BatchingParameters:
    """The parameters in a file in text form. Raises InvalidArgument for parameters that contradict each other."""
    message = read_text_message("BatchingParameters", file)
    values = {name: getattr(message, name).value for name in (
        "max_batch_size", "batch_timeout_micros", "max_enqueued_batches", "num_batch_threads", "thread_pool_name",
        "enable_large_batch_splitting", "max_execution_batch_size") if message.HasField(name)}
    parameters = BatchingParameters()._replace(
        **values, allowed_batch_sizes=tuple(message.allowed_batch_sizes),
        pad_variable_length_inputs=message.pad_variable_length_inputs)
    if "max_execution_batch_size" not in values:
        parameters = parameters._replace(max_execution_batch_size=parameters.max_batch_size)
    check_batching(parameters, Location(str(file)))
    return parameters


def check_batching(parameters: BatchingParameters, location: Location | None = None) -> None:
    """Raises InvalidArgument for parameters that contradict each other."""
    for name in ("max_batch_size", "max_enqueued_batches", "num_batch_threads", "max_execution_batch_size"):
        if getattr(parameters, name) < 1:
            raise InvalidArgument(f"{name} must be positive; was {getattr(parameters, name)}", location=location)
    if parameters.batch_timeout_micros < 0:
        raise InvalidArgument(f"batch_timeout_micros must be non-negative; was {parameters.batch_timeout_micros}",
                              location=location)
    most_rows = (parameters.max_execution_batch_size if parameters.enable_large_batch_splitting
                 else parameters.max_batch_size)
    sizes = parameters.allowed_batch_sizes
    if sizes and (list(sizes) != sorted(set(sizes)) or sizes[0] < 1 or sizes[-1] != most_rows):
        raise InvalidArgument(f"allowed_batch_sizes ascend, and end with the largest batch, {most_rows}; given "
                              f"{list(sizes)}", location=location)
