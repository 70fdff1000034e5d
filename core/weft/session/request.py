"""RequestContext: what executions of host programs that belong together share: resources, and their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import Cancelled
from ..executor.executable import Executable
from ..executor.step import Step
from ..executor.trace import Trace
from ..host.cancellation import CancelToken
from ..host.resources import Resources
from ..values.async_value import AsyncValue, failed

if TYPE_CHECKING:
    from ..host.host import Host


class RequestContext:
    """One request to a host. `resources` may be shared with other requests; else they are its own. With `trace`, what
    its kernels do is recorded in its Trace of that name (`request.trace.dump(path)`)."""

    def __init__(self, host: Host, resources: Resources | None = None, *, trace: bool = False) -> None:
        self.host = host
        self.trace = Trace() if trace else None
        self.resources = Resources() if resources is None else resources
        self._token = CancelToken()

    def cancel(self) -> None:
        """End what runs for this request: what has not started is skipped, results that are not there become Cancelled.
        Later executions for it end at once."""
        self._token.cancel()

    @property
    def is_cancelled(self) -> bool:
        return self._token.is_cancelled

    def execute(self, executable: Executable, arguments: Sequence[Any]) -> list[AsyncValue]:
        """Start a linked function: its results, which may come later (`host.await_values`)."""
        step = Step(self.host, parents=(self.host.cancellation, self._token), trace=self.trace,
                    resources=self.resources)
        try:
            if step.error is not None:
                return [failed(step.error) for _ in executable.function.results]
            return executable.start(arguments, step)
        except BaseException:
            step.cancel(Cancelled("the run was interrupted"))
            raise
        finally:
            step.leave()
