"""Situations in which TensorFlow 2.21 raises, or does not: heald's error has TensorFlow's canonical code.

tests/data/tf_errors.json has TensorFlow's class and message of each situation. Python classes of TensorFlow's front end
(ValueError, TypeError, ...) have no code; `CODES` says which canonical code heald gives. `ON_PURPOSE` has the
situations in which heald differs, with the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.control_flow import function
from builders.graphs import FLOAT, const, graph, node, placeholder
from heald import errors, graphdef
from heald.graphs.graph.attr_value import Func, ShapeAttr
from heald.graphs.graph.graph import Graph, Node, Versions
from heald.runtime.values import dtypes
from heald_saved_model import write_checkpoint

DATA = Path(__file__).parents[2] / "data"
SITUATIONS = json.loads((DATA / "tf_errors.json").read_text("utf-8"))
INT, BOOL = dtypes.int32, dtypes.bool_
HARD, SOFT = {"placement": {"fallback": "error"}}, {"placement": {"fallback": "allow"}}
PROGRAMS: dict[str, Callable[[Path], Any]] = {}
Program = Callable[[Path], Any]

# The codes for errors of TensorFlow's Python front end. The others are InvalidArgument.
CODES = {
    "fetch_unknown_tensor": errors.NotFound, "fetch_unknown_op": errors.NotFound, "feed_unknown": errors.NotFound,
    "savedmodel_missing_dir": errors.NotFound, "savedmodel_empty_dir": errors.NotFound,
    "savedmodel_bad_tag": errors.NotFound, "use_closed_session": errors.FailedPrecondition,
}
# Situations in which heald differs: its error, or None where it raises none, and the reason.
ON_PURPOSE: dict[str, tuple[type[errors.HealdError] | None, str]] = {
    "feed_int_to_float_ok": (errors.InvalidArgument, "the cast may lose values; the user writes it"),
    "feed_float_to_int": (errors.InvalidArgument, "the cast loses fractions; the user writes it"),
    "device_job_soft": (None, "graphs saved by another job run here where config allows a fallback"),
    "unknown_attr": (errors.InvalidArgument, "a newer TensorFlow may have given the attribute a meaning"),
    "missing_function": (errors.NotFound, "a missing name is NotFound, as for ops, tensors and files"),
    "enter_fetch_inside": (errors.InvalidArgument, "the tensor has a value in every iteration"),
    "nextiter_without_merge": (errors.InvalidArgument, "the node is in no loop; frames are static"),
}
# Situations that are of TensorFlow's own parts.
ELSEWHERE = {
    "bad_consumer": "heald has no consumer version of its own",
}


def run(fetches: Any, *nodes: Node, feeds: Any = None, config: Any = None, targets: Any = (), **more: Any) -> Any:
    with heald.Session(Graph(nodes, **more), config) as session:
        return session.run(fetches, feeds or {}, targets=targets)


def situation(name: str, fetches: Any, *nodes: Node, **more: Any) -> None:
    PROGRAMS[name] = lambda _: run(fetches, *nodes, **more)


C, X = const("c", 1), placeholder("x", (2,))
NEG = node("n", "Neg", "c")
situation("missing_feed", "y", X, node("y", "Neg", "x"))
situation("fetch_unknown_tensor", "nope:0", C)
situation("fetch_unknown_op", [], C, targets=["nope"])
situation("fetch_bad_output_index", "c:1", C)
situation("fetch_bad_name", "c:x", C)
situation("feed_unknown", "c", C, feeds={"zz:0": 1})
situation("feed_wrong_dtype_string", "x", X, feeds={"x": ["a", "b"]})
situation("feed_wrong_shape", "x", X, feeds={"x": [1, 2, 3]})
situation("feed_int_to_float_ok", "x", X, feeds={"x": np.int64([1, 2])})
situation("feed_float_to_int", "x", placeholder("x", (2,), INT), feeds={"x": np.float64([1.5, 2.5])})
situation("fetch_none_type", None, C)
situation("fetch_empty_list", [], C)
ZERO = [const("i", 1, np.int32), placeholder("zero", (), INT)]
DIVIDED = node("d", "FloorDiv", "i", "zero", T=INT)
situation("int_div_zero", "d", *ZERO, DIVIDED, feeds={"zero": 0})
situation("two_failing_ops", ["d", "e"], *ZERO, DIVIDED, node("e", "FloorMod", "i", "zero", T=INT), feeds={"zero": 0})
SCALAR = {"dtype": FLOAT, "shape": ShapeAttr(())}
situation("uninit_ref_variable", "r", Node("v", "VariableV2", attrs=SCALAR), node("r", "Identity", "v"))
situation("uninit_resource_variable", "r", Node("v", "VarHandleOp", attrs=SCALAR),
          Node("r", "ReadVariableOp", ("v",), attrs={"dtype": FLOAT}))
for _kind, _device in {"gpu": "/device:GPU:0", "cpu7": "/device:CPU:7", "foo": "/device:FOO:0",
                       "job": "/job:worker/task:0/device:CPU:0"}.items():
    for _way, _config in (("hard", HARD), ("soft", SOFT)):
        situation(f"device_{_kind}_{_way}", "n", C, NEG.replace(device=_device), config=_config)
situation("device_malformed", "n", C, NEG.replace(device="/devise:CPU:0"), config=HARD)
situation("cycle", "a", node("a", "Neg", "b"), node("b", "Neg", "a"))
situation("self_loop", "a", node("a", "Neg", "a"))
situation("control_cycle", "a", C, node("a", "Neg", "c", "^b"), node("b", "Neg", "a"))
situation("unknown_op", "n", C, Node("n", "NoSuchOp", ("c",)))
situation("missing_attr", "n", C, Node("n", "Neg", ("c",)))
situation("unknown_attr", "n", C, node("n", "Neg", "c", wrong=1))
situation("underscore_attr", "n", C, node("n", "Neg", "c", _mark=1))
situation("attr_wrong_kind", "n", C, node("n", "Neg", "c", T=3))
situation("attr_not_allowed", "n", placeholder("b", (), BOOL), node("n", "Neg", "b", T=BOOL), feeds={"b": True})
situation("duplicate_name", "c", C, C)
situation("bad_name", "c d!", const("c d!", 1))
situation("input_absent", "n", node("n", "Neg", "zz"))
situation("input_bad_port", "n", C, node("n", "Neg", "c:3"))
situation("edge_dtype", "n", const("c", 1, np.int32), NEG)
situation("too_many_inputs", "n", C, node("n", "Neg", "c", "c"))
situation("too_few_inputs", "n", C, node("n", "AddV2", "c"))
situation("shape_mismatch_static", "n", const("a", [1, 2]), const("b", [1, 2, 3]), node("n", "AddV2", "a", "b"))
situation("missing_function", "n", C, Node("n", "PartitionedCall", ("c",), attrs={
    "Tin": (FLOAT,), "Tout": (FLOAT,), "f": Func("nofn")}))
situation("producer_too_new", "c", C, versions=Versions(producer=99999, min_consumer=99999))
situation("exit_without_enter", "e", C, node("e", "Exit", "c"))
situation("mixed_frames", "b", C, node("a", "Enter", "c", frame_name="one"), node("d", "Enter", "c", frame_name="two"),
          node("b", "AddV2", "a", "d"))
situation("enter_fetch_inside", "e", C, node("e", "Enter", "c", frame_name="one"))
situation("nextiter_without_merge", "n", C, node("n", "NextIteration", "c"))
LOOP = [const("c", [1, 1]), placeholder("more", None, BOOL), node("e", "Enter", "c", frame_name="f"),
        node("p", "Enter", "more", T=BOOL, frame_name="f", is_constant=True), Node("l", "LoopCond", ("p",)),
        node("m", "Merge", "e", "next", N=2), node("s", "Switch", "m", "l"), node("next", "NextIteration", "s:1"),
        node("exit", "Exit", "s")]
situation("while_cond_not_scalar", "exit", *LOOP, feeds={"more": [False, False]})
situation("assert_fail", [], placeholder("p", (), BOOL), C, Node("a", "Assert", ("p", "c"), attrs={"T": (FLOAT,)}),
          feeds={"p": False}, targets=["a"])
situation("colocate_absent", "n", C, NEG.replace(attrs={"_class": (b"loc:@nothere",)}))
situation("colocate_conflict", "n", C.replace(device="CPU:0"), NEG.replace(device="CPU:1", attrs={
    "_class": (b"loc:@c",)}), config=SOFT | {"plugin": {"cpu": {"count": 2}}})


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def const_of(text: str) -> Any:
    """Read a constant of float32 from a GraphDef's text."""
    return graphdef.loads(f'node {{ name: "c" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }} '
                          f'attr {{ key: "value" value {{ tensor {{ {text} }} }} }} }}', text=True)


