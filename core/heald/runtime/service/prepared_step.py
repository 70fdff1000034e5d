"""A prepared step: one combination of feeds, fetches and targets, lowered once and linked for each shape of feeds.

After LARGEST_VARIANT_COUNT shapes, one dynamic variant serves all further shapes. The dynamic variant binds kernels in
the run.
"""

# The theory of variants
#
#   shapes of the feeds                   executable
#   seen before                           the variant for these shapes, by one look-up
#   new, below LARGEST_VARIANT_COUNT      a new variant
#   new, above it                         the dynamic variant; without one, a new variant in place of the oldest
#   of a ForeignArray (`ForeignShape`)    a variant in any case, since the link depends on the feed's device
#   not known yet, in a partial run       one executable for the declared shapes
#
# Runs whose callers do not wait have variants of their own: a device may not read their feeds in place.
#
# Invariants
# - A run with known shapes takes no lock. `_lock` is held during a link, and only complete executables become variants.
# - `_latest` is one tuple, because a link may lower the program anew: registers have other numbers then, and the
#   SharedByLinks must fit them. Variants of an older program stay valid, for each holds its own calls and constants.
# - `drop_links` replaces the dicts of variants. Running steps go on with the executable that they hold.
# - The device buffers of constants live as long as the prepared step. Its finalizer hands them to `DeviceMemory`.
# - A pass whose nodes have no kernel in their place is left out, and `skipped_passes` gives the reason.
#
# Rule: a fact about a feed that a link depends on must be part of the key, as ForeignShape is.

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any, Protocol

from numpy import ndarray

from ...errors import Cancelled, Unimplemented
from ..executor.executable import Executable
from ..executor.step import RunOptions, Step
from ..host.host import Host
from ..linker.link import NodesDeclined, link
from ..linker.shared_by_links import SharedByLinks
from ..linker.stored_constants import NO_STORED_CONSTANTS, StoredConstants
from ..program.host_program import ProgramDef
from ..support.fork_safety import inherited
from ..support.gc_pause import gc_paused
from ..values.foreign_array import ForeignShape
from ..values.tensor import TensorMetadata, fits
from .feeds import convert_feed, convert_or_wrap

LARGEST_VARIANT_COUNT = 8
PREPARED_BYTES = 64 << 10  # estimate for the graph, the program and the graphs of passes
shape_of = attrgetter("shape")


NewStep = Callable[[RunOptions], Step]


class ProgramSource(Protocol):
    """The program of a step, made from a graph (StepCompiler) or ahead of time (CompiledEntries)."""

    @property
    def skipped_passes(self) -> str:
        """The passes that the program does without, and why."""

    def program(self, step: Step) -> ProgramDef:
        """Return the program. Raises the error of `step` when it ends meanwhile."""

    def link(
        self, program: ProgramDef, feed_metas: Sequence[TensorMetadata], shared: SharedByLinks, step: Step, *,
        waits: bool = True, foreign_feeds: frozenset[int] = frozenset(),
    ) -> tuple[ProgramDef, SharedByLinks, Executable]:
        """Link the program for feeds of this metadata. Return the program that was linked, the context for its next
        links, and the executable.

        `foreign_feeds`: the indices of the feeds that are ForeignArrays.
        """


Note = Callable[[Executable, Any], None]  # its second argument is the step's ProgramSource


