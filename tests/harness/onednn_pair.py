"""Graphs that are run with the oneDNN pack and with NumPy's kernels alone, and their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node
from harness.shared_runtimes import shared_runtime
from heald.graphs.graph.graph import Node
from heald_onednn.library import library, open_library
from hypothesis import strategies as st

try:
    open_library(0)
except heald.errors.Unavailable as error:
    pytest.skip(str(error), allow_module_level=True)

AVX512 = 0x27  # dnnl_cpu_isa_avx512_core in dnnl_types.h
FUSES_ALL = library().c.dnnl_get_effective_cpu_isa() & AVX512 == AVX512  # else products of matrices do less at once
AS_WRITTEN = {"plugins": {"block": ["simplify"]}}
NUMPY_ALONE = {"plugins": {"block": ["onednn", "simplify"]}}
ALONE = AS_WRITTEN | {"passes": {"disable": ["fusion"]}}
RNG = np.random.default_rng(7)
CONV = {"padding": "SAME", "strides": [1, 1, 1, 1], "dilations": [1, 1, 1, 1], "explicit_paddings": [],
        "data_format": "NHWC", "use_cudnn_on_gpu": True}
NORM = {"U": heald.api.dtypes.float32, "epsilon": 1e-3, "exponential_avg_factor": 1.0, "data_format": "NHWC",
        "is_training": False}
STATISTICS = ("gamma", "beta", "mean", "variance")


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def conv(name: str, *inputs: str, op: str = "Conv2D", **attrs: Any) -> Node:
    defaults = {name: value for name, value in CONV.items() if op == "Conv2D" or name != "use_cudnn_on_gpu"}
    return node(name, op, *inputs, **defaults | attrs)


def statistics(channels: int) -> list[Node]:
    return [const(name, np.abs(numbers(channels)) + 0.1) for name in STATISTICS]


@st.composite
def windows(draw: Any) -> dict[str, Any]:
    """Attributes of a window over images, and the images' height and width."""
    padding = draw(st.sampled_from(["SAME", "VALID", "EXPLICIT"]))
    pads = [0, 0, *(draw(st.integers(0, 3)) for _ in range(4)), 0, 0]
    return {"height": draw(st.integers(1, 11)), "width": draw(st.integers(1, 11)), "padding": padding,
            "explicit_paddings": pads if padding == "EXPLICIT" else []}


@dataclass
class Compared:
    """The fetch with the pack, and the kernels that made it: `onednn.Conv2D`, or `onednn.Product` once for
    all the nodes that it does."""

    result: np.ndarray[Any, Any]
    kernels: list[str]


def compare(
    nodes: Sequence[Node], feeds: dict[str, Any], fetch: str, *, close: float = 2e-6, **config: Any
) -> Compared:
    """Run with and without the pack. The results differ by no more than `close`, as a part of the largest number that
    there is in them or that went in."""
    metadata = heald.RunMetadata()
    with heald.Session(graph(*nodes), shared_runtime(NUMPY_ALONE)) as session:
        want = session.run(fetch, feeds)
    with heald.Session(graph(*nodes), shared_runtime(AS_WRITTEN | config)) as session:
        session.run(fetch, feeds)  # the second run finds the frame that the first has made
        got = session.run(fetch, feeds, options=heald.RunOptions(trace=True), metadata=metadata)
    assert got.shape == want.shape
    scale = max([1.0, *(float(np.abs(x[np.isfinite(x)]).max()) for x in (want, *feeds.values()) if x.size)])
    np.testing.assert_allclose(got, want, rtol=close, atol=close * scale)
    assert metadata.trace is not None
    return Compared(got, [event.call.code for event in metadata.trace.events])
