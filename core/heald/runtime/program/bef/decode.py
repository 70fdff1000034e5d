"""A BEF file as a CompiledModel. Functions are decoded and verified when they are first asked for."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod
from typing import Any, cast

from ....errors import DataLoss, Location, Unimplemented
from ...support.records import NamedTuple
from ...values.tensor import LARGEST_ELEMENT_COUNT, MOST_DIMS, TensorMetadata
from ..compiled_model import CompiledModel, Entry, Port, PreparedConstant, Requirement
from ..host_program import HOST, Call, ProgramDef, ProgramFunction, RegisterType
from ..verifier import VerifiedFunctions, verify_function
from . import attributes
from .arrays import Arrays, LazySequence, read_dtype
from .sections import ALIGNMENT, CHAIN, NONSTRICT, SIGNATURE, STATEFUL, SYNC, Section, Strings, read_sections
from .vbr import SectionReader

_HEADER = struct.Struct("<6I")  # of a kernel
_REQUIRED = (Section.STRINGS, Section.KERNELS, Section.TYPES, Section.FUNCTION_INDEX, Section.FUNCTIONS)
_HEALD_SECTIONS = (Section.ARRAYS, Section.MODEL, Section.FUNCTION_FACTS)
_FUNCTION_KINDS = {1: "native", 2: "synchronous"}  # of functions that heald does not run
_FLAGS = NONSTRICT | CHAIN | SIGNATURE | STATEFUL


class IndexRow(NamedTuple):
    """A row of the function index: its number, the function's name, where it begins, and ids of types."""

    number: int
    start: int
    name: str
    args: tuple[int, ...]
    results: tuple[int, ...]
    is_sync: bool


class _CallFacts(NamedTuple):
    """The fields of a Call that TFRT's layout lacks."""

    node: str = ""
    nonstrict: bool = False
    after: tuple[int, ...] = ()
    chain: int | None = None


_NO_FACTS = _CallFacts()


class LazyFunctions(VerifiedFunctions):
    """The functions of a file by name. A function is decoded and verified when it is first asked for.

    Getting one raises DataLoss or Unimplemented for malformed bytes, InvalidArgument as `program.verifier.verify`.
    """

    def __init__(self, file: BefFile) -> None:
        self._file = file
        self._done: dict[str, ProgramFunction] = {}

    def __getitem__(self, name: str) -> ProgramFunction:
        if name not in self._done:
            return self._done.setdefault(name, self._file.function(self._file.index[name]))
        return self._done[name]

    def __contains__(self, name: object) -> bool:
        return name in self._file.index

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.index)

    def __len__(self) -> int:
        return len(self._file.index)

    def __repr__(self) -> str:
        return f"<functions {', '.join(self)}>"


def decode(view: memoryview) -> CompiledModel:
    """The model in the bytes of a file. Raises DataLoss for a file that is damaged, Unimplemented for another version
    and for functions that heald does not run."""
    return BefFile(view).model


