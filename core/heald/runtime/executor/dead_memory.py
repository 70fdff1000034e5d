"""Dead memory: a test mode overwrites it, so that a wrong alias or retains declaration gives nonsense.

`[debug] poison` turns the mode on. A frame's memory is dead before the first write and after the last read of the
values in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..host.allocators.poisoning import poison

FrameCall = Callable[[], Any]


def poisoning_calls(
    calls: Sequence[FrameCall], touched: Sequence[Collection[int]], memory: Mapping[int, Any],
    kept: Collection[int] = (),
) -> list[FrameCall]:
    """Wrap the calls of a flat list, so that each also poisons the memory that no later call reads.

    The last call poisons all memory but that of the registers `kept`, for the next run.

    `touched`: for each call the registers that it reads or writes.
    `memory`: register to the bytes that hold it. Registers that share bytes map to the same object.
    """
    everything = {id(block): block for block in memory.values()}
    for block in everything.values():
        poison(block)
    last = {register: position for position, registers in enumerate(touched) for register in registers}
    last |= dict.fromkeys(kept, len(touched))
    after: list[dict[int, Any]] = []
    for position, registers in enumerate(touched):
        blocks = {r: memory[r] for r in registers if r in memory}
        taken_over = {id(block) for r, block in blocks.items() if last[r] > position}
        after.append({id(block): block for r, block in blocks.items()
                      if last[r] == position and id(block) not in taken_over})
    if after:
        kept_blocks = {id(memory[r]) for r in kept}
        after[-1] = {key: block for key, block in everything.items() if key not in kept_blocks}
    return [_make_call_that_poisons(call, list(dead.values())) if dead else call
            for call, dead in zip(calls, after, strict=True)]


def _make_call_that_poisons(call: FrameCall, blocks: Sequence[Any]) -> FrameCall:
    def call_and_poison() -> Any:
        returned = call()
        for block in blocks:
            poison(block)
        return returned

    return call_and_poison
