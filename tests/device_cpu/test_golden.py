"""Every op that has a kernel gives what TensorFlow gave, whether its inputs are fed or constants."""

from __future__ import annotations

import heald
import numpy as np
import pytest
from heald.graphs.compiler.resolve import Resolved, resolve
from heald.graphs.graph.graph import Graph, Node
from heald.runtime.config.config import load_config
from heald.runtime.contract.op import infer
from heald.runtime.service.runtime import runtime
from heald.runtime.values.tensor import ValueInfo, info
from heald_conformance.golden import Case, cases, disagreements
from plugins_for_tests import kept_plugin

KERNELS = runtime().host.registries.kernels
ALONE = {"allow": ["cpu", "tf_ops"]}  # no other pack's kernels
REFERENCE = runtime(load_config({"plugins": ALONE}))  # a runtime for all cases: to make one takes longer than a case
POISON = runtime(load_config({"plugins": ALONE | kept_plugin.CONFIG["plugins"], "debug": {"poison": True}}))
NOT_APPLICABLE = {  # ops whose one case is not run, and why
    "Const": "it is recorded without a graph; every case with constant inputs has more of them",
    "MergeV2Checkpoints": "it writes files: only saving needs it",
}
SHAPE_MISTAKES = {  # ops whose shapes TensorFlow infers differently from what it computes, and how
    **dict.fromkeys(("FractionalAvgPool", "FractionalMaxPool"), "sequences of an element too few"),
}
APPLICABLE = sorted(cases().keys() - NOT_APPLICABLE.keys())


def fed(case: Case) -> list[np.ndarray]:
    with heald.Session(case.graph(), REFERENCE, device="CPU:0") as session:
        return run(session, {f"i{i}": x for i, x in enumerate(case.inputs)})


def as_constants(case: Case) -> list[np.ndarray]:
    graph = case.graph()
    constants = {
        f"i{i}": Node(f"i{i}", "Const", attrs={"dtype": graph.nodes[f"i{i}"].attrs["dtype"], "value": x})
        for i, x in enumerate(case.inputs)
    }
    with heald.Session(graph.replace(nodes=constants.values()), REFERENCE, device="CPU:0") as session:
        return run(session, {})


def between_buffers(case: Case) -> list[np.ndarray]:
    """Inputs and outputs are buffers of the frame, overwritten as soon as they may be: the results of a second
    run, but for ops that go on where they stopped."""
    graph = case.graph()
    op = graph.nodes["op"]
    entry = resolve(graph, runtime().host.registries.ops)["op"]
    if isinstance(entry, heald.errors.HealdError):
        raise entry
    before = [Node(f"b{i}", "Kept>Copy", [f"i{i}"], attrs={"T": graph.nodes[f"i{i}"].attrs["dtype"]})
              for i in range(len(case.inputs))]
    after = [Node(f"a{i}", "Kept>Copy", [f"op:{i}"], attrs={"T": t.dtype}) for i, t in enumerate(entry.output_tensors)]
    changed = op.replace(inputs=[f"b{str(i)[1:]}" for i in op.inputs])
    with heald.Session(graph.replace(nodes=[changed, *before, *after]), POISON, device="CPU:0") as session:
        step = session.make_callable([n.name for n in after], [f"i{i}" for i in range(len(case.inputs))],
                                     targets=() if after else ["op"])
        first, second = step(*case.inputs), step(*case.inputs)
        return first if entry.op.stateful else second


def run(session: heald.Session, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    entry = session.nodes["op"]
    if isinstance(entry, heald.errors.HealdError):
        raise entry
    fetches = [f"op:{i}" for i in range(len(entry.output_tensors))]
    return session.run(fetches, feeds, targets=() if fetches else ["op"])


@pytest.mark.parametrize("execute", [fed, as_constants, between_buffers])
@pytest.mark.parametrize("op", APPLICABLE)
def test_an_op_gives_what_tensorflow_gives(op, execute, record_property):
    wrong = []
    record_property("golden cases", len(cases()[op]))
    for case in cases()[op]:
        try:
            got = execute(case)
        except heald.errors.HealdError as error:
            got = error
        wrong += disagreements(case, got)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("op", [op for op in APPLICABLE if op not in SHAPE_MISTAKES])
def test_shapes_are_inferred_without_values_as_tensorflow_infers_them(op):
    wrong = []
    for case in cases()[op]:
        entry = resolve(case.graph(), runtime().host.registries.ops)["op"]
        if not isinstance(entry, Resolved):
            continue  # the attributes alone are refused: the test above has the error's code
        infos = [info(t.dtype, x.shape) for t, x in zip(entry.input_tensors, case.inputs, strict=True)]
        try:
            got = infer_outputs(entry, infos)
        except heald.errors.InvalidArgument as error:
            if not isinstance(case.static, dict) and case.code is None:
                wrong.append(f"{case.id}: {error}")
            continue
        if isinstance(case.static, dict):
            if case.outputs is None and case.code is not None:
                wrong.append(f"{case.id}: gives {got}, TensorFlow: {case.static['error']}")
        elif not all(s == "?" or list(g or ()) == s for g, s in zip(got, case.static, strict=True)):
            wrong.append(f"{case.id}: {got}, TensorFlow infers {case.static}")
    assert not wrong, "\n".join(wrong)


def infer_outputs(entry: Resolved, infos: list[ValueInfo]) -> list[tuple[int | None, ...] | None]:
    ops = runtime().host.registries.ops
    return [i.shape for i in infer(entry.op, ops.metadata(entry.op), entry.attrs, infos)]


def test_every_recorded_case_is_run_but_two():
    assert [op for op in APPLICABLE if not KERNELS.candidates(op, "CPU")] == ["NoOp"]  # the runtime's own
    assert sum(map(len, cases().values())) - sum(len(cases()[op]) for op in APPLICABLE) == 2
    assert sum(map(len, cases().values())) >= 2068


def test_a_graph_is_what_its_case_says():
    case = cases()["AddV2"][0]
    assert isinstance(case.graph(), Graph)
    assert np.array_equal(fed(case)[0], case.inputs[0] + case.inputs[1])
