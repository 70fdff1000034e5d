"""The memory plan gives a result the slot of an input only where the kernel may write over it."""

from __future__ import annotations

import pytest
from heald.runtime.executor.memory_plan import Use, plan_memory

HOST, GPU = -1, 0


def last_call(reads: tuple[int, ...], *, memory: int = HOST, nbytes: int = 64) -> list[Use]:
    """Value 1 of 64 bytes in host memory, and a call that may write value 2 over it."""
    return [Use((0,), ((1, 64),), HOST), Use(reads, ((2, nbytes),), memory, ((2, 1),))]


def test_a_result_takes_the_slot_of_an_input_that_dies() -> None:
    plan = plan_memory(last_call((1, 0)))
    assert plan.slot_of[1] == plan.slot_of[2]
    assert plan.slots == [(HOST, 64)]


@pytest.mark.parametrize("reads", [(1, 1), (1, 0, 1)])
def test_an_input_that_is_read_twice_is_not_written_over(reads: tuple[int, ...]) -> None:
    plan = plan_memory(last_call(reads))
    assert plan.slot_of[1] != plan.slot_of[2]


@pytest.mark.parametrize("memory", [GPU, GPU + 1])
def test_a_result_never_takes_a_slot_of_another_memory(memory: int) -> None:
    plan = plan_memory(last_call((1,), memory=memory))
    assert plan.slots[plan.slot_of[1]] == (HOST, 64)
    assert plan.slots[plan.slot_of[2]] == (memory, 64)


@pytest.mark.parametrize("nbytes", [65, 128])
def test_a_result_is_not_written_over_a_smaller_input(nbytes: int) -> None:
    plan = plan_memory(last_call((1,), nbytes=nbytes))
    assert plan.slot_of[1] != plan.slot_of[2]
    assert plan.slots[plan.slot_of[2]] == (HOST, nbytes)


def test_a_kept_value_has_its_slot_until_the_end() -> None:
    uses = [*last_call((1,)), Use((2,), ((3, 64),), HOST), Use((3,), ((4, 64),), HOST)]
    assert plan_memory(uses).nbytes == 128
    plan = plan_memory(uses, kept={1})
    assert plan.slot_of[1] not in {plan.slot_of[register] for register in (2, 3, 4)}
