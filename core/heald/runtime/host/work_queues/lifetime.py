"""Lifetime: the end of a work queue, from which on it refuses every call, because it was closed or belongs to a forked
child's parent.

A forked child has the parent's locks and tasks but none of its threads: a wait there would never end.
"""

from __future__ import annotations

from ....errors import FailedPrecondition
from ...support.fork_safety import inherited

CLOSED_ERROR = ("the work queue has been closed", "open a new session")
FORKED_ERROR = ("the work queue belongs to the process that forked this one",
                "fork before the first run, or start processes with multiprocessing's 'spawn'")


class Lifetime:
    """`end` is None while the queue may be used, else the message and the hint of its error. It is an attribute because
    it is read for every task."""

    __slots__ = ("__weakref__", "end")

    def __init__(self) -> None:
        self.end: tuple[str, str] | None = None
        inherited.add(self)

    def check(self) -> None:
        """Raises FailedPrecondition when the queue is closed or forked."""
        if self.end is not None:
            message, hint = self.end
            raise FailedPrecondition(message, hint=hint)

    def close(self) -> bool:
        """End the queue. Returns False when it has ended before."""
        if self.end is not None:
            return False
        self.end = CLOSED_ERROR
        return True

    def forked(self) -> None:
        self.end = FORKED_ERROR
