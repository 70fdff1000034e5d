"""Adjacent primitives run as one native call, with the numbers and the errors of single calls."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import AS_WRITTEN, conv, numbers
from heald_onednn import native_loop, primitive_call
from heald_onednn.library import library
from heald_onednn.native_loop import NO_BITS, NativeCall, address, loop_over
from heald_onednn.primitive_call import PrimitiveCall

STATUS_OF_NOTHING = 2  # dnnl_invalid_arguments
LAYERS = 20


def chain_of_convolutions(size: int = 8, channels: int = 8) -> heald.Graph:
    names = [f"c{i}" for i in range(LAYERS)]
    return graph(placeholder("x", (1, size, size, channels)), const("w", numbers(3, 3, channels, channels) * 0.2),
                 *(conv(name, before, "w") for name, before in zip(names, ["x", *names], strict=False)),
                 node("y", "Softmax", names[-1]))


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of calls in each part that becomes one call, or stays single."""
    counts: list[int] = []
    join = primitive_call.join_part

    def join_and_count(part: Any) -> Any:
        counts.append(len(part))
        return join(part)

    monkeypatch.setattr(primitive_call, "join_part", join_and_count)
    yield counts
    assert library().c.omp_get_max_threads() == library().threads


def native(name: str, *arguments: int) -> NativeCall:
    function = address(library().ffi.addressof(library().c, name))
    return NativeCall(function, arguments, NO_BITS if name.startswith("omp_set") else native_loop.ALL_BITS)


def test_the_loop_ends_at_the_first_error() -> None:
    one_thread = native("omp_set_num_threads", 1)
    fails = native("dnnl_primitive_execute", 0, 0, 0, 0)
    try:
        assert loop_over([])() == 0
        assert loop_over([one_thread, one_thread])() == 0
        assert library().c.omp_get_max_threads() == 1
        assert loop_over([fails, native("omp_set_num_threads", 7)])() == STATUS_OF_NOTHING
        assert library().c.omp_get_max_threads() == 1
    finally:
        library().c.omp_set_num_threads(library().threads)


@pytest.mark.parametrize(("size", "channels"), [(8, 8), (40, 32)])  # on one thread, on all
def test_joined_primitives_compute_the_same(joined: list[int], size: int, channels: int) -> None:
    x, layers = numbers(1, size, size, channels), chain_of_convolutions(size, channels)
    with heald.Session(layers, config=AS_WRITTEN) as session:
        results = [session.run("y", {"x": x}) for _ in range(3)]
    assert max(joined) == primitive_call.MOST_JOINED
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(primitive_call, "has_loop", lambda: False)
        with heald.Session(layers, config=AS_WRITTEN) as session:
            apart = session.run("y", {"x": x})
    assert np.isfinite(apart).all()
    assert all(np.array_equal(result, apart) for result in results)


def test_a_joined_call_is_short(joined: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primitive_call, "LARGEST_JOINED_BYTES", 3 * (2 * 8 * 8 * 8 + 9 * 8 * 8) * 4)
    with heald.Session(chain_of_convolutions(), config=AS_WRITTEN) as session:
        session.run("y", {"x": numbers(1, 8, 8, 8)})
    assert max(joined) in {2, 3}  # the library may pad the filters


def test_a_traced_run_tells_of_each_primitive() -> None:
    x = numbers(1, 8, 8, 8)
    with heald.Session(chain_of_convolutions(), config=AS_WRITTEN) as session:
        session.run("y", {"x": x})
        metadata = heald.RunMetadata()
        session.run("y", {"x": x}, options=heald.RunOptions(trace=True), metadata=metadata)
    names = {event.call.node for event, _ in metadata.trace.calls()}
    assert names >= {f"c{i}" for i in range(LAYERS)}


def test_a_failed_primitive_is_a_typed_error(monkeypatch: pytest.MonkeyPatch) -> None:
    fails = property(lambda _: native("dnnl_primitive_execute", 0, 0, 0, 0))
    monkeypatch.setattr(PrimitiveCall, "native", fails)
    with (heald.Session(chain_of_convolutions(), config=AS_WRITTEN) as session,
          pytest.raises(heald.errors.Internal, match="invalid_arguments")):
        session.run("y", {"x": numbers(1, 8, 8, 8)})
    assert library().c.omp_get_max_threads() == library().threads


@pytest.mark.parametrize("function", ["memfd_create", "mmap"])
def test_a_system_without_executable_memory_joins_nothing(
    joined: list[int], monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    def forbid(*_: Any) -> Any:
        raise PermissionError("no executable memory")

    monkeypatch.setattr(os if function == "memfd_create" else mmap, function, forbid)
    native_loop.machine_loop.cache_clear()
    try:
        with heald.Session(chain_of_convolutions(), config=AS_WRITTEN) as session:
            assert np.isfinite(session.run("y", {"x": numbers(1, 8, 8, 8)})).all()
        assert set(joined) == {1}
    finally:
        native_loop.machine_loop.cache_clear()
