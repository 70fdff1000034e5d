"""Kernels that write messages: Print and PrintV2 to streams or the logger, Assert in its error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from itertools import count
from typing import Any, TextIO

import numpy as np
from heald.api import Bind, Kernels, errors

from ..element_types import Array
from .string_formatting import element_text, listing
from .strings import attribute_bytes

Run = Callable[..., None]

LEVELS = {"log(info)": logging.INFO, "log(warning)": logging.WARNING, "log(error)": logging.ERROR}


def print_(b: Bind) -> Run:
    """Write the message and the tensors to stderr at the node's first `first_n` runs in a session; return the input."""
    message, first_n, show = attribute_bytes(b, "message"), b.attrs["first_n"], _text_of_inputs(b)
    times = b.resource("number of prints", count)

    def run(x: Array, *data_and_out: Array) -> None:
        *data, out = data_and_out
        np.copyto(out, x)
        if first_n < 0 or next(times) < first_n:
            _write(sys.stderr, b"%b%b\n" % (message, b"".join(show(data))))

    return run


def print_v2(b: Bind) -> Run:
    """Write to stdout, stderr, or the logger `heald`, whose destination the application configures."""
    stream, end = b.attrs["output_stream"], attribute_bytes(b, "end")
    if stream in LEVELS:
        return lambda x: _log(LEVELS[stream], x.item() + end)
    return lambda x: _write(getattr(sys, stream), x.item() + end)  # looked up late: the stream may be replaced


def _log(level: int, text: bytes) -> None:
    logging.getLogger("heald").log(level, "%s", errors.printable(text.decode("utf-8", "replace"), lines=True))


def _write(stream: TextIO | None, text: bytes) -> None:
    """Write and flush: bytes where the stream takes them; on a terminal with unprintable characters escaped."""
    if stream is None:  # a process without a console has none
        return
    stream.flush()
    if getattr(stream, "isatty", bool)():
        stream.write(errors.printable(text.decode("utf-8", "replace"), lines=True))
    elif hasattr(stream, "buffer"):
        stream.buffer.write(text)
    else:
        stream.write(text.decode("utf-8", "replace"))
    stream.flush()


def assert_(b: Bind) -> Run:
    show = _text_of_inputs(b)

    def run(condition: Any, *data: Array) -> None:
        if not condition:
            shown = b" ".join(show(data)).decode("utf-8", "replace")
            raise errors.InvalidArgument(f"assertion failed: {shown}")

    return run


def _text_of_inputs(b: Bind) -> Callable[[Any], list[bytes]]:
    """A function that formats all of a node's inputs but the first."""
    texts, shown_elements = [element_text(x.dtype) for x in b.inputs[1:]], b.attrs["summarize"]
    return lambda data: [listing(x, text, shown_elements) for x, text in zip(data, texts, strict=True)]


def register_kernels(kernels: Kernels) -> None:
    kernels.kernel("Assert")(assert_)
    kernels.kernel("Print", inplace={0: 0})(print_)
    kernels.kernel("PrintV2")(print_v2)
