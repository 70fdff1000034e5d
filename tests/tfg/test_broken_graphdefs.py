"""GraphDefs with one fault each against TensorFlow's recorded answers: what it refuses, heald refuses in its words."""

from __future__ import annotations

import re

import heald
import pytest
from builders.broken_graphdefs import KINDS, broken_graphdef
from builders.graphs import const, node
from harness.recorded_tfg import recorded_files
from heald.api import Graph
from heald.errors import InvalidArgument
from heald_mlir.tfg.checks.function_import_checks import check_graphdef
from heald_mlir.tfg.signatures.result_types import Declarations

BROKEN = recorded_files("broken")
NAMES = sorted(name.removesuffix(".pb") for name in BROKEN if name.endswith(".pb"))
ACCEPTED, REFUSED, UNVERIFIED = "0", "4", "7"  # statuses
UNKNOWN_OP = "Unable to find OpDef"  # of ops that heald keeps
OF_THE_VERIFIER = frozenset(("duplicate_function", "control_flow_that_does_not_fit", "odd_result"))


def answer(name: str) -> tuple[str, str]:
    """TensorFlow's status and message, with the white space of heald's errors."""
    status, _, message = BROKEN[f"{name}.txt"].decode().partition("\n")
    return status, re.sub(r"\n\s+", "\n    ", message)


def importer_message(raw: bytes) -> str:
    """The message of heald's own checks; empty where there is none."""
    ops = heald.default_host().registries.ops
    try:
        check_graphdef(memoryview(raw), lambda signatures: Declarations(ops, signatures))
    except InvalidArgument as error:
        return error.message.strip()
    return ""


def test_each_kind_of_fault_is_recorded():
    crashes = {"odd_tensor"}  # the other faults of it depend on the seed
    assert {name.rpartition("-")[0] for name in NAMES} | crashes == set(KINDS)
    assert len(NAMES) >= 200
    assert sum(answer(name)[0] != ACCEPTED for name in NAMES) >= 100


@pytest.mark.parametrize("name", NAMES)
def test_the_importer_s_checks_have_its_words(name):
    status, message = answer(name)
    told = importer_message(BROKEN[f"{name}.pb"])
    if status == UNVERIFIED and name.rpartition("-")[0] in OF_THE_VERIFIER:
        return
    assert told == ("" if message.startswith(UNKNOWN_OP) else message)


@pytest.mark.parametrize("name", [name for name in NAMES if answer(name)[0] == REFUSED])
def test_no_text_is_printed_for_a_graphdef_that_tensorflow_refuses(name):
    if answer(name)[1].startswith(UNKNOWN_OP):
        return
    with pytest.raises(InvalidArgument):
        heald.tfg.dumps(heald.graphdef.loads(BROKEN[f"{name}.pb"]))


@pytest.mark.parametrize("name", [name for name in NAMES if answer(name)[0] == UNVERIFIED])
def test_the_command_verify_refuses_graphs_that_tensorflow_does_not_verify(command, tmp_path, name):
    (tmp_path / "bad.pb").write_bytes(BROKEN[f"{name}.pb"])
    done = command("tfg", "verify", "bad.pb")
    assert done.status == 1
    assert "bad.pb" in done.err


@pytest.mark.parametrize("kind", ["missing_input", "index_out_of_bounds", "type_list_of_other_kind", "odd_index"])
@pytest.mark.parametrize("action", ["print", "verify"])
def test_commands_tell_the_importer_s_words_with_file_and_node(command, tmp_path, action, kind):
    seed = next(seed for seed in range(3) if answer(f"{kind}-{seed}")[0] == REFUSED)
    (tmp_path / "bad.pb").write_bytes(BROKEN[f"{kind}-{seed}.pb"])
    done = command("tfg", action, "bad.pb")
    message = answer(f"{kind}-{seed}")[1]
    assert done.status == 1
    assert done.err.startswith(f"error: bad.pb: {message.splitlines()[0]}")


def test_a_graphdef_in_text_form_is_told_in_the_importer_s_words(command, tmp_path):
    (tmp_path / "bad.pbtxt").write_text('node { name: "n" op: "NoOp" input: "gone" }')
    done = command("tfg", "print", "bad.pbtxt")
    assert done.err.startswith("error: bad.pbtxt: Non-existent input gone in node n\n")


def test_a_file_without_words_of_the_importer_keeps_the_error_of_its_reader(command, tmp_path):
    graph = broken_graphdef("duplicate_node", 0)
    (tmp_path / "bad.pb").write_bytes(graph.SerializeToString())
    (tmp_path / "bad.pbtxt").write_text("node {")
    assert "two nodes are called" in command("tfg", "print", "bad.pb").err
    assert "bad.pbtxt:1:" in command("tfg", "print", "bad.pbtxt").err


def test_all_missing_inputs_are_in_one_error():
    graph = Graph([node("a", "Neg", "zz", T=heald.api.dtypes.float32), node("b", "Neg", "aa:1", "^mm")])
    with pytest.raises(InvalidArgument) as raised:
        heald.tfg.dumps(graph)
    assert raised.value.message.splitlines() == [
        "Non-existent input aa:1 in node b", "Non-existent input ^mm in node b", "Non-existent input zz in node a"]


def test_a_refused_graph_is_printed_without_verification():
    graph = Graph([const("c", 1.0), node("n", "Neg", "c:3", T=heald.api.dtypes.float32)])
    with pytest.raises(InvalidArgument, match="Result #3 of node 'c' is out of bounds"):
        heald.tfg.dumps(graph)
    text = heald.tfg.dumps(graph, verify=False)
    assert heald.graphdef.dumps(heald.tfg.loads(text, verify=False)) == heald.graphdef.dumps(graph)


def test_results_of_unknown_ops_have_no_bounds():
    graph = Graph([node("u", "NoSuchOp"), node("n", "Neg", "u:7", T=heald.api.dtypes.float32)])
    assert "NoSuchOp:8" in heald.tfg.dumps(graph)


def test_a_session_runs_the_part_of_a_refused_graph_that_a_step_needs():
    graph = Graph([const("c", 1.0), node("n", "Neg", "c:3", T=heald.api.dtypes.float32)])
    assert heald.Session(graph).run("c") == 1.0


@pytest.mark.parametrize(("size", "shown"), [(-7, "-7"), (-1, "-1"), (-(2**63), "?")])
def test_output_shapes_keep_sizes_below_minus_one(size, shown):
    text = (f'node {{ name: "n" op: "NoOp" attr {{ key: "_output_shapes" value {{ list {{ shape {{ '
            f'dim {{ size: {size} }} dim {{ size: 2 }} }} }} }} }} }}')
    graph = heald.graphdef.loads(text, text=True)
    assert f"_output_shapes = [#tf_type.shape<{shown}x2>]" in heald.tfg.dumps(graph, canonical=True)


def test_declared_shapes_have_no_sizes_below_minus_one():
    for size in (-2, -(2**63)):
        text = (f'node {{ name: "n" op: "Placeholder" attr {{ key: "shape" value {{ shape {{ '
                f'dim {{ size: {size} }} }} }} }} }}')
        with pytest.raises(InvalidArgument, match="attribute 'shape': .* is not the size of a dimension"):
            heald.graphdef.loads(text, text=True)