class PreparedStep:
    """Runs one step for arrays in the order of its feeds. Several threads may call it at once.

    `compiler`: makes and links the program.
    `metas`: the metadata of the feeds, as far as the graph declares it.
    `session`: the step of all runs that need no step of their own.
    `making`: the step in which the program is made.
    `new_step`: makes a step for one run.
    `note`: receives each linked program.
    `stored`: the source of prepared constants.
    """

    def __init__(
        self, names: Sequence[str], metas: Sequence[TensorMetadata], compiler: ProgramSource, host: Host, session: Step,
        making: Step, new_step: NewStep, note: Note, stored: StoredConstants = NO_STORED_CONSTANTS,
    ) -> None:
        self._compiler, self._note = compiler, note
        self._host = host
        self._step = session
        self._new_step = new_step
        self._names = names
        self.metas = metas
        self._count = len(names)
        # Feeds of these types need no conversion. Strings always do, since an object array may hold any objects.
        self._dtypes = [(i, meta.dtype.numpy if meta.dtype.itemsize else None) for i, meta in enumerate(metas)]
        program = compiler.program(making)
        shared = SharedByLinks({}, session.resources, stored)
        weakref.finalize(self, host.device_memory.dropped.extend, shared.buffers)
        self._latest = program, shared  # one tuple, replaced as a whole: `shared` is indexed by the program's registers
        self._variants: dict[tuple[tuple[int, ...], ...], Executable] = {}
        self._dynamic: Executable | None = None
        self._partial: Executable | None = None  # of partial runs
        self._without_wait: dict[tuple[tuple[int, ...], ...], Executable] = {}  # of runs whose callers do not wait
        self._may_be_dynamic = True
        self._lock = threading.Lock()
        inherited.add(self)

    def memory_use(self) -> tuple[int, int]:
        """Return the approximate bytes of bound calls, and the bytes of arrays in prepared constants and idle
        frames."""
        linked = [*self._variants.values(), *self._without_wait.values(),
                  *filter(None, [self._dynamic, self._partial])]
        prepared = list(self._latest[1].prepared.values())
        array_bytes = sum(getattr(prepared_object.value, "nbytes", 0) for prepared_object in prepared)
        frame_bytes = sum(executable.frame_bytes for executable in linked)
        call_bytes = PREPARED_BYTES + sum(executable.nbytes for executable in linked)
        return call_bytes, array_bytes + frame_bytes

    @property
    def skipped_passes(self) -> str:
        """The passes that the program does without, since their graphs cannot run, and why; empty without any."""
        return self._compiler.skipped_passes

    @property
    def program(self) -> ProgramDef:
        """The program as it was lowered last."""
        return self._latest[0]

    def __call__(self, arrays: Sequence[Any], step: Step | None = None) -> list[Any]:
        """Return the results for these feeds, in `step` if the run has a step of its own.

        Raises InvalidArgument when a feed does not fit its tensor. Raises Cancelled or DeadlineExceeded when the step
        has ended, even after its last kernel.
        """
        feeds = arrays
        for i, dtype in self._dtypes:
            x = feeds[i]
            if type(x) is not ndarray or x.dtype is not dtype or not x.flags.carray:
                feeds = list(map(convert_or_wrap, arrays, self.metas, self._names, repeat(self._host.memory)))
                break
        if self._count == 1:  # a call of `map` costs as much as a small kernel
            shapes: tuple[tuple[int, ...], ...] = (feeds[0].shape,)
        elif self._count == 2:
            first, second = feeds
            shapes = first.shape, second.shape
        else:
            shapes = tuple(map(shape_of, feeds))
        executable = self._variants.get(shapes)
        if executable is None:
            executable = self._variant(shapes, feeds, self._step if step is None else step)
        if step is not None:
            return _run_alone(executable, feeds, step)
        if not executable.is_asynchronous:
            return executable.run(feeds, self._step)
        step = self._new_step(RunOptions())
        try:
            return _run_alone(executable, feeds, step)
        finally:
            step.close()

    def executable(
        self, shapes: tuple[tuple[int, ...], ...] | None = None, step: Step | None = None
    ) -> Executable:
        """Link the program for feeds of these shapes, or without shapes for their known metadata.

        Raises the error of a step that ends meanwhile.
        """
        metas, foreign_feeds = self.metas, frozenset[int]()
        if shapes is not None:
            metas = [TensorMetadata(m.dtype, tuple(s)) for m, s in zip(metas, shapes, strict=True)]
            foreign_feeds = frozenset(i for i, shape in enumerate(shapes) if shape.__class__ is ForeignShape)
        program, shared = self._latest
        step = self._step if step is None else step
        program, shared, executable = self._compiler.link(program, metas, shared, step, foreign_feeds=foreign_feeds)
        self._latest = program, shared
        self._note(executable, self._compiler)
        return executable

    def linked_executable(self, shapes: tuple[tuple[int, ...], ...]) -> Executable:
        """Return the executable that runs with feeds of these shapes use; link one where no run has made it."""
        return self._variants.get(shapes) or self.executable(shapes)

    def drop_links(self) -> None:
        """Link anew for later runs, with the resources that the session has now."""
        with self._lock:
            program, shared = self._latest
            self._latest = program, shared.for_renumbered_program(self._step.resources)
            self._variants, self._dynamic, self._without_wait = {}, None, {}

    def executable_without_wait(self, shapes: tuple[tuple[int, ...], ...]) -> Executable:
        """Return the program linked for feeds of these shapes, for runs whose callers do not wait for them.

        The links of the last LARGEST_VARIANT_COUNT shapes are kept. Raises InvalidArgument for shapes that do not fit.
        """
        executable = self._without_wait.get(shapes)
        if executable is None:
            with self._step.holding(self._lock):
                if len(self._without_wait) >= LARGEST_VARIANT_COUNT:
                    self._without_wait.pop(next(iter(self._without_wait)))
                metas = [TensorMetadata(m.dtype, s) for m, s in zip(self.metas, shapes, strict=True)]
                program, shared = self._latest
                linked = self._compiler.link(program, metas, shared, self._step, waits=False)
                self._latest, executable = linked[:2], linked[2]
                self._without_wait[shapes] = executable
                self._note(executable, self._compiler)
        return executable

    def for_partial_runs(self, step: Step) -> Executable:
        """Link the program, once, for feeds that come later: for the shapes that are known without them.

        Raises Unimplemented when a device needs static shapes that are unknown.
        """
        with step.holding(self._lock):
            if self._partial is None:
                program, shared = self._latest
                if all(meta.is_static for meta in self.metas):
                    linked = self._compiler.link(program, self.metas, shared, step, waits=False)
                    self._latest, self._partial = linked[:2], linked[2]
                else:
                    self._partial = self._link_partial(program, shared, step)
                self._note(self._partial, self._compiler)
            return self._partial

    def _link_partial(self, program: ProgramDef, shared: SharedByLinks, step: Step) -> Executable:
        """Link without a new placement: a node that lacks shapes here has them in other runs."""
        try:
            return link(program, self._host, self.metas, shared=shared, fuses=False, check=step.check)
        except NodesDeclined as declined:
            node, device, _, why = declined.refusals[0]
            raise Unimplemented(f"a partial run has no shapes of its feeds beforehand: {why}", node=node, device=device,
                                hint="give the fed placeholders static shapes, or place the node on the CPU") from None

    def forked(self) -> None:
        self._lock = threading.Lock()  # an unfinished link is not among the variants

    @gc_paused()
    def _variant(self, shapes: tuple[tuple[int, ...], ...], feeds: Sequence[Any], step: Step) -> Executable:
        for feed, meta, name in zip(feeds, self.metas, self._names, strict=True):
            if not fits(feed.shape, meta):
                convert_feed(feed, meta, name)  # raises the error
        with step.holding(self._lock):
            if shapes not in self._variants and len(self._variants) >= LARGEST_VARIANT_COUNT:
                if self._may_be_dynamic and self._dynamic is None:
                    self._dynamic = self._link_dynamic(step)
                if self._dynamic is not None and not any(shape.__class__ is ForeignShape for shape in shapes):
                    return self._dynamic
                self._variants.pop(next(iter(self._variants)))
            if shapes not in self._variants:
                self._variants[shapes] = self.executable(shapes, step)
            return self._variants[shapes]

    def _link_dynamic(self, step: Step) -> Executable | None:
        """Link the dynamic variant, or return None when a device needs static shapes.

        Without a dynamic variant, a new variant replaces the oldest one.
        """
        program, shared = self._latest
        try:
            return link(program, self._host, self.metas, shared=shared, waits=True, fuses=False, check=step.check)
        except NodesDeclined:
            self._may_be_dynamic = False
            return None


def _run_alone(executable: Executable, feeds: Sequence[Any], step: Step) -> list[Any]:
    """Run in a step of the run's own. Raises the step's error when the step ends before the last kernel does."""
    try:
        results = executable.run(feeds, step)
        step.check()
    except BaseException:
        step.cancel(Cancelled("the run ended before this work was done"))  # tells started kernels of a Ctrl-C, too
        raise
    return results
