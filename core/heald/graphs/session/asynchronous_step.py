"""AsynchronousStep: a step of a session whose callers do not wait for its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import Cancelled
from ...runtime.executor.executable import Executable
from ...runtime.service.prepared_step import PreparedStep
from ...runtime.support.kernel_errors import as_heald_error
from ...runtime.values.async_value import AsyncValue, failed
from ...runtime.values.tensor import TensorMetadata
from .partial_run import PartialStep


class AsynchronousStep:
    """Runs one combination of feeds and fetches. Several threads may start runs at once.

    `fed`: the metadata of the feeds, as far as the graph declares it.
    `fetched`: that of the fetches.
    `has_effects`: True when runs change, or depend on, more than the feeds.
    `session`: its runs share its state.
    """

    def __init__(
        self, session: Any, ready: Callable[[], PreparedStep], new_step: Callable[[], PartialStep],
        fed: Sequence[TensorMetadata], *, has_effects: bool,
    ) -> None:
        self.session = session
        self.fed = tuple(fed)
        self.fetched = tuple(ready().program.functions["main"].result_metas)
        self.has_effects = has_effects
        self._ready, self._new_step = ready, new_step

    def link(self, shapes: Sequence[tuple[int, ...]]) -> Executable:
        """Return the program for feeds of these shapes. The initializers of its state have run.

        Raises InvalidArgument for shapes that do not fit, FailedPrecondition for a closed session.
        """
        return self._ready().executable_without_wait(tuple(shapes))

    def start(self, executable: Executable, feeds: Sequence[Any]) -> tuple[list[AsyncValue], AsyncValue]:
        """Start a run and return its results, and a value that completes when the run is over, with its error.

        `feeds` are arrays of the linked metadata, which must not change before the run is over.
        """
        step = self._new_step()
        try:
            values = [] if step.error is not None else executable.start(feeds, step)
        except Exception as error:  # noqa: BLE001 - the error of the run
            step.cancel(as_heald_error(error, "a function"))
            values = []
        except BaseException:
            step.cancel(Cancelled("the run was interrupted"))
            raise
        finally:
            step.detach()
        return values or [failed(step.end_error()) for _ in executable.function.results], step.over
