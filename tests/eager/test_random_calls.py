"""Random calls over host and device, some of which fail: each handle has NumPy's value, or an error if one of its
ancestors failed, in every schedule."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import heald
import numpy as np
import pytest
from harness.eager_runtime import core
from heald import errors

FUNCTIONS = {"AddV2": np.add, "Maximum": np.maximum, "Sub": np.subtract}
CALLS = 60


class Expected(NamedTuple):
    """A handle, and its value; None for an error."""

    handle: heald.TensorHandle
    value: Any


@pytest.mark.parametrize("seed", range(16))
def test_random_calls_give_numpys_values_and_fail_where_an_ancestor_failed(seed):
    random = Random(seed)  # noqa: S311 - a test is not secret
    cpu = core(seed if seed % 2 else None)
    start = np.float32([seed, 1, 2])
    expectations = [Expected(cpu.handle(start), start)]
    for _ in range(CALLS):
        (x, value), (y, other) = random.choice(expectations), random.choice(expectations)
        kind = random.random()
        if kind < 0.2:
            expectations.append(Expected(x.to(random.choice(["CPU:0", "SIM:0"])), value))
        elif kind < 0.3:
            last = random.choice([2, 9])
            handle = cpu.execute("GatherV2", x, [0, 1, last], 0, device="CPU:0")
            expectations.append(Expected(handle, value if last == 2 else None))
        else:
            op = random.choice(sorted(FUNCTIONS))
            handle = cpu.execute(op, x, y, device=random.choice([None, "CPU:0", "SIM:0"]))
            failed = value is None or other is None
            expectations.append(Expected(handle, None if failed else FUNCTIONS[op](value, other)))
    for handle, value in random.sample(expectations, len(expectations)):
        if value is None:
            with pytest.raises(errors.InvalidArgument, match=r"indices\[2\] = 9") as raised:
                handle.numpy()
            assert raised.value.op == "GatherV2"
        else:
            assert np.array_equal(handle.numpy(), value)
    assert cpu.host.open("SIM:0").native.report == []
