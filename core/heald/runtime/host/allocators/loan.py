"""Loans: a block of memory is lent as an array, and returns once: when it is closed, or when the last array over it is
gone.

Between the block and the lent array lies an array of another class, the loan. NumPy replaces the base of an array by
the base's base only when both are of one class. So an array made from the lent array holds the loan, and the loan ends
with the last of them. For the same reason a block has a class of its own.

The garbage collector may end a loan at any place, even within another call of the same allocator. So `ended` takes no
lock and makes each change in one step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from ....errors import InvalidArgument
from ...contract.allocator import HostAllocator
from ...support.fork_safety import inherited

Array = np.ndarray[Any, Any]


class Block(Array):
    """Memory that can be lent."""

    __slots__ = ()


class ClosedLoan(Array):
    """The class of a loan after it was closed: its end has no effect."""

    __slots__ = ()


class Loans:
    """Lends blocks of memory as arrays. A loan ends by `deallocate`, or when the last array over it is gone: then
    `ended(block)` is called, once."""

    def __init__(self, ended: Callable[[Any], None]) -> None:
        class Loan(Array):
            __slots__ = ()

            def __del__(self) -> None:
                block = self.base
                if type(block) is Block:  # else this array is a part or a copy of a loan
                    ended(block)

        self.kind: type[Array] = Loan  # the class of a view of a block: arrays over such a view are buffers
        self._ended = ended
        self._closing = threading.RLock()
        inherited.add(self)

    def lend(self, memory: Any) -> Any:
        """Lend a buffer of the inner allocator. The base of the block is that buffer."""
        return memory.view(Block).view(self.kind).view(np.ndarray)

    def give_back(self, buffer: Any, inner: HostAllocator) -> None:
        """End the loan, and return its memory to the allocator `inner`. Has effect once, like `close`."""
        block = self.close(buffer)
        if block is not None:
            inner.deallocate(block.base)

    def close(self, buffer: Any) -> Any:
        """End the loan of a buffer and return its block; None if the loan had ended before.

        Raises InvalidArgument for an array that was not lent here.
        """
        loan = buffer.base
        with self._closing:
            kind: type = type(loan)
            if kind is ClosedLoan:
                return None
            if kind is not self.kind:
                raise InvalidArgument("the array to deallocate is no buffer of this allocator",
                                      hint="pass the array that its allocate returned, not a view or a copy")
            loan.__class__ = ClosedLoan
        block = loan.base
        self._ended(block)
        return block

    def forked(self) -> None:
        self._closing = threading.RLock()  # no loan is half closed: closing is one step
