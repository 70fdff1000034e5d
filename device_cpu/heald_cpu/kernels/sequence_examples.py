"""Kernels that parse tf.train.SequenceExample messages: a context of features, and lists of features over time.

Field 1 of SequenceExample is Features, as in Example. Field 2 is FeatureLists, whose field 1 maps names to lists.
Field 1 of a FeatureList is a Feature for each step. The ops of batches take the first list of values in a feature. The
op of a single message merges them, as protobuf does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, takewhile
from math import prod
from typing import Any, NamedTuple

import numpy as np
from heald.api import Bind, DType, Kernels, errors, wire

from ..element_types import zeros
from .example_parsing import LISTS, Read, Rows, Span, by_part, counts, entry_of, flat, message_spans, parse
from .string_splitting import ragged_indices
from .strings import encode

Run = Callable[..., Any]
Keys = Sequence[bytes]
Values = Sequence[Any]
Steps = Sequence[Sequence[Values] | None]  # of one feature list in each message: values by step, None: it is missing


class Message(NamedTuple):
    buf: bytes
    context: dict[bytes, Span]
    lists: dict[bytes, Span]


def parse_messages(serialized: Iterable[bytes]) -> list[Message]:
    messages = []
    for buf, context in parse(serialized):
        lists = (entry_of(buf, *entry) for part in message_spans(buf, 0, len(buf), 2)
                 for entry in message_spans(buf, *part))
        messages.append(Message(buf, context, dict(lists)))
    return messages


def read_feature(buf: bytes, span: Span, key: bytes, dtype: DType, *, merges: bool) -> Values:
    """The values of one Feature, none if it has no list. Raises InvalidArgument for values of another dtype."""
    lists = [(number, (at, end)) for number, _, at, end in wire.fields(buf, *span) if number in LISTS]
    number = lists[-1 if merges else 0][0] if lists else 0
    if number and LISTS[number][0] is not dtype:
        raise errors.InvalidArgument(f"Feature {key!r}: data types don't match. Expected type: {dtype}, actual: "
                                     f"{LISTS[number][0]}")
    alike = [*takewhile(lambda part: part[0] == number, reversed(lists))][::-1] if merges else lists[:1]
    read: Read = LISTS[number][1] if number else lambda _buf, _span: ()
    return [*chain.from_iterable(read(buf, inner) for _, inner in alike)]


class Column(NamedTuple):
    """A feature, or a list of features, that an op asks for."""

    key: bytes
    dtype: DType
    single: bool  # the input is one message, and the results have no dimension of messages
    merges: bool

    def rows(self, messages: Sequence[Message]) -> Rows:
        """The values in the context of each message; None where the key is missing."""
        return [read_feature(m.buf, m.context[self.key], self.key, self.dtype, merges=self.merges)
                if self.key in m.context else None for m in messages]

    def steps(self, messages: Sequence[Message]) -> Steps:
        return [[read_feature(m.buf, span, self.key, self.dtype, merges=self.merges)
                 for span in message_spans(m.buf, *m.lists[self.key])] if self.key in m.lists else None
                for m in messages]

    def sparse(self, messages: Sequence[Message]) -> tuple[Any, Any, Any]:
        """Indices, values and dense shape of a feature in the context."""
        rows = self.rows(messages)
        lengths = counts(rows)
        shape = np.array([len(rows), lengths.max(initial=0)], np.int64)
        return ragged_indices(lengths)[:, self.single :], flat(rows, self.dtype), shape[self.single :]

    def ragged(self, splits_type: DType, messages: Sequence[Message]) -> tuple[Any, Any]:
        """Values and row splits of a feature in the context; a single message has no splits."""
        rows = self.rows(messages)
        splits = np.cumsum([0, *counts(rows)]).astype(splits_type.numpy)
        return flat(rows, self.dtype), splits[:0] if self.single else splits

    def dense(self, shape: tuple[int, ...], default: Any, messages: Sequence[Message]) -> tuple[Any]:
        """A feature in the context. An empty default stands for none."""
        rows, size = self.rows(messages), prod(shape)
        if None in rows and default.size != size:
            raise errors.InvalidArgument(f"Context feature {self.key!r} is required but could not be found")
        filled = [default.reshape(-1) if row is None else row for row in rows]
        lengths = {len(row) for row in filled} or {default.size}
        if lengths != {size}:
            raise errors.InvalidArgument(f"Context feature {self.key!r}: shape {shape} needs {size} values, "
                                         f"given {sorted(lengths)}")
        values = flat(filled, self.dtype).reshape(len(rows), *shape)
        return (values[0, ...] if self.single else values,)

    def sparse_list(self, messages: Sequence[Message]) -> tuple[Any, Any, Any]:
        """Indices [message, step, place], values and dense shape of a feature list."""
        steps = [row or () for row in self.steps(messages)]
        in_steps = ragged_indices([len(row) for row in steps])
        lengths = counts([*chain.from_iterable(steps)])
        places = ragged_indices(lengths)
        indices = np.column_stack([in_steps[places[:, 0]], places[:, 1]])
        longest = max(map(len, steps), default=0)
        shape = np.array([len(steps), longest, lengths.max(initial=0)], np.int64)
        return indices[:, self.single :], flat([*chain.from_iterable(steps)], self.dtype), shape[self.single :]

    def ragged_list(self, splits_type: DType, messages: Sequence[Message]) -> tuple[Any, Any, Any]:
        """Values, splits into messages, and splits into steps; a single message has no splits into messages."""
        steps = [row or () for row in self.steps(messages)]
        flat_steps = [*chain.from_iterable(steps)]
        outer, inner = (np.cumsum([0, *lengths]).astype(splits_type.numpy)
                        for lengths in (map(len, steps), map(len, flat_steps)))
        return flat(flat_steps, self.dtype), outer[:0] if self.single else outer, inner

    def dense_list(
        self, shape: tuple[int, ...], missing_is_empty: bool, ask: Callable[[int, str], None],
        messages: Sequence[Message],
    ) -> tuple[Any, Any]:
        """A feature list, padded to the most steps, and the number of steps."""
        rows, size = self.steps(messages), prod(shape)
        if None in rows and not missing_is_empty:
            raise errors.InvalidArgument(f"Feature list {self.key!r} is required but could not be found. Did you mean "
                                         "to include it in feature_list_dense_missing_assumed_empty?")
        steps = [row or () for row in rows]
        for values in chain.from_iterable(steps):
            if len(values) != size:
                raise errors.InvalidArgument(f"Feature list {self.key!r}: shape {shape} needs {size} values, "
                                             f"given {len(values)}")
        lengths = np.array([len(row) for row in steps], np.int64)
        longest = int(lengths.max(initial=0))
        ask(len(steps) * longest * size * self.dtype.numpy.itemsize, f"feature list {self.key!r}, padded,")
        out = zeros(self.dtype, (len(steps), longest, *shape))
        out[np.arange(longest) < lengths[:, None]] = flat([*chain.from_iterable(steps)], self.dtype).reshape(-1, *shape)
        return (out[0, ...], lengths[0]) if self.single else (out, lengths)


class Request(NamedTuple):
    """The keys that a run reads, and the defaults of dense features in the context."""

    sparse: Keys
    dense: Keys
    ragged: Keys
    sparse_lists: Keys
    dense_lists: Keys
    ragged_lists: Keys
    empty_lists: Sequence[bool]  # for each dense list, if a missing one is empty
    defaults: Sequence[Any]


def reader(b: Bind, *, merges: bool) -> Callable[[Any, Request], tuple[Any, ...]]:
    """A function from serialized messages and a request to the op's outputs."""
    attrs = b.attrs
    value_types, split_types = attrs.get("context_ragged_value_types", ()), attrs.get("context_ragged_split_types", ())
    list_types = attrs.get("feature_list_ragged_value_types", ()), attrs.get("feature_list_ragged_split_types", ())

    def read(serialized: Any, request: Request) -> tuple[Any, ...]:
        if not merges:
            _check_keys_differ(request.dense, (*request.sparse, *request.ragged))
            _check_keys_differ(request.dense_lists, (*request.sparse_lists, *request.ragged_lists))

        def columns(keys: Keys, types: Sequence[DType]) -> list[Column]:
            return [Column(key, dtype, serialized.ndim == 0, merges) for key, dtype in zip(keys, types, strict=True)]

        def read_all(reads: Iterable[Callable[[Sequence[Message]], tuple[Any, ...]]], parts: int) -> list[Any]:
            return by_part([read_column(messages) for read_column in reads], parts)

        dense = zip(columns(request.dense, attrs["Tcontext_dense"]), attrs["context_dense_shapes"], request.defaults,
                    strict=True)
        dense_lists = zip(columns(request.dense_lists, attrs["feature_list_dense_types"]),
                          attrs["feature_list_dense_shapes"], request.empty_lists, strict=True)
        sparse_lists = columns(request.sparse_lists, attrs["feature_list_sparse_types"])
        ragged = zip(columns(request.ragged, value_types), split_types, strict=True)
        ragged_lists = zip(columns(request.ragged_lists, list_types[0]), list_types[1], strict=True)
        try:
            messages = parse_messages(serialized.reshape(-1))
            return (
                *read_all([c.sparse for c in columns(request.sparse, attrs["context_sparse_types"])], 3),
                *read_all([partial(c.dense, shape, default) for c, shape, default in dense], 1),
                *read_all([partial(c.ragged, splits) for c, splits in ragged], 2),
                *read_all([c.sparse_list for c in sparse_lists], 3),
                *read_all([partial(c.dense_list, shape, empty, b.ask) for c, shape, empty in dense_lists], 2),
                *read_all([partial(c.ragged_list, splits) for c, splits in ragged_lists], 3),
            )
        except errors.DataLoss as error:
            raise errors.InvalidArgument(f"Could not parse example input: {error}") from None

    return read