THREE = "tensor_shape { dim { size: 3 } }"
for _name, _text in {
    "const_dtype_mismatch": "dtype: DT_INT32 tensor_shape { } int_val: 1",
    "const_bad_content": f'dtype: DT_FLOAT {THREE} tensor_content: "ab"',
    "const_short_list": f"dtype: DT_FLOAT {THREE} float_val: 1 float_val: 2", "const_empty_list":
    f"dtype: DT_FLOAT {THREE}",
}.items():
    PROGRAMS[_name] = lambda _, text=_text: heald.Session(const_of(text)).run("c")


@program
def control_before_data(_: Path) -> Any:
    text = """node { name: "c" op: "NoOp" }
              node { name: "n" op: "Neg" input: "^c" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
              node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } }"""
    return heald.Session(graphdef.loads(text, text=True)).run("n", {"x": 1})


@program
def queue_timeout(_: Path) -> Any:
    kinds = {"component_types": (FLOAT,)}
    nodes = Node("q", "FIFOQueueV2", attrs=kinds), Node("get", "QueueDequeueV2", ("q",), attrs=kinds)
    with heald.Session(graph(*nodes)) as session:
        return session.run("get", options=heald.RunOptions(timeout=0.02))


@program
def no_kernel(_: Path) -> Any:
    return run("z", Node("z", "_XlaRecvAtHost", attrs={"Toutputs": (), "key": b"k", "device_ordinal": 0}))


