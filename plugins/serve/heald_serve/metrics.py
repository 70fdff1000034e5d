"""Counters and histograms, and their text for Prometheus.

TensorFlow Serving's names, such as `/tensorflow/serving/request_count`, keep their form with colons; client libraries
would add suffixes to them. The same numbers have plain names at /metrics.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from functools import partial
from typing import NamedTuple, Protocol

# The limits of TensorFlow Serving's histograms: microseconds; examples of a request; sizes of a batch.
LATENCY_LIMITS = tuple(10 * 1.8**k for k in range(33))
BATCH_LATENCY_LIMITS = tuple(100 * 1.2**k for k in range(52))
EXAMPLE_LIMITS = tuple(float(1 << k) for k in range(15))
BATCH_SIZE_LIMITS = tuple(float(1 << k) for k in range(14))
PREFIX = "/tensorflow/serving/"
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")


class Cell:
    """The counts of one combination of labels: how many, their sum, and the buckets of a histogram."""

    __slots__ = ("buckets", "count", "total")

    def __init__(self, numbers: Sequence[float]) -> None:
        count, self.total, *buckets = numbers
        self.count, self.buckets = int(count), [*map(int, buckets)]


class Cells(Protocol):
    """Counts that several processes share."""

    def make(self, name: str, labels: tuple[str, ...], count: int) -> MutableSequence[float]:
        """Zeros, or the numbers that this process, or an earlier one in its place, has for a metric's labels."""

    def of_metric(self, name: str) -> Iterable[tuple[tuple[str, ...], Sequence[float]]]:
        """Labels and numbers of a metric, in all processes; the labels may be repeated."""

    def sum_of_gauge(self, name: str) -> float:
        """The sum of a gauge over the other processes and this one's last `set_gauge`."""

    def set_gauge(self, name: str, number: float) -> None: ...


class Metric:
    """A counter, or a histogram where it has limits. Any thread may call."""

    def __init__(
        self, name: str, labels: Sequence[str] = (), limits: Sequence[float] = (), shared: Cells | None = None
    ) -> None:
        self.name, self.labels, self.limits, self._shared = name, tuple(labels), tuple(limits), shared
        self._cells: dict[tuple[str, ...], MutableSequence[float]] = {}
        self._lock = threading.Lock()

    def add(self, *label_values: str, amount: float = 1) -> None:
        """Count, or record `amount` in a histogram."""
        with self._lock:
            numbers = self._cells.get(label_values)
            if numbers is None:
                numbers = self._cells.setdefault(label_values, self._zeros(label_values))
            numbers[0] += 1
            numbers[1] += amount
            if self.limits:
                numbers[2 + bisect_left(self.limits, amount)] += 1

    def add_all(self, *label_values: str, amounts: Sequence[float]) -> None:
        """Record these amounts in a histogram."""
        with self._lock:
            numbers = self._cells.get(label_values)
            if numbers is None:
                numbers = self._cells.setdefault(label_values, self._zeros(label_values))
            numbers[0] += len(amounts)
            numbers[1] += sum(amounts)
            for amount in amounts:
                numbers[2 + bisect_left(self.limits, amount)] += 1

    def _zeros(self, label_values: tuple[str, ...]) -> MutableSequence[float]:
        count = 2 + (len(self.limits) + 1 if self.limits else 0)
        return [0.0] * count if self._shared is None else self._shared.make(self.name, label_values, count)

    def value(self, *label_values: str) -> float:
        """The sum of all amounts."""
        return sum(cell.total for values, cell in self.cells() if values == label_values)

    def cells(self) -> list[tuple[tuple[str, ...], Cell]]:
        """The counts of all processes by labels, in order."""
        with self._lock:
            rows = [*self._cells.items()] if self._shared is None else [*self._shared.of_metric(self.name)]
        sums: dict[tuple[str, ...], MutableSequence[float]] = {}
        for labels, numbers in rows:
            sums[labels] = [a + b for a, b in zip(sums[labels], numbers, strict=True)] if labels in sums else [*numbers]
        return [(labels, Cell(numbers)) for labels, numbers in sorted(sums.items())]


class Gauge(NamedTuple):
    """A number that is read when it is asked for."""

    name: str
    read: Callable[[], float]


class Metrics:
    """All metrics of a server, over all its processes where they share cells."""

    def __init__(self, shared: Cells | None = None) -> None:
        metric = partial(Metric, shared=shared)
        self._shared = shared
        self.request_count = metric(f"{PREFIX}request_count", ("model_name", "status"))
        self.request_latency = metric(f"{PREFIX}request_latency", ("model_name", "API", "entrypoint"), LATENCY_LIMITS)
        self.runtime_latency = metric(f"{PREFIX}runtime_latency", ("model_name", "API", "runtime"), LATENCY_LIMITS)
        self.request_examples = metric(f"{PREFIX}request_example_counts", ("model",), EXAMPLE_LIMITS)
        self.request_example_total = metric(f"{PREFIX}request_example_count_total", ("model",))
        self.warmup_latency = metric(f"{PREFIX}model_warmup_latency", ("model_path", "status"), LATENCY_LIMITS)
        self.warmup_records = metric(f"{PREFIX}model_warmup_records_read", ("model_path", "status"))
        self.batching_latency = metric(f"{PREFIX}batching_session/queuing_latency", ("thread_pool_name",),
                                       BATCH_LATENCY_LIMITS)
        self.batch_runs = metric(f"{PREFIX}batching_session/wrapped_run_count")
        self.input_batch_size = metric(f"{PREFIX}batching_session/input_batch_size", (), BATCH_SIZE_LIMITS)
        self.processed_batch_size = metric(f"{PREFIX}batching_session/processed_batch_size", (), BATCH_SIZE_LIMITS)
        self.padding_size = metric(f"{PREFIX}batching_session/padding_size", ("execution_batch_size",),
                                   BATCH_SIZE_LIMITS)
        self.worker_restarts = metric("worker_restarts")
        self.worker_hangs = metric("worker_hangs")
        self.gauges: list[Gauge] = []

    def all(self) -> Iterator[Metric]:
        return (metric for metric in vars(self).values() if isinstance(metric, Metric))

    def serving_text(self) -> str:
        """The text with TensorFlow Serving's names."""
        return "".join(_metric_lines(metric, serving_name(metric.name)) for metric in self.all()
                       if metric.name.startswith(PREFIX))

    def plain_text(self) -> str:
        """The text with plain names, such as heald_serve_request_count, and with gauges."""
        text = "".join(_metric_lines(metric, plain_name(metric.name)) for metric in self.all())
        return text + "".join(f"# TYPE {gauge.name} gauge\n{gauge.name} {_number(self._value_of(gauge))}\n"
                              for gauge in self.gauges)

    def _value_of(self, gauge: Gauge) -> float:
        if self._shared is None:
            return gauge.read()
        self._shared.set_gauge(gauge.name, gauge.read())
        return self._shared.sum_of_gauge(gauge.name)

    def gauge_sum(self, name: str) -> float:
        """The value of a gauge, over all processes."""
        return next(self._value_of(gauge) for gauge in self.gauges if gauge.name == name)

    def publish_gauges(self) -> None:
        """Write the gauges for the other processes."""
        if self._shared is not None:
            for gauge in self.gauges:
                self._shared.set_gauge(gauge.name, gauge.read())


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
