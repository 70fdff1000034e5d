"""Frame layouts refuse views and copies that differ in size from the value that they show."""

from __future__ import annotations

import pytest
from heald.errors import InvalidArgument
from heald.runtime.contract.kernel import KernelDef
from heald.runtime.executor.calls.bound_call import BoundCall
from heald.runtime.executor.calls.copy_in import CopyIn
from heald.runtime.executor.calls.feed_copy import RetainedFeedCopy
from heald.runtime.executor.calls.view_call import ViewCall
from heald.runtime.executor.frame_layout import FrameLayout
from heald.runtime.program.host_program import COPY, HOST, Call, ProgramFunction
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from heald_cpu.device import Cpu
from hypothesis import given
from hypothesis import strategies as st

metas = st.builds(TensorMetadata, st.sampled_from([dtypes.float32, dtypes.int64, dtypes.uint8, dtypes.string]),
                  st.lists(st.sampled_from([1, 2, 4, 8]), max_size=3).map(tuple))


def layout(source: TensorMetadata, result: TensorMetadata, *, is_copy: bool, memory: int = HOST) -> FrameLayout:
    """The layout of one call that shows its argument, or copies it."""
    call = Call(COPY if is_copy else "cpu.Reshape", (0,), (1,), {}, 0, "n")
    kernel = KernelDef("Reshape", "CPU", "cpu", lambda _: None)
    bound: BoundCall = ViewCall(call, Cpu(0), memory, kernel, alias={0: 0})
    if is_copy:
        bound = RetainedFeedCopy(call, Cpu(0)) if memory == HOST else CopyIn(call, Cpu(0), memory)
    function = ProgramFunction("f", ("x",), (source, result), (call,), (1,))
    return FrameLayout.of(function, (source, result), (bound,), {})


def extent(meta: TensorMetadata) -> tuple[int, bool]:
    is_counted = meta.dtype is dtypes.string
    return meta.size * (1 if is_counted else meta.dtype.itemsize), is_counted


@given(source=metas, result=metas, is_copy=st.booleans(), memory=st.sampled_from([HOST, 0]))
def test_a_result_is_as_large_as_the_value_that_it_shows(
    source: TensorMetadata, result: TensorMetadata, is_copy: bool, memory: int
) -> None:
    if extent(source) == extent(result):
        assert layout(source, result, is_copy=is_copy, memory=memory).calls
        return
    with pytest.raises(InvalidArgument, match="differs in size") as raised:
        layout(source, result, is_copy=is_copy, memory=memory)
    assert raised.value.node == "n"


def test_a_result_of_unknown_shape_is_compared_in_the_run() -> None:
    unknown = TensorMetadata(dtypes.float32, (None,))
    assert layout(unknown, TensorMetadata(dtypes.float32, (3,)), is_copy=False).calls
