"""A CompiledModel as the pieces of a BEF file. docs/bef.md has the layout."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from ....errors import InvalidArgument, Location
from ...values.dtypes import DType
from ...values.tensor import Shape, TensorMetadata
from ..compiled_model import CompiledModel, Port
from ..host_program import Call, ProgramFunction, RegisterType
from . import attributes
from .arrays import ArrayWriter
from .sections import (
    ALIGNMENT,
    CHAIN,
    MAGIC,
    NONSTRICT,
    PADDING,
    SYNC,
    VERSION,
    Section,
    put_header,
    string_table,
)
from .vbr import put_bytes, put_text, put_vbr

PSEUDO_CODE, PSEUDO_LOCATION = 0xABABABAB, 0xCDCDCDCD  # of kernel 0, whose results are the arguments
ELEMENT_TYPES = {  # MLIR's names
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "bool": "i1", "int4": "i4", "int8": "i8",
    "int16": "i16", "int32": "i32", "int64": "i64", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16", "uint32": "ui32",
    "uint64": "ui64", "complex64": "complex<f32>", "complex128": "complex<f64>"}


def file_pieces(model: CompiledModel) -> list[Any]:
    """The bytes of a file, in pieces. Raises InvalidArgument for a value or a name that a file cannot hold."""
    return _Encoder(model).file_pieces()


def mlir_type(kind: RegisterType) -> str:
    """A register's type as MLIR prints it; the name of a host type stays."""
    if isinstance(kind, str):
        return kind
    element = ELEMENT_TYPES.get(kind.dtype.name, f"!tf_type.{kind.dtype.name}")
    if kind.shape is None:
        return f"tensor<*x{element}>"
    dims = ("?" if dim is None else str(dim) for dim in kind.shape)
    return f"tensor<{'x'.join((*dims, element))}>"


