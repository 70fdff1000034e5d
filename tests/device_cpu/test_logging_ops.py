"""Print, PrintV2 and Assert write the texts of TensorFlow 2.21."""

import logging
import sys
from io import StringIO

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from builders.string_arrays import array, scalar
from harness.run_op import outputs, run_op
from heald.errors import InvalidArgument, Unimplemented
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

SHOWN = [  # recorded: a tensor, the number of shown elements, the text
    (np.float32([1, 2.5, 1e10, 1 / 3]), 3, "[1 2.5 1e+10...]"),
    (np.float64([1 / 3, np.nan, np.inf]), 3, "[0.33333333333333331 nan inf]"),
    (np.complex64([1 + 2j]), 3, "[?]"),
    (np.array([True, False]), 3, "[1 0]"),
    (np.array(5), 3, "[5]"),
    (np.array(5), 0, "[...]"),
    (np.float32([]), 3, "[]"),
    (np.zeros((2, 0, 3)), 3, "[]"),
    (array([b"ab\n", b"c"]), 3, "[ab\\n c]"),
    (np.float32([[1, 2], [3, 4]]), -1, "[[1 2][3 4]]"),
    (np.float32([[1, 2], [3, 4]]), 3, "[[1 2][3...]...]"),
    (np.float32([[1, 2], [3, 4]]), 0, "[...]"),
    (np.arange(12).reshape(2, 2, 3), 4, "[[[0 1 2][3...]]...]"),
    (np.arange(5).reshape(1, 5), 3, "[[0 1 2...]...]"),
    (np.arange(4).reshape(2, 2, 1), 3, "[[[0][1]][[2]]...]"),
]


@pytest.mark.parametrize(("x", "shown_elements", "want"), SHOWN)
def test_the_first_elements_are_shown_row_by_row(x, shown_elements, want, capfd):
    passed = outputs("Print", np.float32([7]), x, x, message="given: ", summarize=shown_elements)
    np.testing.assert_array_equal(passed[0], [7])
    assert capfd.readouterr() == ("", f"given: {want}{want}\n")
    with pytest.raises(InvalidArgument) as caught:
        outputs("Assert", np.array(False), x, scalar(b"why"), summarize=shown_elements)
    assert str(caught.value).startswith(f"assertion failed: {want} [{'why' if shown_elements else '...'}]")


def test_an_assertion_that_holds_says_nothing():
    assert outputs("Assert", np.array(True), np.arange(4)) == []
    with pytest.raises(InvalidArgument, match="scalar"):
        outputs("Assert", np.array([True]), np.arange(4))


@pytest.mark.parametrize(("first_n", "times"), [(-1, 3), (0, 0), (2, 2)])
def test_a_node_prints_the_first_times_that_it_runs(first_n, times, capfd):
    printed = node("p", "Print", "x", "x", U=(dtypes.float32,), message="!", first_n=first_n)
    with heald.Session(graph(const("x", [1, 2]), printed), device="CPU:0") as session:
        for _ in range(3):
            np.testing.assert_array_equal(session.run("p:0", {}), [1, 2])
    assert capfd.readouterr() == ("", "![1 2]\n" * times)


def print_v2(text, **attrs):
    assert run_op("PrintV2", [scalar(text)], attrs) == []


def test_text_is_written_to_the_stream_that_is_meant_byte_by_byte(capfdbinary):
    print_v2(b"to stderr")
    print_v2(b"to \xff", output_stream="stdout", end="")
    assert capfdbinary.readouterr() == (b"to \xff", b"to stderr\n")


def test_a_stream_of_text_is_written_to_as_well(monkeypatch):
    monkeypatch.setattr(sys, "stdout", StringIO())
    print_v2("ä".encode() + b"\xff", output_stream="stdout")
    assert sys.stdout.getvalue() == "ä\ufffd\n"
    monkeypatch.setattr(sys, "stdout", None)
    print_v2(b"nobody sees it", output_stream="stdout")


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_output_to_the_log_goes_to_the_logger_of_heald(level, caplog):
    with caplog.at_level(logging.INFO, "heald"):
        print_v2(b"100 %d", output_stream=f"log({level})", end="")
    assert caplog.record_tuples == [("heald", getattr(logging, level.upper()), "100 %d")]


def test_no_files_are_written_and_no_unknown_streams(tmp_path):
    with pytest.raises(Unimplemented, match="writes no files"):
        print_v2(b"x", output_stream=f"file://{tmp_path}/x")
    with pytest.raises(InvalidArgument, match="Unknown output stream: nonsense, Valid streams are: stdout stderr log"):
        print_v2(b"x", output_stream="nonsense")
    with pytest.raises(InvalidArgument, match="input must be a scalar"):
        outputs("PrintV2", array([b"x", b"y"]))
    assert not [*tmp_path.iterdir()]


def test_control_edges_order_what_is_printed_and_an_assertion_that_fails_ends_it(capfd):
    """The nodes stand in the graph in another order than the edges give them."""
    texts = [const(name, name.encode(), object) for name in ("first", "second", "never")]
    with heald.Session(graph(
        *texts, placeholder("ok", (), dtypes.bool_), Node("c", "PrintV2", ("never", "^check")),
        Node("check", "Assert", ("ok", "second", "^b"), attrs={"T": (dtypes.string,)}),
        Node("b", "PrintV2", ("second", "^a")), Node("a", "PrintV2", ("first",)),
    )) as session:
        session.run([], {"ok": True}, targets=["c"])
        assert capfd.readouterr().err == "first\nsecond\nnever\n"
        with pytest.raises(InvalidArgument, match="assertion failed") as caught:
            session.run([], {"ok": False}, targets=["c"])
        assert (caught.value.node, capfd.readouterr().err) == ("check", "first\nsecond\n")
