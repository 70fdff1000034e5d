"""Answers with one output, joined from the bytes around its numbers.

Two answers of a signature differ in their numbers alone, where their outputs have equal types and shapes. protobuf
writes the first of them. Its numbers stand as raw bytes between a head and a tail, which later answers share.

Floats alone have such a form: protobuf writes an integer in as many bytes as it needs.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from ..predict import Arrays
from ..raw_numbers import little_endian

MOST_FRAMES = 256  # strangers choose shapes
_FLOATS = frozenset({np.dtype(np.float32), np.dtype(np.float64)})


class Frame(NamedTuple):
    """The bytes before and after the numbers."""

    head: bytes
    tail: bytes


class AnswerFrames:
    """The frames of a service. Threads may race: a frame is then learned twice."""

    def __init__(self) -> None:
        self._frames: dict[Hashable, Frame] = {}

    def __len__(self) -> int:
        return len(self._frames)

    def answer(self, signature: Hashable, outputs: Arrays) -> bytes | None:
        """The bytes of an answer; None for a form that is not learned."""
        if len(outputs) != 1:
            return None
        ((name, array),) = outputs.items()
        frame = self._frames.get((signature, name, _form_of(array)))
        return None if frame is None else b"".join((frame.head, little_endian(array), frame.tail))

    def learn(self, signature: Hashable, outputs: Arrays, written: bytes, tail: bytes) -> None:
        """Learn the form of an answer that protobuf wrote. `tail`: the bytes that protobuf writes after outputs."""
        if len(outputs) != 1:
            return
        ((name, array),) = outputs.items()
        form = _form_of(array)
        if form is not None and array.size and written.endswith(little_endian(array) + tail):
            if len(self._frames) >= MOST_FRAMES:
                self._frames.clear()
            self._frames[signature, name, form] = Frame(written[: -array.nbytes - len(tail)], tail)


def _form_of(array: Any) -> tuple[Any, ...] | None:
    """The type and the shape of an array of floats; None for anything else."""
    return (array.dtype, array.shape) if type(array) is np.ndarray and array.dtype in _FLOATS else None