def _check_keys_differ(dense: Keys, others: Keys) -> None:
    for key in others:
        if key in dense:
            raise errors.InvalidArgument(f"Feature {key!r} cannot be both dense and sparse or ragged")


def parse_sequence_example(b: Bind) -> Run:
    read, attrs = reader(b, merges=False), b.attrs
    keys = {name: [*map(encode, attrs[name])] for name in (
        "context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys", "feature_list_dense_keys",
        "feature_list_dense_missing_assumed_empty")}
    empty = [key in keys["feature_list_dense_missing_assumed_empty"] for key in keys["feature_list_dense_keys"]]

    def run(serialized: Any, _names: Any, *defaults: Any) -> tuple[Any, ...]:
        request = Request(keys["context_sparse_keys"], keys["context_dense_keys"], (), keys["feature_list_sparse_keys"],
                      keys["feature_list_dense_keys"], (), empty, defaults)
        return read(serialized, request)

    return run


def parse_sequence_example_v2(b: Bind) -> Run:
    read = reader(b, merges=False)

    def run(serialized: Any, _names: Any, *inputs: Any) -> tuple[Any, ...]:
        sparse, dense, ragged, sparse_lists, dense_lists, ragged_lists, empty = (x.tolist() for x in inputs[:7])
        request = Request(sparse, dense, ragged, sparse_lists, dense_lists, ragged_lists, empty, inputs[7:])
        return read(serialized, request)

    return run


def parse_single_sequence_example(b: Bind) -> Run:
    read = reader(b, merges=True)
    counted = [b.attrs[name] for name in ("Ncontext_sparse", "Ncontext_dense", "Nfeature_list_sparse",
                                          "Nfeature_list_dense")]
    ends = np.cumsum(counted).tolist()

    def run(serialized: Any, assumed_empty: Any, *inputs: Any) -> tuple[Any, ...]:
        keys = [[key[()] for key in inputs[end - count : end]] for count, end in zip(counted, ends, strict=True)]
        names = set(assumed_empty.tolist())
        empty = [key in names for key in keys[3]]
        outputs = read(serialized, Request(keys[0], keys[1], (), keys[2], keys[3], (), empty, inputs[ends[-1] : -1]))
        return outputs[: len(outputs) - counted[3]]  # this op returns no numbers of steps

    return run


def register_kernels(kernels: Kernels) -> None:
    for op, bind in {
        "ParseSequenceExample": parse_sequence_example, "ParseSequenceExampleV2": parse_sequence_example_v2,
        "ParseSingleSequenceExample": parse_single_sequence_example,
    }.items():
        kernels.kernel(op, allocates=True)(bind)
