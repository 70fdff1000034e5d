"""Loans: a block of memory is lent as an array, and comes back once: closed, or when the last array over it is gone.

Between the block and the array that is lent lies an array of another class, the loan. NumPy takes an array of the same
class for the base of a base, and no other: so what is made from the lent array holds the loan, and its end is theirs;
and so a block, too, is of a class of its own.

An end may be heard anywhere, since it may be the garbage collector's doing: in the middle of any other call of the
allocator that hears it. So `ended` takes no lock and changes things in one step only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ...contract.allocator import HostAllocator
from ...errors import InvalidArgument
from ...support.fork_safety import inherited

Array = np.ndarray[Any, Any]


class Block(Array):
    """Memory to lend."""

    __slots__ = ()


class Closed(Array):
    """What a loan becomes when it is closed: its end means nothing any more."""

    __slots__ = ()


class Loans:
    """Lends blocks and calls `ended(block)` once for each loan."""

    def __init__(self, ended: Callable[[Any], None]) -> None:
        class Loan(Array):
            __slots__ = ()

            def __del__(self) -> None:
                block = self.base
                if type(block) is Block:  # else this is a part or a copy of a loan
                    ended(block)

        self.kind: type[Array] = Loan  # of a view of a block: arrays over it are buffers
        self._ended = ended
        self._closing = threading.RLock()
        inherited.add(self)

    def lend(self, memory: Any) -> Any:
        """A buffer of another allocator as one of this: its block's base is that buffer."""
        return memory.view(Block).view(self.kind).view(np.ndarray)

    def give_back(self, buffer: Any, inner: HostAllocator) -> None:
        """End the loan and hand its memory to the allocator that it came from; once only, as `close`."""
        block = self.close(buffer)
        if block is not None:
            inner.deallocate(block.base)

    def close(self, buffer: Any) -> Any:
        """The block under a buffer, which now came back; None if it had before.

        Raises InvalidArgument for an array that was not lent here.
        """
        loan = buffer.base
        with self._closing:
            kind: type = type(loan)
            if kind is Closed:
                return None
            if kind is not self.kind:
                raise InvalidArgument("the array to deallocate is no buffer of this allocator")
            loan.__class__ = Closed
        block = loan.base
        self._ended(block)
        return block

    def forked(self) -> None:
        self._closing = threading.RLock()  # a loan is closed in one step
