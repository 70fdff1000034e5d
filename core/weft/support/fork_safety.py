"""Forked: what a child of this process puts right, before it goes on, in what it has from its parent.

It has all of the parent's memory and of its threads only the one that forked. What another one had locked would stay
locked for ever, and what another one was changing stays as it is: so a lock that outlives a run protects nothing that
is wrong half done, and whoever owns it is `inherited` and gets a new one.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Inherited(Protocol):
    def forked(self) -> None:
        """Called in a child, once, while no other thread is there."""


inherited: WeakSet[Inherited] = WeakSet()


def _forked() -> None:
    for one in list(inherited):
        one.forked()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_forked)