class _Encoder:
    """The sections of one model. A table keeps its entries in order of first appearance."""

    def __init__(self, model: CompiledModel) -> None:
        self._model = model
        self._functions = tuple(model.program.functions.values())
        self._indices = {function.name: index for index, function in enumerate(self._functions)}
        calls = [call for function in self._functions for call in function.kernels]
        self._kernels = _index_of_item(call.code for call in calls)
        self._types = _index_of_item(chain.from_iterable(function.register_types for function in self._functions))
        self._names = [_written_name(index, name) for name, index in self._indices.items()]
        texts = {*self._kernels, *map(mlir_type, self._types), *self._names}
        texts.update(chain.from_iterable(call.attrs for call in calls))
        self._strings, self._offsets = string_table(sorted(map(_name, texts), key=_bytewise))
        locations = (*(function.location for function in self._functions), *(call.location for call in calls))
        places = [location for location in locations if location is not None]
        self._files, self._file_offsets = string_table(_name(location.file) for location in places)
        self._has_locations = bool(places)
        self._arrays = ArrayWriter()
        self._attributes = bytearray()
        self._attribute_types: list[tuple[int, int]] = []
        self._attribute_offsets: dict[tuple[int, bytes], int] = {}
        self._tagged: dict[int, tuple[int, Any]] = {}  # offsets by the id of the value, which stays alive
        self._locations = bytearray()

    def file_pieces(self) -> list[Any]:
        program = self._model.program
        for index, value in enumerate(program.constants):
            self._arrays.add(value, f"constant {index}")
        prepared = [self._arrays.add_shared(one.value, f"the prepared constant '{one.key}' of node '{one.node}'")
                    for one in self._model.prepared]
        functions, starts = bytearray(), []
        for function in self._functions:
            starts.append(len(functions))
            self._put_function(functions, function)
        sections: list[tuple[Section, bytes]] = [
            (Section.STRINGS, self._strings), (Section.ATTRIBUTES, bytes(self._attributes)),
            (Section.KERNELS, self._table(self._kernels)), (Section.TYPES, self._table(map(mlir_type, self._types))),
            (Section.FUNCTION_INDEX, self._index(starts)), (Section.FUNCTIONS, bytes(functions)),
        ]
        if self._has_locations:
            sections += [(Section.LOCATION_STRINGS, self._files), (Section.LOCATIONS, bytes(self._locations))]
        sections += [
            (Section.ATTRIBUTE_TYPES, _with_count(put_vbr(at) + put_vbr(kind) for at, kind in self._attribute_types)),
            (Section.ATTRIBUTE_NAMES, _with_count(map(self._attribute_names, self._functions))),
            (Section.REGISTER_TYPES, _with_count(
                _numbers(map(self._types.__getitem__, function.register_types)) for function in self._functions)),
        ]
        head = bytearray(MAGIC + bytes((VERSION,)))
        for section, data in sections:
            head += put_header(section, len(data), len(head)) + data
        return [bytes(head), *self._heald_sections(len(head), prepared)]

    def _heald_sections(self, position: int, prepared: Sequence[int]) -> list[Any]:
        """heald's own sections, from this position on."""
        raw, table = self._arrays.layout(
            lambda size: position + len(put_header(Section.ARRAYS, size, position)))
        size = sum(map(len, raw))
        head = put_header(Section.ARRAYS, size, position)
        tail = bytearray()
        after = position + len(head) + size
        for section, data in ((Section.MODEL, self._put_model(table, prepared)),
                              (Section.FUNCTION_FACTS, _facts(self._functions))):
            tail += put_header(section, len(data), after + len(tail)) + data
        return [head, *raw, bytes(tail)]

    def _table(self, names: Iterable[str]) -> bytes:
        return _with_count(put_vbr(self._offsets[name]) for name in names)

    def _index(self, starts: Sequence[int]) -> bytes:
        types = self._types
        return _with_count(
            bytes((SYNC * function.is_sync,)) + put_vbr(start) + put_vbr(self._offsets[name])
            + _numbers(types[kind] for kind in function.arg_types)
            + _numbers(types[function.register_types[register]] for register in function.results)
            for start, name, function in zip(starts, self._names, self._functions, strict=True))

    def _put_location(self, location: Location | None) -> int:
        """Add an entry for an operation; return its offset. 0 stands for an unknown line or column."""
        if not self._has_locations:
            return 0
        at = len(self._locations)
        if location is None:
            self._locations += b"\0"
        else:
            line, column = location.line or 0, location.column or 0
            if line < 0 or column < 0:
                raise InvalidArgument(f"a location has line {line} and column {column}", location=location)
            self._locations += b"\1" + b"".join(map(put_vbr, (self._file_offsets[location.file], line, column)))
        return at

    def _put_function(self, out: bytearray, function: ProgramFunction) -> None:
        users: list[list[int]] = [[] for _ in function.register_types]
        free = [index for index, call in enumerate(function.kernels, 1) if not call.args]
        for index, call in reversed(tuple(enumerate(function.kernels, 1))):
            for register in call.args:
                users[register].append(index)
        uses = [len(one) for one in users]
        for register in function.results:
            uses[register] += 1
        count = len(function.register_types)
        arguments = range(len(function.arg_names))
        listed = [_words((PSEUDO_CODE, PSEUDO_LOCATION, 0, 0, 0, 1 + len(arguments)), (len(free),),
                         (len(users[r]) for r in arguments), (count,), arguments, free,
                         *(users[r] for r in arguments))]
        location = self._put_location(function.location)
        listed += [self._kernel(call, users) for call in function.kernels]
        out += put_vbr(location) + _numbers(uses) + put_vbr(len(listed))
        at = 0
        operands = (0, *(len(call.args) for call in function.kernels))
        for raw, count_of, stream in zip(listed, operands, (0, *self._stream_numbers(function)), strict=True):
            out += put_vbr(at) + put_vbr(count_of) + put_vbr(stream)
            at += len(raw)
        out += b"".join(map(put_vbr, function.results))
        out += PADDING * (-len(out) % ALIGNMENT[Section.FUNCTIONS])
        out += b"".join(listed)

    def _stream_numbers(self, function: ProgramFunction) -> list[int]:
        """The stream of each call: 0 for the host, its device's number plus 1, or a number behind the devices' numbers
        for a stream of host kernels."""
        if function.streams:
            return [1 + len(self._model.program.requires) + stream for stream in function.streams]
        return [call.stream + 1 for call in function.kernels]

    def _kernel(self, call: Call, users: Sequence[Sequence[int]]) -> bytes:
        offsets = [self._put_attribute(call.attrs[name], f"{call.code}: attribute '{name}'")
                   for name in sorted(call.attrs, key=_bytewise)]
        functions = [self._indices[name] for name in call.functions]
        counts = len(call.args), len(offsets), len(functions), len(call.results)
        return _words((self._kernels[call.code], self._put_location(call.location), *counts),
                      (len(users[r]) for r in call.results), call.args, offsets, functions, call.results,
                      *(users[r] for r in call.results))

    def _put_attribute(self, value: Any, what: str) -> int:
        """Add an attribute, unless an equal one or the same object is there; return its offset."""
        if id(value) in self._tagged:
            return self._tagged[id(value)][0]
        encoded = attributes.encode(value, self._arrays, what)
        key = encoded.type, encoded.raw
        at = self._attribute_offsets.get(key)
        if at is None:
            self._attributes += encoded.padding(len(self._attributes))
            at = self._attribute_offsets[key] = len(self._attributes)
            self._attributes += encoded.raw
            self._attribute_types.append((at, encoded.type))
        if encoded.type == attributes.TAGGED:
            self._tagged[id(value)] = at, value
        return at

    def _attribute_names(self, function: ProgramFunction) -> bytes:
        names = (self._offsets[name] for call in function.kernels for name in sorted(call.attrs, key=_bytewise))
        return put_vbr(1 + len(function.kernels)) + b"".join(map(put_vbr, names))

    def _put_model(self, arrays: bytes, prepared: Sequence[int]) -> bytes:
        model = self._model
        return b"".join((
            put_text(model.form), put_text(model.chosen_signature), _texts(model.program.requires),
            _with_count(map(_type, self._types)), arrays, put_vbr(len(model.program.constants)),
            _with_count(_texts(one[:5]) + put_vbr(index) for one, index in zip(model.prepared, prepared, strict=True)),
            _with_count(put_text(one.signature) + put_text(one.function) + _ports(one.inputs) + _ports(one.outputs)
                        + _texts(one.initial) for one in model.entries),
            _with_count(map(_texts, model.requirements)),
        ))


