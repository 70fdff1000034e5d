"""RequestContext: resources, trace and cancellation that related executions of host programs share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...errors import Cancelled
from ..executor.executable import Executable
from ..executor.step import RunOptions, Step
from ..executor.trace import Trace
from ..host.cancellation import CancelToken
from ..host.resources import Resources
from ..values.async_value import AsyncValue, failed
from .run_step import check_limits, make_run_step

if TYPE_CHECKING:
    from ..host.host import Host

NO_OPTIONS = RunOptions()


class RequestContext:
    """One request to a host.

    `resources`: shared with other requests, or by default the request's own.
    `trace`: True records the kernels of the request in its Trace, `request.trace` (`request.trace.dump(path)`).
    """

    def __init__(self, host: Host, resources: Resources | None = None, *, trace: bool = False) -> None:
        self.host = host
        self.trace = Trace() if trace else None
        self.resources = Resources() if resources is None else resources
        self._token = CancelToken()

    def cancel(self) -> None:
        """End all executions of this request.

        Calls that have not started are skipped, and missing results become Cancelled. Later executions end at once.
        """
        self._token.cancel()

    @property
    def is_cancelled(self) -> bool:
        return self._token.is_cancelled

    def execute(
        self, executable: Executable, arguments: Sequence[Any], options: RunOptions = NO_OPTIONS
    ) -> list[AsyncValue]:
        """Start a linked function and return its results, which may come later (`host.await_values`).

        `options`: limits of this execution alone. The end of its time makes missing results DeadlineExceeded.

        Raises InvalidArgument for options of the wrong type.
        """
        check_limits(options, "RequestContext(host, trace=True) records a trace")
        step = make_run_step(Step, self.host, options, (self._token,), trace=self.trace, resources=self.resources)
        try:
            if step.error is not None:
                return [failed(step.error) for _ in executable.function.results]
            return executable.start(arguments, step)
        except BaseException:
            step.cancel(Cancelled("the run was interrupted"))
            raise
        finally:
            step.detach()
