"""A prepared step: one combination of feeds, fetches and targets, lowered once, linked for each shape it is fed.

After MOST_VARIANTS shapes one dynamic variant serves all further ones: it binds where the shapes are seen.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .executor import Executable
from .feeds import convert, fits
from .frame import free
from .host_program import HostProgram
from .link import UPLOADED
from .tensor import TensorMetadata

MOST_VARIANTS = 8
Linked = Callable[[HostProgram, Sequence[TensorMetadata], dict[Any, Any]], tuple[HostProgram, Executable]]


class Prepared:
    """Runs one step for arrays in the order of its feeds. Safe to call from several threads at once.

    `linked(program, metas, prepared)` links the program, or one lowered anew when kernels decline it.
    """

    def __init__(
        self, names: Sequence[str], metas: Sequence[TensorMetadata], program: HostProgram, linked: Linked
    ) -> None:
        self._names = names
        self._metas = metas
        self._dtypes = [meta.dtype.numpy for meta in metas]
        self._linked = linked
        self._constants: dict[Any, Any] = {UPLOADED: []}
        weakref.finalize(self, free, self._constants[UPLOADED])
        self._variants: dict[tuple[tuple[int, ...], ...], Executable] = {}
        self._dynamic: Executable | None = None
        self._lock = threading.Lock()
        self.program = program

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Results for these feeds. Raises InvalidArgument when one does not fit its tensor."""
        feeds: list[Any] = [
            x if type(x) is np.ndarray and x.dtype is dtype and x.flags.carray else None
            for x, dtype in zip(arrays, self._dtypes, strict=True)
        ]
        for i, feed in enumerate(feeds):
            if feed is None:
                feeds[i] = convert(arrays[i], self._metas[i], self._names[i])
        shapes = tuple([x.shape for x in feeds])
        executable = self._variants.get(shapes)
        if executable is None:
            executable = self._variant(shapes, feeds)
        return executable.run(feeds)

    def executable(self, shapes: tuple[tuple[int, ...], ...] | None = None) -> Executable:
        """The program linked for feeds of these shapes; without shapes: for what is known of them now."""
        metas = self._metas
        if shapes is not None:
            metas = [TensorMetadata(m.dtype, s) for m, s in zip(metas, shapes, strict=True)]
        self.program, executable = self._linked(self.program, metas, self._constants)
        return executable

    def _variant(self, shapes: tuple[tuple[int, ...], ...], feeds: Sequence[Any]) -> Executable:
        for feed, meta, name in zip(feeds, self._metas, self._names, strict=True):
            if not fits(feed.shape, meta):
                convert(feed, meta, name)  # says what is wrong
        with self._lock:
            if shapes in self._variants:
                return self._variants[shapes]
            if len(self._variants) < MOST_VARIANTS:
                self._variants[shapes] = self.executable(shapes)
                return self._variants[shapes]
            if self._dynamic is None:
                self._dynamic = self.executable()
            return self._dynamic