@program
def use_closed_session(_: Path) -> Any:
    session = heald.Session(graph(C))
    session.close()
    return session.run("c")


@program
def recursion(_: Path) -> Any:
    nodes = [Node("n", "PartitionedCall", attrs={"Tin": (), "Tout": (), "f": Func("empty")})]
    return run([], *nodes, targets=["n"], functions=[function("empty", "", [], {})])


@program
def graph_modified_after_run(_: Path) -> Any:
    with heald.Session(graph(C)) as session:
        session.run("c")
        session.extend(graph(NEG))
        return session.run("n")


def strings(value: str) -> Any:
    return np.array([value.encode()], object)


for _name, (_key, _slice, _dtype) in {
    "restore_missing_key": ("nokey", "", FLOAT), "restore_wrong_dtype": ("a", "", INT),
    "restore_slice": ("a", "3 2 0,1:-", FLOAT), "restore_bad_slice": ("a", "9 2 0,1:-", FLOAT),
}.items():
    def restore(folder: Path, key: str = _key, part: str = _slice, dtype: Any = _dtype) -> Any:
        write_checkpoint(folder / "saved", {"a": np.ones((3, 2), np.float32)})
        nodes = [const("prefix", str(folder / "saved").encode(), object), const("names", strings(key), object),
                 const("slices", strings(part), object),
                 Node("restore", "RestoreV2", ("prefix", "names", "slices"), attrs={"dtypes": (dtype,)})]
        return run("restore:0", *nodes, config={"files": {"read": [str(folder)]}})

    PROGRAMS[_name] = restore


@program
def savedmodel_missing_dir(folder: Path) -> Any:
    return heald.load(folder / "absent")


@program
def savedmodel_empty_dir(folder: Path) -> Any:
    return heald.load(folder)


@program
def savedmodel_bad_tag(_: Path) -> Any:
    return heald.load(DATA / "saved_models" / "tags" / "model", tags=["gpu_tag"])


def tensorflows(name: str) -> int | None:
    """The code of TensorFlow's error in a situation, None where it raises none."""
    if "ok" in SITUATIONS[name]:
        return None
    return SITUATIONS[name]["code"] or CODES.get(name, errors.InvalidArgument).code


def expected_code(name: str) -> int | None:
    """The code of heald's error in a situation, None where it raises none."""
    if name not in ON_PURPOSE:
        return tensorflows(name)
    status, _ = ON_PURPOSE[name]
    return None if status is None else status.code


def test_every_situation_is_run_or_said_to_be_elsewhere() -> None:
    assert sorted([*PROGRAMS, *ELSEWHERE]) == sorted(SITUATIONS)


def test_excused_situations_differ_from_tensorflow() -> None:
    assert [name for name in ON_PURPOSE if expected_code(name) == tensorflows(name)] == []


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_an_error_has_tensorflows_code(name: str, tmp_path: Path) -> None:
    expected_values = expected_code(name)
    if expected_values is None:
        PROGRAMS[name](tmp_path)
        return
    with pytest.raises(errors.HealdError) as caught:
        PROGRAMS[name](tmp_path)
    assert caught.value.code == expected_values, caught.value
