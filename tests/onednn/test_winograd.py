"""Convolutions with fewer multiplications: as NumPy's kernel does them, in tiles of any number and size."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from harness.onednn_pair import NORM, STATISTICS, compare, conv, numbers, statistics, windows
from heald_onednn import single_thread, winograd_tiling, workspace
from heald_onednn.kernels import convolution, winograd
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

CLOSE = 1e-5  # of the largest number; convolutions round by 2e-6
TAPS = [(3, 3), (5, 5), (1, 3), (3, 1), (1, 7), (7, 1), (5, 1), (3, 5)]
OFF = {"plugin": {"onednn": {"winograd": False}}}
WIDE = 128  # channels


class Calls:
    """The bound sizes, and the numbers of calls with fixed and with changing arrays."""

    def __init__(self) -> None:
        self.bound: list[winograd_tiling.Size] = []
        self.fixed = self.open = 0


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    recorded_calls, make = Calls(), winograd.bind_in_tiles
    attach, run = winograd.Winograd.attach, winograd.Winograd.run

    def bind_and_note(b: Any, node: Any, after: Any, size: winograd_tiling.Size) -> Any:
        recorded_calls.bound.append(size)
        return make(b, node, after, size)

    def attach_and_note(self: Any, inputs: Any, outputs: Any) -> Any:
        recorded_calls.fixed += 1
        return attach(self, inputs, outputs)

    def run_and_note(self: Any, *arrays: Any) -> None:
        recorded_calls.open += 1
        run(self, *arrays)

    monkeypatch.setattr(winograd, "bind_in_tiles", bind_and_note)
    monkeypatch.setattr(winograd.Winograd, "attach", attach_and_note)
    monkeypatch.setattr(winograd.Winograd, "run", run_and_note)
    return recorded_calls


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it costs."""
    monkeypatch.setattr(single_thread, "LARGEST_WORK_ELEMENTS", 0)
    monkeypatch.setattr(convolution, "LEAST_CHANNELS", 1)
    monkeypatch.setattr(winograd_tiling, "LARGEST_RELATIVE_COST", float("inf"))


@pytest.mark.parametrize(("m", "taps"),
                         [(m, k) for m in (1, *winograd_tiling.RESULTS_PER_TILE_SIDE) for k in (1, 3, 5, 7)
                          if m + k - 1 in winograd_tiling.POINTS])
def test_the_matrices_give_the_sums_of_a_convolution(m: int, taps: int) -> None:
    a, g, b = winograd_tiling.matrices(m, taps)
    rng = np.random.default_rng(m)
    pixels, filters = rng.standard_normal((50, m + taps - 1)), rng.standard_normal((50, taps))
    want = [[row[i : i + taps] @ column for i in range(m)] for row, column in zip(pixels, filters, strict=True)]
    np.testing.assert_allclose(((filters @ g.T) * (pixels @ b.T)) @ a.T, want, atol=1e-12)


@pytest.mark.usefixtures("always")
@given(windows(), st.sampled_from(TAPS), st.sampled_from(winograd_tiling.RESULTS_PER_TILE_SIDE), st.integers(1, 4),
       st.sampled_from([1, 3, 16]), st.sampled_from([1, 5, 16, winograd.LARGEST_ROW_MAJOR_FILTERS + 8]),
       st.sampled_from([1 << 11, 1 << 14, 1 << 23]))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_images_are_cut_into_tiles(
    calls: Calls, window: Any, taps: tuple[int, int], m: int, batch: int, depth: int, filters: int, in_cache: int
) -> None:
    size = window.pop("height"), window.pop("width")
    pads = window["explicit_paddings"][2:6] or [0] * 4
    padded = size[0] + sum(pads[:2]), size[1] + sum(pads[2:])
    assume(window["padding"] == "SAME" or (padded[0] >= taps[0] and padded[1] >= taps[1]))
    before = len(calls.bound)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd_tiling, "LARGEST_TURN_BYTES", in_cache)
        patch.setattr(winograd_tiling, "RESULTS_PER_TILE_SIDE", (m,))
        compare([placeholder("x"), const("w", numbers(*taps, depth, filters)), conv("y", "x", "w", **window)],
                {"x": numbers(batch, *size, depth)}, "y", close=CLOSE)
    pads_more = max(pads[:2]) >= taps[0] or max(pads[2:]) >= taps[1]
    assert [(bound_size.down.taps, bound_size.across.taps)
            for bound_size in calls.bound[before:]] == ([] if pads_more else [taps])
    for size in calls.bound[before:]:
        assert {axis.m for axis in (size.down, size.across) if axis.taps > 1} == {m}


