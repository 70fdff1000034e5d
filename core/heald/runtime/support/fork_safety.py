"""Fork safety: owners of locks register here, and get new locks in a forked child.

A child has all of the parent's memory, but of its threads only the one that forked. A lock of another thread would stay
locked for ever, and data that another thread was changing stays half changed. Therefore each owner of a lock that
outlives a run adds itself to `inherited` and gets a new lock in the child. The data that such a lock guards must be
harmless when half changed.
"""

# The theory of fork safety
#
# `forked` treats the state of its owner in one of three ways:
#
#   state that threads change    new lock; the state is changed by single steps, so that half of a change is harmless
#   threads or connections       none in the child: every later call raises FailedPrecondition instead of hanging
#   callbacks of running steps   forgotten, since the child has none of the threads that wait for them
#
# Invariants
# - `forked` runs once in the child, before the child has any other thread. So it needs no lock.
# - The order of the owners is arbitrary. A `forked` relies on no other owner's.
# - Locks that live within one run are not registered: no run of the parent goes on in the child.
#
# Rule: a new lock that outlives a run is registered, and data that it guards is replaced as a whole or by one step. A
# table gets its entry only when the entry is complete.

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