class BefFile:
    """The sections of a file. Every section but the arrays' is copied, so that later changes of the file harm only
    arrays."""

    def __init__(self, view: memoryview) -> None:
        bounds = read_sections(view)
        for section in _REQUIRED:
            if section not in bounds:
                raise DataLoss(f"the file lacks the section {section.title}", hint="write it again")
        self._is_own = any(section in bounds for section in _HEALD_SECTIONS)
        if self._is_own and not all(section in bounds for section in _HEALD_SECTIONS):
            titles = ', '.join(section.title for section in _HEALD_SECTIONS)
            raise DataLoss(f"the file has some of the sections {titles}, and lacks others",
                           hint="write it again")
        self._bytes = {number: bytes(view[start:stop]) for number, (start, stop) in bounds.items()
                       if number != Section.ARRAYS}
        self._strings = Strings(self._bytes[Section.STRINGS], Section.STRINGS.title)
        self._codes = self._names(Section.KERNELS)
        self._types: list[RegisterType] = [*self._names(Section.TYPES)]
        self.requires: tuple[str, ...] = ()
        self.arrays: Arrays | None = None
        self._constants = 0
        self.functions = LazyFunctions(self)
        if not self._is_own:
            self.index = self._read_index()
            self.model = CompiledModel(ProgramDef(self.functions))
            return
        start, stop = bounds[Section.ARRAYS]
        cursor = self._cursor(Section.MODEL)
        self._read_program(cursor, view, start, stop)
        self.index = self._read_index()
        self.model = self._read_model(cursor)

    def _cursor(self, section: Section, at: int = 0) -> SectionReader:
        """A cursor in a section. Raises Unimplemented for an optional section that the file lacks."""
        data = self._bytes.get(section)
        if data is None:
            raise Unimplemented(f"the file lacks the section {section.title}, without which its kernels cannot be read",
                                hint="write the file with its optional sections")
        return SectionReader(data, section.title, at)

    def _names(self, section: Section) -> list[str]:
        cursor = self._cursor(section)
        return [self._strings[cursor.vbr()] for _ in range(cursor.count())]

    def _body(self, row: IndexRow) -> SectionReader:
        """A cursor in the bytes of one function, which end where the next one begins."""
        data = self._bytes[Section.FUNCTIONS]
        end = self._ends_by_function.get(row.number, len(data))
        return SectionReader(data[row.start : end], Section.FUNCTIONS.title, base=row.start)

    @cached_property
    def _ends_by_function(self) -> dict[int, int]:
        return {row.number - 1: row.start for row in self.index.values()}

    def _read_index(self) -> dict[str, IndexRow]:
        cursor = self._cursor(Section.FUNCTION_INDEX)
        rows: dict[str, IndexRow] = {}
        start = -1
        for number in range(cursor.count(least=5)):
            kind = cursor.take(1)[0]
            offset, name = cursor.vbr(), self._strings[cursor.vbr()]
            if kind and (kind != SYNC or not self._is_own):
                raise Unimplemented(f"function '{name}' is {_FUNCTION_KINDS.get(kind, f'of kind {kind}')}, and heald "
                                    "runs BEF functions alone", hint="write the program without it")
            if not name:
                name = f"%{number}"  # a region, which has no name
            if name in rows:
                raise cursor.wrong(f"two functions are called '{name}'")
            if not start < offset < len(self._bytes[Section.FUNCTIONS]):
                raise cursor.wrong(f"function '{name}' is at {offset}, which is not after {start} in the section "
                                   "Functions")
            start = offset
            rows[name] = IndexRow(number, offset, name, self._type_ids(cursor), self._type_ids(cursor), kind == SYNC)
        return rows

    def _type_ids(self, cursor: SectionReader) -> tuple[int, ...]:
        return tuple(cursor.index(len(self._types), "type") for _ in range(cursor.count()))

    # The model

    def _read_program(self, cursor: SectionReader, view: memoryview, start: int, stop: int) -> None:
        self._form, self._chosen, self.requires = cursor.text(), cursor.text(), _texts(cursor)
        if cursor.count() != len(self._types):
            raise cursor.wrong(f"the section Types has {len(self._types)} types, and there are facts of others")
        for number in range(len(self._types)):
            if cursor.take(1) != b"\0":
                self._types[number] = _meta(cursor)
        self.arrays = Arrays(view, start, stop, cursor)
        self._constants = cursor.vbr()
        if self._constants > len(self.arrays):
            raise cursor.wrong(f"there are {len(self.arrays)} arrays for {self._constants} constants")

    def _read_model(self, cursor: SectionReader) -> CompiledModel:
        assert self.arrays is not None
        arrays = self.arrays
        rows = [(_texts_of(cursor, 5), cursor.index(len(arrays), "array")) for _ in range(cursor.count())]

        def read_prepared(index: int) -> PreparedConstant:
            (function, node, device, key, fingerprint), array = rows[index]
            return PreparedConstant(function, node, device, key, fingerprint, arrays[array])

        entries = tuple(self._entry(cursor) for _ in range(cursor.count()))
        requirements = tuple(Requirement(*_texts_of(cursor, 4)) for _ in range(cursor.count()))
        cursor.end()
        constants: Sequence[Any] = LazySequence(self._constants, arrays.constant)
        program = ProgramDef(self.functions, cast("tuple[Any, ...]", constants), self.requires)
        prepared_constants = cast("tuple[PreparedConstant, ...]", LazySequence(len(rows), read_prepared))
        return CompiledModel(program, entries, requirements, prepared_constants, self._form, self._chosen)

    def _entry(self, cursor: SectionReader) -> Entry:
        entry = Entry(cursor.text(), cursor.text(), _ports(cursor), _ports(cursor), _texts(cursor))
        for name, takes in ((entry.function, len(entry.inputs)), *((name, 0) for name in entry.initial)):
            if name not in self.index:
                raise cursor.wrong(f"an entry names the function '{name}', which the program lacks")
            if len(self.index[name].args) != takes:
                raise cursor.wrong(f"the function '{name}' of an entry takes {len(self.index[name].args)} arguments, "
                                   f"{takes} are expected")
        if len(self.index[entry.function].results) != len(entry.outputs):
            raise cursor.wrong(f"an entry has {len(entry.outputs)} outputs, and its function '{entry.function}' "
                               f"returns {len(self.index[entry.function].results)}")
        return entry

    # One function

    def function(self, row: IndexRow) -> ProgramFunction:
        cursor = self._body(row)
        location = self._location(cursor.vbr())
        registers = cursor.count()
        for _ in range(registers):
            cursor.vbr()
        listed = [(cursor.vbr(), cursor.vbr(), cursor.vbr()) for _ in range(cursor.count(least=3))]
        results = tuple(cursor.index(registers, "register") for _ in row.results)
        cursor.align(ALIGNMENT[Section.FUNCTIONS])
        types = self._registers(row, registers)
        if not listed:
            raise cursor.wrong(f"function '{row.name}' lacks the kernel of its arguments")
        self._check_argument_kernel(row, types, results, cursor, listed[0][0])
        names, targets, is_compiled, facts = self._facts(row, len(listed) - 1)
        attributes_of = self._attribute_names(row.number)
        calls = []
        begin = cursor.at
        for (at, _, stream), attribute_names, one in zip(listed[1:], attributes_of[1:], facts, strict=True):
            if begin + at < cursor.at:  # kernels never overlap, so that each is read once
                raise cursor.wrong(f"a kernel is at {cursor.base + begin + at}, and the one before ends here")
            cursor.at = begin + at
            device = stream - 1 if self._is_own and stream <= len(self.requires) else HOST
            calls.append(self._call(cursor, device, attribute_names, one))
        streams = self._streams([stream for _, _, stream in listed[1:]])
        function = ProgramFunction(row.name, names, types, tuple(calls), results, targets, location, is_compiled,
                                   streams, row.is_sync)
        verify_function(function, ProgramDef(self.functions, (None,) * self._constants, self.requires))
        return function

    def _streams(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """The streams of a function's host kernels from the numbers in the file; empty when it has none."""
        if not self._is_own:
            return tuple(numbers)
        first = 1 + len(self.requires)
        return tuple(number - first for number in numbers) if numbers and min(numbers) >= first else ()

    def _registers(self, row: IndexRow, count: int) -> tuple[RegisterType, ...]:
        cursor = self._cursor(Section.REGISTER_TYPES, self._register_starts[row.number])
        ids = self._type_ids(cursor)
        if len(ids) != count:
            raise cursor.wrong(f"function '{row.name}' has {count} registers and {len(ids)} types")
        return tuple(map(self._types.__getitem__, ids))

    @cached_property
    def _register_starts(self) -> list[int]:
        """The offset of each function in RegisterTypes."""
        return self._starts(Section.REGISTER_TYPES, lambda cursor: [cursor.vbr() for _ in range(cursor.count())])

    def _starts(self, section: Section, skip: Any) -> list[int]:
        cursor = self._cursor(section)
        if cursor.count() != len(self.index):
            raise cursor.wrong(f"it has not as many entries as there are functions: {len(self.index)}")
        starts = []
        for _ in self.index:
            starts.append(cursor.at)
            skip(cursor)
        return starts

    def _check_argument_kernel(
        self, row: IndexRow, types: Sequence[RegisterType], results: Sequence[int], cursor: SectionReader, at: int,
    ) -> None:
        """Check the pseudo kernel, whose results are the arguments, and the types of the index."""
        count = len(row.args)
        _, _, nargs, nattrs, nfunctions, nresults = self._words(cursor, cursor.at + at, 6)
        if (nargs, nattrs, nfunctions, nresults) != (0, 0, 0, 1 + count):
            raise cursor.wrong(f"the kernel of the arguments of function '{row.name}' has {nresults} results, "
                               f"{1 + count} are expected")
        words = self._words(cursor, cursor.at + at, 6 + 2 * nresults)
        if words[6 + nresults + 1 :] != (*range(count),):
            raise cursor.wrong(f"the arguments of function '{row.name}' are not its first registers")
        if len(types) < count:
            raise cursor.wrong(f"function '{row.name}' has {count} arguments and {len(types)} registers")
        index = *(self._types[kind] for kind in row.args), *(self._types[kind] for kind in row.results)
        if index != (*types[:count], *(types[register] for register in results)):
            raise cursor.wrong(f"the types of function '{row.name}' differ from those of its registers")

    def _words(self, cursor: SectionReader, at: int, count: int) -> tuple[int, ...]:
        """The 32-bit words at an offset. Raises DataLoss past the end."""
        if at + 4 * count > len(cursor.data):
            raise cursor.wrong(f"a kernel at {at} of {count} words passes the end, {len(cursor.data)}")
        return struct.unpack_from(f"<{count}I", cursor.data, at)

    def _call(self, cursor: SectionReader, stream: int, names: Sequence[str], facts: _CallFacts) -> Call:
        """The kernel at the cursor, which moves past its results."""
        code, location, nargs, nattrs, nfunctions, nresults = self._words(cursor, cursor.at, 6)
        size = 6 + nargs + nattrs + nfunctions + 2 * nresults
        words = self._words(cursor, cursor.at, size)[6 + nresults :]
        cursor.at += 4 * size
        if code >= len(self._codes):
            raise cursor.wrong(f"a kernel has code {code}, and there are {len(self._codes)} kernels")
        offsets = words[nargs : nargs + nattrs]
        functions = words[nargs + nattrs : nargs + nattrs + nfunctions]
        if any(function >= len(self.index) for function in functions):
            raise cursor.wrong(f"a kernel names function {max(functions)}, and there are {len(self.index)}")
        attrs = {name: self._attribute(offset) for name, offset in zip(names, offsets, strict=True)}
        if len(attrs) < nattrs:
            raise cursor.wrong("a kernel has two attributes of one name")
        return Call(
            self._codes[code], words[:nargs], words[len(words) - nresults :], attrs,
            stream, facts.node, tuple(map(self._function_names.__getitem__, functions)),
            facts.nonstrict, self._location(location), facts.after, facts.chain)

    @cached_property
    def _function_names(self) -> tuple[str, ...]:
        return tuple(self.index)

    # Attributes

    @cached_property
    def _attribute_starts(self) -> dict[int, tuple[int, int]]:
        """By the offset of an attribute: its type, and the offset of the next one."""
        cursor = self._cursor(Section.ATTRIBUTE_TYPES)
        types = {cursor.vbr(): cursor.vbr() for _ in range(cursor.count(least=2))}
        offsets = sorted(types)
        ends = [*offsets[1:], len(self._bytes.get(Section.ATTRIBUTES, b""))]
        return {at: (types[at], end) for at, end in zip(offsets, ends, strict=False)}

    @cached_property
    def _known_attributes(self) -> dict[int, Any]:
        return {}

    def _attribute(self, offset: int) -> Any:
        decoded = self._known_attributes
        if offset not in decoded:
            kind, end = self._attribute_starts.get(offset, (None, 0))
            if kind is None:
                raise DataLoss(f"section AttributeTypes has no type for the attribute at offset {offset}",
                               hint="the file is damaged: write it again")
            data = self._bytes.get(Section.ATTRIBUTES, b"")[offset:end]
            reader = SectionReader(data, Section.ATTRIBUTES.title, base=offset)
            decoded[offset] = attributes.decode(kind, reader, self.arrays)
        return decoded[offset]

    def _attribute_names(self, number: int) -> list[list[str]]:
        """The names of the attributes of each kernel of a function."""
        counts = self._attribute_counts[number]
        if not any(counts):
            return [[] for _ in counts]
        cursor = self._cursor(Section.ATTRIBUTE_NAMES, self._name_starts[number])
        cursor.vbr()
        return [[self._strings[cursor.vbr()] for _ in range(count)] for count in counts]

    @cached_property
    def _name_starts(self) -> list[int]:
        """The offset of each function in AttributeNames."""
        counts = iter(self._attribute_counts)
        return self._starts(Section.ATTRIBUTE_NAMES,
                            lambda cursor: [cursor.vbr() for _ in range(1 + sum(next(counts)))])

    @cached_property
    def _attribute_counts(self) -> list[list[int]]:
        """The number of attributes of each kernel of each function."""
        counts_by_function = []
        for row in self.index.values():
            cursor = self._body(row)
            cursor.vbr()
            for _ in range(cursor.count()):
                cursor.vbr()
            offsets = [(cursor.vbr(), cursor.vbr(), cursor.vbr())[0] for _ in range(cursor.count(least=3))]
            for _ in row.results:
                cursor.vbr()
            cursor.align(ALIGNMENT[Section.FUNCTIONS])
            counts = [self._words(cursor, cursor.at + at, 6)[3] for at in offsets]
            if sum(counts) > len(cursor.data):
                raise cursor.wrong(f"the kernels of function '{row.name}' have {sum(counts)} attributes")
            counts_by_function.append(counts)
        return counts_by_function

    # Locations

    def _location(self, offset: int) -> Location | None:
        """The place at an offset: of a name its child's, of a call the callee's, of several the first."""
        data = self._bytes.get(Section.LOCATIONS, b"")
        if offset >= len(data):
            if offset and offset < _UNENCODED:
                raise SectionReader(data, Section.LOCATIONS.title, 0).wrong(f"a location is at {offset}, past the end")
            return None
        cursor = SectionReader(data, Section.LOCATIONS.title, offset)
        for _ in range(_DEEPEST_LOCATION):
            kind = cursor.index(_FUSED + 1, "the kind of a location")
            if kind == _PLACE:
                file, line, column = self._files[cursor.vbr()], cursor.vbr(), cursor.vbr()
                return Location(file, line or None, column or None)
            if kind == _NAMED:
                cursor.vbr()
            elif kind == _UNKNOWN or (kind == _FUSED and not cursor.vbr()):
                return None
        raise cursor.wrong(f"locations are nested deeper than {_DEEPEST_LOCATION} levels")

    @cached_property
    def _files(self) -> Strings:
        return Strings(self._bytes.get(Section.LOCATION_STRINGS, b""), Section.LOCATION_STRINGS.title)

    # heald's facts

    @cached_property
    def _fact_starts(self) -> list[int]:
        return self._starts(Section.FUNCTION_FACTS, SectionReader.sized_bytes)

    def _facts(self, row: IndexRow, kernels: int) -> tuple[tuple[str, ...], tuple[int, ...], bool, list[_CallFacts]]:
        """Argument names, targets, `is_compiled`, and the facts of each call."""
        if not self._is_own:
            return tuple(f"arg{i}" for i in range(len(row.args))), (), False, [_NO_FACTS] * kernels
        outer = self._cursor(Section.FUNCTION_FACTS, self._fact_starts[row.number])
        cursor = SectionReader(outer.sized_bytes(), Section.FUNCTION_FACTS.title, base=outer.at)
        names, targets, is_compiled = _texts(cursor), _numbers(cursor), cursor.index(2, "the flag") == 1
        if len(names) != len(row.args):
            raise cursor.wrong(f"function '{row.name}' has {len(row.args)} arguments and {len(names)} names")
        calls = [_call_facts(cursor) for _ in range(kernels)]
        cursor.end()
        return names, targets, is_compiled, calls


_UNKNOWN, _PLACE, _NAMED, _, _FUSED = range(5)  # kinds of locations; 3 is a call: the callee, then the caller
_DEEPEST_LOCATION = 64
_UNENCODED = (1 << 32) - (1 << 24)  # offsets from here up stand for locations that TFRT could not write


def _call_facts(cursor: SectionReader) -> _CallFacts:
    flags = cursor.index(_FLAGS + 1, "the flags of a call")
    node, after = cursor.text(), _numbers(cursor)
    chain = cursor.vbr() if flags & CHAIN else None
    if flags & SIGNATURE:
        _skip_signature(cursor)
    return _CallFacts(node, bool(flags & NONSTRICT), after, chain)


def _skip_signature(cursor: SectionReader) -> None:
    """Skip the facts about an op, which older files state: names and types of inputs and outputs, value inputs."""
    for _ in range(2):
        for _ in range(cursor.count()):
            cursor.text()
            cursor.vbr()
    _numbers(cursor)


def _texts(cursor: SectionReader) -> tuple[str, ...]:
    return tuple(cursor.text() for _ in range(cursor.count()))


def _texts_of(cursor: SectionReader, count: int) -> tuple[str, ...]:
    """Exactly so many texts."""
    texts = _texts(cursor)
    if len(texts) != count:
        raise cursor.wrong(f"{count} texts are expected, {len(texts)} are given")
    return texts


def _numbers(cursor: SectionReader) -> tuple[int, ...]:
    return tuple(cursor.vbr() for _ in range(cursor.count()))


def _ports(cursor: SectionReader) -> tuple[Port, ...]:
    return tuple(Port(cursor.text(), cursor.text(), _meta(cursor)) for _ in range(cursor.count()))


def _meta(cursor: SectionReader) -> TensorMetadata:
    dtype = read_dtype(cursor, cursor.vbr())
    rank = cursor.vbr()
    if not rank:
        return TensorMetadata(dtype, None)
    if rank > MOST_DIMS + 1:
        raise cursor.wrong(f"a shape has {rank - 1} dimensions, the most is {MOST_DIMS}")
    shape = tuple(dim - 1 if (dim := cursor.vbr()) else None for _ in range(rank - 1))
    if None not in shape and prod(dim or 0 for dim in shape) > LARGEST_ELEMENT_COUNT:
        raise cursor.wrong("a shape has more than 2**63 - 1 elements")
    return TensorMetadata(dtype, shape)
