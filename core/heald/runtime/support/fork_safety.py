"""Fork safety: owners of locks register here, and get new locks in a forked child.

A child has all of the parent's memory, but of its threads only the one that forked. A lock of another thread would stay
locked for ever, and data that another thread was changing stays half changed. Therefore each owner of a lock that
outlives a run adds itself to `inherited` and gets a new lock in the child. The data that such a lock guards must be
harmless when half changed.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Inherited(Protocol):
    def forked(self) -> None:
        """Replace locks and other state of the parent's threads. Called in a child, once, before it has any other
        thread."""


inherited: WeakSet[Inherited] = WeakSet()  # objects whose method `forked` gives them new locks in a child process


def _renew_inherited() -> None:
    for one in list(inherited):
        one.forked()


if hasattr(os, "register_at_fork"):  # missing on Windows, which has no fork
    os.register_at_fork(after_in_child=_renew_inherited)