@given(st.integers(1, 6), st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 5]),
       st.sampled_from(winograd_tiling.RESULTS_PER_TILE_SIDE), st.integers(0, 2), st.integers(0, 2),
       st.integers(10, 23))
def test_turns_make_all_results_of_the_pixels_that_these_need(
    images: int, rows: int, columns: int, taps: int, m: int, above: int, below: int, bits: int
) -> None:
    height = rows + taps - 1 - above - below
    assume(height > 0 and max(above, below) < taps)
    full_size = winograd_tiling.Size(images, winograd_tiling.Axis(taps, m if taps > 1 else 1, height, rows, above),
                                     winograd_tiling.Axis(3, m, columns + 2, columns, 0), 8, 16)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(winograd_tiling, "LARGEST_TURN_BYTES", 1 << bits)
        turns = [*full_size.turns()]
    is_made = np.zeros((images, rows), bool)
    for size, first_pixel, first_result in turns:
        image, row = divmod(first_result // (columns * 16), rows)
        needed = range(max(0, row - above), min(height, row - above + size.down.results + taps - 1))
        assert (size.down.before, size.down.pixels) == (max(0, above - row), len(needed))
        assert first_pixel == (image * height + needed.start) * (columns + 2) * 8
        is_made[image : image + size.images, row : row + size.down.results] = True
    assert is_made.all()
    if full_size.nbytes <= 1 << bits:
        assert len(turns) == 1


def test_a_network_has_them_where_they_take_less_time(calls: Calls) -> None:
    """28x28 and 128 channels: yes; 7x7, or 32 filters: no. The ops behind each result are fused with it."""
    nodes = [
        placeholder("x", (1, 28, 28, WIDE)), const("w", numbers(3, 3, WIDE, WIDE) / 30), const("bias", numbers(WIDE)),
        conv("a", "x", "w"), node("b", "AddV2", "a", "bias"), node("c", "Relu6", "b"),
        const("v", numbers(3, 3, WIDE, WIDE) / 30), *statistics(WIDE), conv("d", "c", "v"),
        node("e", "FusedBatchNormV3", "d", *STATISTICS, T=heald.api.dtypes.float32, **NORM), node("f", "Sigmoid", "e"),
        node("g", "Mul", "f", "e"), const("u", numbers(3, 3, WIDE, 32) / 30), conv("y", "g", "u")]
    done = compare(nodes, {"x": numbers(1, 28, 28, WIDE)}, "y", close=CLOSE)
    assert done.kernels == ["onednn.Product", "onednn.Product", "onednn.Conv2D"]
    assert {size.down.m for size in calls.bound} == {4}
    assert len(calls.bound) == 2
    compare([placeholder("x", (1, 7, 7, WIDE)), *nodes[1:3], conv("y", "x", "w")], {"x": numbers(1, 7, 7, WIDE)}, "y")
    assert len(calls.bound) == 2


@pytest.mark.parametrize("how", [
    {"strides": [1, 2, 2, 1]}, {"dilations": [1, 2, 2, 1]}, {"taps": 1}, {"filters": 32}, {"groups": 2}, {"side": 7},
    {"added": True}, {"config": OFF},
], ids=str)
def test_others_are_left_to_the_library(calls: Calls, how: dict[str, Any]) -> None:
    side, taps = how.get("side", 28), how.get("taps", 3)
    filters = how.get("filters", WIDE)
    attrs = {name: value for name, value in how.items() if name in ("strides", "dilations")}
    nodes = [placeholder("x"), const("w", numbers(taps, taps, WIDE // how.get("groups", 1), filters) / 30),
             conv("a", "x", "w", **attrs)]
    x = numbers(1, side, side, WIDE)
    nodes += [node("y", "AddV2", "a", "x")] if "added" in how else [node("y", "Relu", "a")]
    with heald.Session(graph(*nodes), how.get("config", {})) as session:
        session.run("y", {"x": x})
    assert not calls.bound


def three(channels: int) -> heald.Graph:
    """Three convolutions: the first reads the feed, the last gives the result, the middle one is internal."""
    return graph(placeholder("x"), const("w", numbers(3, 3, channels, channels) / 30),
                 conv("a", "x", "w"), conv("b", "a", "w"), conv("y", "b", "w"))


def test_arrays_may_be_fixed_or_not(calls: Calls) -> None:
    network, x = three(128), numbers(1, 28, 28, 128)
    with heald.Session(network, OFF) as session:
        want = session.run("y", {"x": x})
    with heald.Session(network) as session:
        for _ in range(3):
            np.testing.assert_allclose(session.run("y", {"x": x}), want, atol=CLOSE * np.abs(want).max())
    assert calls.fixed
    assert calls.open


def run_by_threads(sessions: list[heald.Session], feeds: list[np.ndarray[Any, Any]]) -> None:
    wants = [session.run("y", {"x": x}) for session, x in zip(sessions, feeds, strict=True)]

    def work(seed: int) -> None:
        for i in np.random.default_rng(seed).integers(0, len(feeds), 20):
            np.testing.assert_array_equal(sessions[i].run("y", {"x": feeds[i]}), wants[i])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))


def test_threads_and_programs_share_workspaces_and_leave_none() -> None:
    with heald.Session(three(128)) as first, heald.Session(three(64)) as second:
        run_by_threads([first, second], [numbers(1, 28, 28, 128), numbers(1, 40, 40, 64)])
        idle = [idle_workspace.array.nbytes for idle_workspace in workspace.workspaces(0).idle]
    assert 1 <= len(idle) <= 4
    assert max(idle) < 2 * winograd_tiling.LARGEST_TURN_BYTES
    del first, second
    gc.collect()
    assert not workspace.workspaces(0).idle


def test_nan_of_an_image_stays_nan_in_its_windows_and_spreads_over_its_tiles_alone() -> None:
    """It spreads over its tiles; nowhere does it become a number."""
    x, w = numbers(1, 28, 28, 128), numbers(3, 3, 128, 128)
    x[0, 13, 13, 5] = np.nan
    nodes = [placeholder("x"), const("w", w), conv("y", "x", "w")]
    results = []
    for config in ({}, OFF):
        with heald.Session(graph(*nodes), config) as session:
            results.append(np.isnan(session.run("y", {"x": x})))
    tiled, direct = results
    assert direct.sum() == 9 * 128
    assert tiled[direct].all()
    assert 0 < tiled.sum() <= 64 * 128


def test_a_step_tells_which_convolutions_are_done_so() -> None:
    nodes = [placeholder("x", (1, 28, 28, 128)), const("w", numbers(3, 3, 128, 128)), conv("tiled", "x", "w"),
             const("v", numbers(1, 1, 128, 128)), conv("direct", "tiled", "v"), node("y", "Relu", "direct")]
    with heald.Session(graph(*nodes)) as session:
        algorithms = session.prepare("y", ["x"]).executable().algorithms()
    assert algorithms["tiled"].startswith("Winograd, tiles of ")
    assert "Winograd" not in algorithms["direct"]
    assert algorithms["direct"] == algorithms["y"] != ""


def test_a_cpu_without_a_part_of_it_gets_the_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Any:
        raise heald.errors.Unimplemented("oneDNN has only 'ref' for this")

    monkeypatch.setattr(winograd, "bind_in_tiles", refuses)
    done = compare([placeholder("x"), const("w", numbers(3, 3, 128, 128)), conv("y", "x", "w")],
                   {"x": numbers(1, 28, 28, 128)}, "y")
    assert done.kernels == ["onednn.Conv2D"]
