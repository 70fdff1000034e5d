"""Runs in the thread of their front: whether a run is so brief that handing it to a thread would cost more.

A hand-over to a thread and back takes a tenth of a millisecond and more, since two threads then take turns with the
interpreter. A small model needs less. So a front's event loop runs a signature itself

    of a model   whose graph or program has no loop, and no op that waits or acts: its time depends on its inputs'
                 shapes
    of inputs    of shapes whose runs were brief: within BRIEF_SECONDS of their thread's CPU time

A shape collects points: one for a brief run, and less SLOW_POINTS for a slower one, such as one in which Python's
garbage collector ran. A run of LONG_SECONDS takes them all, and doubles the points that the shape needs from then on.

Requests may join in a batch on the loop once a batch of their kind was brief: of the same inputs without their first
dimension, the rows. `joined_rows` tells how many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from .joined_rows import JoinedRows

BRIEF_SECONDS = 400e-6
LONG_SECONDS = 20e-3
FIRST_NEED, MOST_NEED = 8, 1 << 20  # points
SLOW_POINTS = 8
SPARE_POINTS = 64  # that a shape may have above its need
MOST_KINDS = 256  # of inputs; strangers choose shapes
LARGEST_BRIEF_BYTES = 64 << 10  # of outputs; larger ones take long to write
LARGEST_TEXT_BYTES = 64 << 10
_LOOPS = frozenset({"While", "StatelessWhile", "For", "Enter", "NextIteration", "PyFunc", "EagerPyFunc",
                    "PyFuncStateless", "MapDefun"})
_READS = frozenset({"VarHandleOp", "ReadVariableOp", "VariableV2", "Variable", "HashTableV2", "LookupTableFindV2",
                    "LookupTableSizeV2", "PartitionedCall", "StatefulPartitionedCall", "Placeholder",
                    "PlaceholderWithDefault", "StaticVocabularyTable"})


class _Record:
    """The points of a shape, and its need."""

    __slots__ = ("need", "points")

    def __init__(self) -> None:
        self.points, self.need = 0, FIRST_NEED


class RunTimes:
    """The history of a signature's runs, by the shapes of their inputs. Threads may race: a point is then lost."""

    def __init__(self) -> None:
        self._records: dict[Any, _Record] = {}
        self._joined: dict[Any, JoinedRows] = {}  # by the kind of the rows
        self.has_brief = False  # True once a shape was brief

    def __len__(self) -> int:
        """The kinds of inputs that are known."""
        return len(self._records)

    def are_brief(self, inputs: Mapping[str, Any]) -> bool:
        """True where a run of these inputs is expected to be brief."""
        record = self._records.get(_kind_of(inputs))
        return record is not None and record.points >= record.need

    def joined_rows(self, inputs: Mapping[str, Any]) -> JoinedRows | None:
        """The rows like these that join in brief runs; None where none do."""
        return self._joined.get(_row_kind_of(inputs))

    def join_rows(self, inputs: Mapping[str, Any]) -> None:
        """Let rows like those of a batch join, if it has proven to be brief."""
        if self.are_brief(inputs):
            if len(self._joined) >= MOST_KINDS:
                self._joined.clear()
            self._joined.setdefault(_row_kind_of(inputs), JoinedRows())

    def part_rows(self, inputs: Mapping[str, Any]) -> None:
        """Let rows like these no longer join."""
        self._joined.pop(_row_kind_of(inputs), None)

    def add(self, inputs: Mapping[str, Any], seconds: float) -> None:
        """Record the CPU time of a run. The first run of a shape links, and gives no points."""
        kind = _kind_of(inputs)
        record = self._records.get(kind)
        if record is None:
            if len(self._records) >= MOST_KINDS:
                self._records.clear()
            self._records[kind] = _Record()
        elif seconds <= BRIEF_SECONDS:
            record.points = min(record.points + 1, record.need + SPARE_POINTS)
            self.has_brief = self.has_brief or record.points >= record.need
        elif seconds <= LONG_SECONDS:
            record.points = max(record.points - SLOW_POINTS, 0)
        else:
            record.points, record.need = 0, min(2 * record.need, MOST_NEED)


def _kind_of(inputs: Mapping[str, Any]) -> Any:
    return tuple([array.shape if array.dtype != object else (array.shape, _text_size(array))
                  for array in inputs.values()])


def _row_kind_of(inputs: Mapping[str, Any]) -> Any:
    return tuple([array.shape[1:] if array.dtype != object else (array.shape[1:], _text_size(array[:1]))
                  for array in inputs.values()])


def _text_size(texts: Any) -> int:
    """The power of two of the texts' bytes."""
    return sum(map(len, texts.reshape(-1).tolist())).bit_length()


def may_be_brief(graph: Any, is_stateful: Callable[[str], bool]) -> bool:
    """True for a graph without loops and without ops that wait or act. Raises nothing for an unknown op: it may act."""
    functions = graph.functions
    ops = {*_ops_of(graph), *(op for function in functions.values() for op in _ops_of(function))}
    return are_ops_brief(ops - functions.keys(), is_stateful)


def are_ops_brief(ops: Collection[str], is_stateful: Callable[[str], bool]) -> bool:
    """True for ops none of which loops, waits or acts."""
    return _LOOPS.isdisjoint(ops) and not any(is_stateful(op) for op in ops if op not in _READS)


def _ops_of(graph: Any) -> Iterable[str]:
    return (node.op for node in graph.nodes.values())
