"""The runs of batches: their sizes, their checks and their metrics.

A model is linked for each size of a batch, and keeps few such links. So a batch is filled up with copies of its last
row: to one of `allowed_batch_sizes`, or else to a power of two. A batch of more than LARGEST_FILLED_ROWS keeps its
size, where the filling would cost more.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from time import thread_time
from typing import Any

import numpy as np
from heald.errors import InvalidArgument

from .batch_rows import join_inputs
from .batching_parameters import BatchingParameters
from .brief_runs import LARGEST_BRIEF_BYTES
from .metrics import Metrics
from .models.served_model import ServedSignature
from .predict import Arrays

LARGEST_FILLED_ROWS = 64


class BatchRuns:
    """Any thread may call."""

    def __init__(self, parameters: BatchingParameters, metrics: Metrics) -> None:
        self._parameters, self._metrics = parameters, metrics
        self.most_rows = (parameters.max_execution_batch_size if parameters.enable_large_batch_splitting
                          else parameters.max_batch_size)

    def size_of(self, rows: int) -> int:
        """The size of a batch with so many rows."""
        allowed = self._parameters.allowed_batch_sizes
        if allowed:
            return next((size for size in allowed if size >= rows), rows)
        return min(1 << (rows - 1).bit_length(), self.most_rows) if 0 < rows <= LARGEST_FILLED_ROWS else rows

    def join(self, parts: Sequence[Arrays], rows: int) -> Arrays:
        """The inputs of a batch of so many rows, filled up to its size."""
        return join_inputs(parts, self.size_of(rows) - rows)

    def run(self, signature: ServedSignature, inputs: Arrays, rows: int, options: Any = None) -> Arrays:
        """The outputs for joined inputs. Raises the errors of the model, and InvalidArgument for outputs of other rows.
        """
        size = self.size_of(rows)
        self.record_run(rows, size)
        start = thread_time()
        outputs = signature.call(inputs, options)
        seconds = thread_time() - start
        for name, array in outputs.items():
            if np.shape(array)[:1] != (size,):
                raise InvalidArgument(f"Batched output tensor's 0th dimension does not equal the sum of the 0th "
                                      f"dimension sizes of the input tensors: output '{name}' of {np.shape(array)}")
        if signature.times is not None:
            output_bytes = sum([array.nbytes for array in outputs.values()])
            signature.times.add(inputs, seconds if output_bytes <= LARGEST_BRIEF_BYTES * size else inf)
        return outputs

    def record_run(self, rows: int, size: int) -> None:
        metrics = self._metrics
        metrics.batch_runs.add()
        metrics.processed_batch_size.add(amount=size)
        metrics.padding_size.add(str(size), amount=size - rows)

    def record_requests(self, rows: Sequence[int], waits: Sequence[float]) -> None:
        """Record the rows of a batch's requests, and the seconds that they have waited."""
        self._metrics.input_batch_size.add_all(amounts=rows)
        self._metrics.batching_latency.add_all(self._parameters.thread_pool_name,
                                               amounts=[1e6 * seconds for seconds in waits])

    def record_answers(self, model: str, seconds: Sequence[float]) -> None:
        """Record the seconds from the arrivals of requests to the end of their run."""
        self._metrics.runtime_latency.add_all(model, "Predict", "TF1", amounts=[1e6 * duration for duration in seconds])
