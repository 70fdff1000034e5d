"""VBR numbers: groups of 7 bits, the highest group first; the high bit of a byte says that another follows."""

from __future__ import annotations

from ....errors import DataLoss

_LONGEST_NUMBER_BYTES = 10  # of a number: 64 bits take no more
NAME_ERRORS = "surrogatepass"  # Python's names may have halves of surrogate pairs; they survive


def put_vbr(number: int) -> bytes:
    """The VBR form of a number, which is not negative."""
    if number < 0x80:
        return bytes((number,))
    groups = [number & 0x7F]
    while number := number >> 7:
        groups.append(number & 0x7F | 0x80)
    return bytes(reversed(groups))


def put_bytes(raw: bytes) -> bytes:
    """The bytes, after their length."""
    return put_vbr(len(raw)) + raw


def put_text(text: str) -> bytes:
    return put_bytes(text.encode("utf-8", NAME_ERRORS))


class SectionReader:
    """A position in the bytes of a section. Every method raises DataLoss, with section and offset, past the end.

    `base`: the offset of the bytes in their section.
    """

    __slots__ = ("at", "base", "data", "section")

    def __init__(self, data: bytes, section: str, at: int = 0, base: int = 0) -> None:
        self.data = data
        self.section = section
        self.at = at
        self.base = base
        if at > len(data):
            raise self.wrong(f"the offset {at} is past its {len(data)} bytes")

    def wrong(self, what: str) -> DataLoss:
        """The error for malformed bytes here."""
        return DataLoss(f"section {self.section}, offset {self.base + self.at}: {what}",
                        hint="the file is damaged: write it again")

    def vbr(self) -> int:
        data, at = self.data, self.at
        if at < len(data) and (byte := data[at]) < 0x80:  # most numbers: a file has thousands
            self.at = at + 1
            return byte
        stop = min(len(data), at + _LONGEST_NUMBER_BYTES)
        number = 0
        while at < stop:
            byte = data[at]
            at += 1
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                self.at = at
                return number
        raise self.wrong("a number has no end")

    def count(self, least: int = 1) -> int:
        """The number of items that follow, each of `least` bytes or more."""
        number = self.vbr()
        if number * least > len(self.data) - self.at:
            raise self.wrong(f"it counts {number} items, and {len(self.data) - self.at} bytes follow")
        return number

    def index(self, size: int, what: str) -> int:
        """An index into a table of `size` entries."""
        number = self.vbr()
        if number >= size:
            raise self.wrong(f"{what} {number} is given, and there are {size}")
        return number

    def take(self, size: int) -> bytes:
        chunk = self.data[self.at : self.at + size]
        if len(chunk) < size:
            raise self.wrong(f"{size} bytes are expected, {len(chunk)} are left")
        self.at += size
        return chunk

    def sized_bytes(self) -> bytes:
        """Bytes after their length."""
        return self.take(self.count())

    def text(self) -> str:
        start = self.at
        raw = self.sized_bytes()
        try:
            return raw.decode("utf-8", NAME_ERRORS)
        except UnicodeDecodeError:
            self.at = start
            raise self.wrong("a text is not UTF-8") from None

    def align(self, alignment: int) -> None:
        self.at += -(self.base + self.at) % alignment
        if self.at > len(self.data):
            raise self.wrong("padding passes the end")

    def end(self) -> None:
        """Raises DataLoss unless the section ends here."""
        if self.at != len(self.data):
            raise self.wrong(f"{len(self.data) - self.at} bytes follow the last entry")
