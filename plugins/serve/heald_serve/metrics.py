"""Counters and histograms, and their text for Prometheus.

TensorFlow Serving's names, such as `/tensorflow/serving/request_count`, keep their form with colons; client libraries
would add suffixes to them. The same numbers have plain names at /metrics.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

# The limits of TensorFlow Serving's histograms: microseconds; examples of a request; sizes of a batch.
LATENCY_LIMITS = tuple(10 * 1.8**k for k in range(33))
BATCH_LATENCY_LIMITS = tuple(100 * 1.2**k for k in range(52))
EXAMPLE_LIMITS = tuple(float(1 << k) for k in range(15))
BATCH_SIZE_LIMITS = tuple(float(1 << k) for k in range(14))
PREFIX = "/tensorflow/serving/"
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Cell:
    """The counts of one combination of labels."""

    __slots__ = ("buckets", "count", "total")

    def __init__(self, bucket_count: int) -> None:
        self.count = 0
        self.total = 0.0
        self.buckets = [0] * bucket_count


class Metric:
    """A counter, or a histogram where it has limits. Any thread may call."""

    def __init__(self, name: str, labels: Sequence[str] = (), limits: Sequence[float] = ()) -> None:
        self.name, self.labels, self.limits = name, tuple(labels), tuple(limits)
        self._cells: dict[tuple[str, ...], Cell] = {}
        self._lock = threading.Lock()

    def add(self, *label_values: str, amount: float = 1) -> None:
        """Count, or record `amount` in a histogram."""
        with self._lock:
            cell = self._cells.get(label_values)
            if cell is None:
                cell = self._cells.setdefault(label_values, Cell(len(self.limits) + 1 if self.limits else 0))
            cell.total += amount
            cell.count += 1
            if self.limits:
                cell.buckets[bisect_left(self.limits, amount)] += 1

    def value(self, *label_values: str) -> float:
        """The sum of all amounts."""
        cell = self._cells.get(label_values)
        return 0 if cell is None else cell.total

    def cells(self) -> list[tuple[tuple[str, ...], Cell]]:
        with self._lock:
            return sorted(self._cells.items(), key=lambda item: item[0])


class Gauge(NamedTuple):
    """A number that is read when it is asked for."""

    name: str
    read: Callable[[], float]


class Metrics:
    """All metrics of a server."""

    def __init__(self) -> None:
        self.request_count = Metric(f"{PREFIX}request_count", ("model_name", "status"))
        self.request_latency = Metric(f"{PREFIX}request_latency", ("model_name", "API", "entrypoint"), LATENCY_LIMITS)
        self.runtime_latency = Metric(f"{PREFIX}runtime_latency", ("model_name", "API", "runtime"), LATENCY_LIMITS)
        self.warmup_latency = Metric(f"{PREFIX}model_warmup_latency", ("model_path", "status"), LATENCY_LIMITS)
        self.warmup_records = Metric(f"{PREFIX}model_warmup_records_read", ("model_path", "status"))
        self.batching_latency = Metric(f"{PREFIX}batching_session/queuing_latency", ("thread_pool_name",),
                                       BATCH_LATENCY_LIMITS)
        self.batch_runs = Metric(f"{PREFIX}batching_session/wrapped_run_count")
        self.input_batch_size = Metric(f"{PREFIX}batching_session/input_batch_size", (), BATCH_SIZE_LIMITS)
        self.processed_batch_size = Metric(f"{PREFIX}batching_session/processed_batch_size", (), BATCH_SIZE_LIMITS)
        self.padding_size = Metric(f"{PREFIX}batching_session/padding_size", ("execution_batch_size",),
                                   BATCH_SIZE_LIMITS)
        self.gauges: list[Gauge] = []

    def all(self) -> Iterator[Metric]:
        return (metric for metric in vars(self).values() if isinstance(metric, Metric))

    def serving_text(self) -> str:
        """The text with TensorFlow Serving's names."""
        return "".join(_metric_lines(metric, serving_name(metric.name)) for metric in self.all())

    def plain_text(self) -> str:
        """The text with plain names, such as heald_serve_request_count, and with gauges."""
        text = "".join(_metric_lines(metric, plain_name(metric.name)) for metric in self.all())
        return text + "".join(f"# TYPE {gauge.name} gauge\n{gauge.name} {_number(gauge.read())}\n"
                              for gauge in self.gauges)


def serving_name(name: str) -> str:
    """The name with a colon for each character that Prometheus does not allow."""
    return "".join(character if character in _NAME_CHARACTERS else ":" for character in name)


def plain_name(name: str) -> str:
    return f"heald_serve_{name.removeprefix(PREFIX).replace('/', '_')}"


def _metric_lines(metric: Metric, name: str) -> str:
    kind = "histogram" if metric.limits else "counter"
    lines = [f"# TYPE {name} {kind}"]
    for values, cell in metric.cells():
        labels = [f'{label}="{_label_text(value)}"' for label, value in zip(metric.labels, values, strict=True)]
        if not metric.limits:
            lines.append(f"{name}{_braces(labels)} {_number(cell.total)}")
            continue
        lines += _bucket_lines(name, labels, metric.limits, cell)
        lines += [f"{name}_sum{_braces(labels)} {_number(cell.total)}", f"{name}_count{_braces(labels)} {cell.count}"]
    return "\n".join(lines) + "\n"


def _bucket_lines(name: str, labels: Sequence[str], limits: Sequence[float], cell: Cell) -> Iterator[str]:
    total = 0
    for limit, count in zip([*map(_number, limits), "+Inf"], cell.buckets, strict=True):
        total += count
        limit_label = f'le="{limit}"'
        yield f"{name}_bucket{_braces([*labels, limit_label])} {total}"


def _braces(labels: Iterable[str]) -> str:
    text = ",".join(labels)
    return f"{{{text}}}" if text else ""


def _number(number: float) -> str:
    return f"{number:g}" if number != int(number) or abs(number) >= 1e15 else str(int(number))


def _label_text(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
