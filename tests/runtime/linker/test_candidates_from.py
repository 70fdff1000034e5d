"""The kernels that are asked after the one that a call names: they are looked for when it has declined."""

from __future__ import annotations

from functools import partial

import pytest
from heald.runtime.contract.device import DeviceTypeRegistry
from heald.runtime.contract.kernel import KernelDef, KernelPack, KernelRegistry
from heald.runtime.linker.candidates import CandidatesFrom


def kernel(pack: str, **fields) -> KernelDef:
    return KernelDef("Op", "CPU", pack, lambda b: None, **fields)


FIRST, SECOND = kernel("first"), kernel("second")
HOST, REFUSING = kernel("host", host=frozenset({"x"})), kernel("refusing", when=lambda attrs: False)


def test_the_first_kernel_needs_no_search():
    candidates = CandidatesFrom(FIRST, partial(pytest.fail, "searched"), {})
    assert (candidates[0], next(iter(candidates))) == (FIRST, FIRST)


def test_the_others_follow_in_order_without_those_that_cannot_take_the_call():
    ahead = kernel("ahead")
    candidates = CandidatesFrom(FIRST, lambda: [ahead, FIRST, HOST, REFUSING, SECOND], {})
    assert [*candidates] == [FIRST, SECOND] == [candidates[0], candidates[1]]
    assert (len(candidates), candidates[1:]) == (2, (SECOND,))


def register_family(op, registered, plugin, kernels):
    registered.append(plugin)
    kernels.kernel(op)(lambda b: None)


def registry(registered) -> KernelRegistry:
    kernels = KernelRegistry(DeviceTypeRegistry())
    for plugin, priority in (("slow", 0), ("fast", 1)):
        families = {op: partial(register_family, op, registered, plugin) for op in ("Op", "Other")}
        kernels.add_pack(KernelPack("CPU", partial(register_all, families), priority, plugin))
    return kernels


def register_all(families, kernels):
    for op, register in families.items():
        kernels.later([op], register)


def test_the_families_of_one_plugin_are_registered_alone_and_the_others_later():
    registered = []
    kernels = registry(registered)
    assert [k.pack for k in kernels.candidates("Op", "CPU", "fast")] == ["fast"]
    assert [k.pack for k in kernels.candidates("Op", "CPU", "fast")] == ["fast"]
    assert registered == ["fast"]
    assert [k.pack for k in kernels.candidates("Op", "CPU")] == ["fast", "slow"]
    assert registered == ["fast", "slow"]
    assert {(k.op, k.pack) for k in kernels.loaded_kernels()} == {
        (op, plugin) for op in ("Op", "Other") for plugin in ("fast", "slow")}
    assert sorted(registered) == ["fast", "fast", "slow", "slow"]
