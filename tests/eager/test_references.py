"""Buffers of temporaries and of donated inputs are overwritten, and no value that any object still shows."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from harness.eager_runtime import core
from heald_eager import references

SEEDS = range(8)
LARGE = np.full(1 << 18, 3, np.float32)


def count_makes(monkeypatch: pytest.MonkeyPatch, cpu: Any) -> list[None]:
    """A list that grows with each array that the host makes for a result."""
    makes: list[None] = []
    maker = cpu.host.memory.maker

    def counted(*arguments: Any) -> Any:
        make = maker(*arguments)
        return lambda: (makes.append(None), make())[1]

    monkeypatch.setattr(cpu.host.memory, "maker", counted)
    return makes


@pytest.mark.parametrize("seed", SEEDS)
def test_temporaries_take_one_array_and_kept_handles_one_each(seed, monkeypatch):
    cpu = core(seed, asynchronous="always")
    makes = count_makes(monkeypatch, cpu)
    x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
    for _ in range(5):
        x = cpu.execute("Neg", x)
    assert x.numpy()[0] == -4
    assert len(makes) == 1
    kept = [cpu.execute("AddV2", cpu.handle(LARGE), 1)]
    for _ in range(5):
        kept.append(cpu.execute("Neg", kept[-1]))
    assert [handle.numpy()[0] for handle in kept] == [4, -4, 4, -4, 4, -4]
    assert len(makes) == 7


KEEPERS = {
    "a name": lambda cpu, x: x,
    "a list": lambda cpu, x: [x],
    "a conversion": lambda cpu, x: x.to_dense(),
    "another call": lambda cpu, x: cpu.execute("AddV2", x, 0),
    "a reshaped view": lambda cpu, x: cpu.execute("Reshape", x, [2, -1]),
    "an identity": lambda cpu, x: cpu.execute("Identity", x),
    "a copy to a device": lambda cpu, x: x.to("SIM:0"),
    "a copy there and back": lambda cpu, x: x.to("SIM:0").to("CPU:0"),
    "a list input": lambda cpu, x: cpu.execute("ConcatV2", [x, x], 0),
    "an array that was read": lambda cpu, x: x.numpy(),
    "a slice of an array that was read": lambda cpu, x: x.numpy()[1:],
    "an array of another owner": lambda cpu, x: np.asarray(x),
    "a capsule": lambda cpu, x: np.from_dlpack(x),
}


@pytest.mark.parametrize("keeper", KEEPERS)
def test_a_value_that_any_object_still_shows_is_never_overwritten(keeper):
    for seed in SEEDS:
        cpu = core(seed, asynchronous="always")
        x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
        kept = KEEPERS[keeper](cpu, x)
        y = cpu.execute("Neg", x)
        del x
        z = cpu.execute("Mul", y, 10)
        del y
        assert z.numpy()[0] == -40
        shown = kept[0] if isinstance(kept, list) else kept
        assert np.unique(np.asarray(shown)).tolist() == [4]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_variable_keeps_the_value_of_a_temporary(seed):
    cpu = core(seed, asynchronous="always")
    variable = cpu.execute("VarHandleOp", attrs={"dtype": "float32", "shape": [len(LARGE)]})
    x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
    cpu.execute("AssignVariableOp", variable, x)
    y = cpu.execute("Neg", x)
    del x
    read = cpu.execute("ReadVariableOp", variable, attrs={"dtype": "float32"})
    changed = cpu.execute("Mul", read, 5)
    del read
    again = cpu.execute("ReadVariableOp", variable, attrs={"dtype": "float32"})
    assert [y.numpy()[0], changed.numpy()[0], again.numpy()[0]] == [-4, 20, 4]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_function_and_a_chain_read_the_value_of_a_temporary(seed):
    cpu = core(seed, asynchronous="always")
    x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
    chain, total = cpu.execute("Sum", x, 0, chain=())
    chain, y = cpu.execute("Neg", x, chain=chain)
    del x
    assert float(total) == 4 * len(LARGE)
    assert y.numpy()[0] == -4


@pytest.mark.parametrize("count", [
    lambda own: 3, lambda own: 3 if own(None) is None else 5, lambda own: 2])
def test_an_interpreter_that_counts_otherwise_is_not_trusted(count):
    assert references.trusted_count(count, (lambda x: [x],)) == references.UNTRUSTED


def test_this_interpreter_is_trusted_or_nothing_is_overwritten():
    counts = references.ARRAY_REFERENCES, references.STATE_REFERENCES
    if sys.implementation.name == "cpython" and sys.version_info < (3, 14):
        assert references.UNTRUSTED not in counts


@pytest.mark.parametrize("which", ["ARRAY_REFERENCES", "STATE_REFERENCES"])
def test_without_trust_every_result_has_its_own_array(monkeypatch, which):
    monkeypatch.setattr(references, which, references.UNTRUSTED)
    cpu = core(0, asynchronous="always")
    makes = count_makes(monkeypatch, cpu)
    x = cpu.execute("AddV2", cpu.handle(LARGE), 1)
    for _ in range(3):
        x = cpu.execute("Neg", x)
    assert x.numpy()[0] == -4
    assert len(makes) == 4
    if which == "ARRAY_REFERENCES":
        for _ in range(3):
            x = cpu.execute("Neg", x, donate=(0,))
        assert x.numpy()[0] == 4
        assert len(makes) == 7
