"""Dead memory: a test mode overwrites it with nonsense, so that a wrong alias or retains declaration shows.

`[debug] poison` chooses it. A frame's memory is dead before the first write and after the last read of what is in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..host.allocators.poisoning import poison

FrameCall = Callable[[], Any]


def poisoned(
    calls: Sequence[FrameCall], touched: Sequence[Collection[int]], memory: Mapping[int, Any]
) -> list[FrameCall]:
    """The calls, of which each also poisons what nobody reads after it; the last one all memory, for the next run.

    `touched`: the registers that each call reads or writes; `memory`: the bytes that hold a register, the same object
    for those that share them.
    """
    everything = {id(block): block for block in memory.values()}
    for block in everything.values():
        poison(block)
    last = {register: position for position, registers in enumerate(touched) for register in registers}
    after: list[dict[int, Any]] = []
    for position, registers in enumerate(touched):
        blocks = {r: memory[r] for r in registers if r in memory}
        taken_over = {id(block) for r, block in blocks.items() if last[r] > position}
        after.append({id(block): block for r, block in blocks.items()
                      if last[r] == position and id(block) not in taken_over})
    if after:
        after[-1] = everything
    return [_poisoning(call, list(dead.values())) if dead else call for call, dead in zip(calls, after, strict=True)]


def _poisoning(call: FrameCall, dead: Sequence[Any]) -> FrameCall:
    def call_and_poison() -> Any:
        returned = call()
        for block in dead:
            poison(block)
        return returned

    return call_and_poison
