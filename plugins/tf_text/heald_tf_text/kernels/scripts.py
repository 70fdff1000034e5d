"""The kernel that cuts code points where the script changes, and at white space.

Scripts are those of the package unicodedataplus. Inherited is a script like any other, so an accent stands alone.
White space has the script Common. Where it is dropped, characters of this script on its two sides are one token.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from heald.api import Bind, Kernels, Library

from ..utf8 import WHITE_SPACE
from .whitespace import Tokens, tokenizer_of_code_points

UNICODEDATAPLUS = Library("unicodedataplus", "unicodedataplus", "unicodedataplus")
LARGEST_CODE_POINT = 0x10FFFF
BEYOND = "Unknown"  # the script of a number that is no code point


@cache
def script_of(point: int) -> str:
    """The script of a code point. Numbers beyond Unicode have the script of unassigned code points."""
    import unicodedataplus

    script: str = unicodedataplus.script(chr(point)) if 0 <= point <= LARGEST_CODE_POINT else BEYOND
    return script


def tokenize_by_script(b: Bind) -> Callable[..., Any]:
    keeps_spaces = b.attrs["keep_whitespace"]

    def tokens_of(points: list[int]) -> Tokens:
        runs: list[list[int]] = []
        last: tuple[str, bool] | None = None
        for at, point in enumerate(points):
            is_space = point in WHITE_SPACE
            kind = script_of(point), keeps_spaces and is_space
            if kind != last:
                runs.append([])
            if keeps_spaces or not is_space:
                runs[-1].append(at)
            last = kind
        return [run for run in runs if run]

    return tokenizer_of_code_points(b, tokens_of)


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("UnicodeScriptTokenizeWithOffsets", allocates=True, library=UNICODEDATAPLUS)(tokenize_by_script)