def _facts(functions: Iterable[ProgramFunction]) -> bytes:
    """The facts of each function, after its length."""
    return _with_count(put_bytes(b"".join((
        _texts(function.arg_names), _numbers(function.targets), put_vbr(function.is_compiled),
        *map(_call_facts, function.kernels)))) for function in functions)


def _call_facts(call: Call) -> bytes:
    flags = NONSTRICT * call.nonstrict | CHAIN * (call.chain is not None)
    return b"".join((put_vbr(flags), put_text(call.node), _numbers(call.after),
                     b"" if call.chain is None else put_vbr(call.chain)))


def _ports(ports: Iterable[Port]) -> bytes:
    return _with_count(put_text(port.name) + put_text(port.tensor) + _meta(port.meta.dtype, port.meta.shape)
                       for port in ports)


def _type(kind: RegisterType) -> bytes:
    return b"\1" + _meta(kind.dtype, kind.shape) if isinstance(kind, TensorMetadata) else b"\0"


def _meta(dtype: DType, shape: Shape) -> bytes:
    """Element type and shape; the rank and each dimension plus 1, since 0 stands for an unknown one."""
    if shape is None:
        return put_vbr(dtype.number) + put_vbr(0)
    dims = (put_vbr(0 if dim is None else dim + 1) for dim in shape)
    return put_vbr(dtype.number) + put_vbr(len(shape) + 1) + b"".join(dims)


def _words(*numbers: Iterable[int]) -> bytes:
    flat = tuple(chain.from_iterable(numbers))
    return struct.pack(f"<{len(flat)}I", *flat)


def _with_count(items: Iterable[bytes]) -> bytes:
    listed = tuple(items)
    return put_vbr(len(listed)) + b"".join(listed)


def _numbers(numbers: Iterable[int]) -> bytes:
    return _with_count(map(put_vbr, numbers))


def _texts(texts: Iterable[str]) -> bytes:
    return _with_count(map(put_text, texts))


def _index_of_item(things: Iterable[Any]) -> dict[Any, int]:
    return {thing: index for index, thing in enumerate(dict.fromkeys(things))}


def _bytewise(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _written_name(index: int, name: str) -> str:
    """The name of a function in the file: none for a region, which is called by its index."""
    if not name:
        raise InvalidArgument(f"function {index} has no name", hint=f"call it '%{index}', as the region that it is")
    return "" if name == f"%{index}" else name


def _name(text: str) -> str:
    if "\0" in text:
        raise InvalidArgument(f"the name {text!r} has a zero character, which ends a string in BEF")
    return text
