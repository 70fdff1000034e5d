"""UTF-8 as ICU reads it: characters of well-formed text, and maximal ill-formed parts, each of which stands alone."""

from __future__ import annotations

import re

ILL_FORMED = -1  # in the place of a code point
WHITE_SPACE = frozenset((*range(9, 14), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                         0x205F, 0x3000))  # the code points with the property White_Space

# A well-formed character, else the longest start of one, else a byte.
_PART = re.compile(rb"""(?xs)
    [\x00-\x7f] | [\xc2-\xdf][\x80-\xbf]
    | \xe0[\xa0-\xbf][\x80-\xbf]? | \xed[\x80-\x9f][\x80-\xbf]? | [\xe1-\xec\xee\xef][\x80-\xbf]{1,2}
    | \xf0[\x90-\xbf][\x80-\xbf]{0,2} | [\xf1-\xf3][\x80-\xbf]{1,3} | \xf4[\x80-\x8f][\x80-\xbf]{0,2} | .""")
_LENGTHS = bytes([1] * 0x80 + [0] * 0x42 + [2] * 0x1E + [3] * 0x10 + [4] * 5 + [0] * 11)  # by the first byte


def characters(text: bytes) -> list[bytes]:
    """The text in characters and ill-formed parts. Their concatenation is the text."""
    return _PART.findall(text)


def is_well_formed(part: bytes) -> bool:
    """True for a character, False for an ill-formed part of `characters`."""
    return _LENGTHS[part[0]] == len(part)


def code_point(part: bytes) -> int:
    """The code point of a character, or ILL_FORMED."""
    return ord(part.decode()) if is_well_formed(part) else ILL_FORMED


def is_white_space(part: bytes) -> bool:
    return code_point(part) in WHITE_SPACE
