"""Metadata of ops that read, write and list files."""

from __future__ import annotations

from heald.api import Attrs, InvalidArgument, ValueInfo, dtypes, info, shape_text

from .rules import rule
from .shapes import dims_of_rank


@rule("ReadFile")
def read_file(_: Attrs, filename: ValueInfo) -> ValueInfo:
    dims_of_rank(filename, 0, "the name of a file")
    return info(dtypes.string, ())


@rule("WriteFile")
def write_file(_: Attrs, filename: ValueInfo, contents: ValueInfo) -> tuple[()]:
    dims_of_rank(filename, 0, "the name of a file")
    dims_of_rank(contents, 0, "the contents of a file")
    return ()


@rule("MatchingFiles")
def matching_files(_: Attrs, patterns: ValueInfo) -> ValueInfo:
    if patterns.rank is not None and patterns.rank > 1:
        raise InvalidArgument(f"patterns of files must be a scalar or a vector, given shape "
                              f"{shape_text(patterns.shape)}")
    return info(dtypes.string, (None,))
