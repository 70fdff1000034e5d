"""The sections of a file: their ids, names and alignment, the header of each, and the flags within them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from ....errors import DataLoss, Unimplemented
from ...support.file_kinds import HEAD_BYTES, check_content
from .vbr import NAME_ERRORS, SectionReader, put_vbr

MAGIC = b"\x0b\xef"
VERSION = 0
PADDING = b"\xcc"
SYNC = 2  # the kind of a function
NONSTRICT, CHAIN, SIGNATURE, STATEFUL = 1, 2, 4, 8  # flags of a call
_HEADER = 16  # bytes of a section's id, length and alignment: less than this
_LARGEST_ALIGNMENT = 128


class Section(IntEnum):
    """Ids in the order of the file. Ids from 0x40 up are heald's own; a reader skips ids that it does not know."""

    STRINGS = 0
    ATTRIBUTES = 1
    KERNELS = 2
    TYPES = 3
    FUNCTION_INDEX = 4
    FUNCTIONS = 5
    LOCATION_STRINGS = 6
    LOCATIONS = 7
    ATTRIBUTE_TYPES = 8
    ATTRIBUTE_NAMES = 9
    REGISTER_TYPES = 10
    ARRAYS = 0x40
    MODEL = 0x41
    FUNCTION_FACTS = 0x42

    @property
    def title(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


ALIGNMENT = {Section.ATTRIBUTES: 8, Section.FUNCTIONS: 4, Section.ARRAYS: 64}
_KNOWN = {int(section) for section in Section}


def put_header(section: Section, size: int, position: int) -> bytes:
    """The bytes before a section's data of `size` bytes. `position` is the file's length so far.

    The flag is set, and an alignment byte and padding follow, where the data would be misaligned without them.
    """
    alignment = ALIGNMENT.get(section, 1)
    plain = bytes((section,)) + put_vbr(size << 1)
    if not (position + len(plain)) % alignment:
        return plain
    head = bytes((section,)) + put_vbr(size << 1 | 1) + bytes((alignment,))
    return head + PADDING * (-(position + len(head)) % alignment)


def read_sections(view: memoryview) -> dict[int, tuple[int, int]]:
    """Start and end of each known section. Reads no data.

    Raises DataLoss for a file that is no BEF or ends early, Unimplemented for another version.
    """
    if bytes(view[:2]) != MAGIC[: len(view)] or not len(view):
        check_content(bytes(view[:HEAD_BYTES]), "a BEF file")
        raise DataLoss("this is not a BEF file: it does not begin with 0B EF")
    if len(view) < len(MAGIC) + 1:
        raise DataLoss(f"the file ends within its header: it has {len(view)} bytes", hint="write it again")
    if view[2] != VERSION:
        raise Unimplemented(f"the file has version {view[2]} of BEF, and heald reads version {VERSION}",
                            hint="write it again with this version of heald")
    bounds: dict[int, tuple[int, int]] = {}
    at = len(MAGIC) + 1
    while at < len(view):
        number, start, size = _read_header(view, at)
        at = start + size
        if number not in _KNOWN:
            continue
        if number in bounds:
            raise DataLoss(f"the section {Section(number).title} appears twice, at offsets {bounds[number][0]} "
                           f"and {start}", hint="the file is damaged: write it again")
        bounds[number] = start, at
    return bounds


def _read_header(view: memoryview, at: int) -> tuple[int, int, int]:
    """Id, start and size of the section whose header is at `at`."""
    number = view[at]
    cursor = SectionReader(bytes(view[at : at + _HEADER]), "header")
    cursor.at = 1
    try:
        length = cursor.vbr()
        alignment = cursor.take(1)[0] if length & 1 else 1
    except DataLoss:
        raise DataLoss(f"the file ends within the header of a section, at offset {at}",
                       hint="the file is damaged: write it again") from None
    start = at + cursor.at
    if not alignment or alignment > _LARGEST_ALIGNMENT or alignment & alignment - 1:
        raise DataLoss(f"the section at offset {at} has the alignment {alignment}, which is not a power of two",
                       hint="the file is damaged: write it again")
    start += -start % alignment
    size = length >> 1
    if size > len(view) - start:
        raise DataLoss(f"the file ends early: section {number} at offset {start} has {size} bytes, "
                       f"{max(0, len(view) - start)} are there", hint="write it again")
    return number, start, size


def string_table(texts: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    """NUL-terminated strings in this order, and the offset of each."""
    table = bytearray()
    offsets: dict[str, int] = {}
    for text in texts:
        if text not in offsets:
            offsets[text] = len(table)
            table += text.encode("utf-8", NAME_ERRORS) + b"\0"
    return bytes(table), offsets


class Strings:
    """The strings of a section, by offset."""

    def __init__(self, data: bytes, section: str) -> None:
        self._data = data
        self._section = section
        self._known: dict[int, str] = {}

    def __getitem__(self, offset: int) -> str:
        """Raises DataLoss for an offset past the section, and for a string without an end or in no UTF-8."""
        text = self._known.get(offset)
        if text is None:
            cursor = SectionReader(self._data, self._section, offset)
            if offset and self._data[offset - 1]:  # strings never overlap, so that each byte is read once
                raise cursor.wrong("no string begins here")
            end = self._data.find(b"\0", offset)
            if end < 0:
                raise cursor.wrong("a string has no end")
            try:
                text = self._known[offset] = self._data[offset:end].decode("utf-8", NAME_ERRORS)
            except UnicodeDecodeError:
                raise cursor.wrong("a string is not UTF-8") from None
        return text
