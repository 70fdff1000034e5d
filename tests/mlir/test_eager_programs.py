"""Programs of eager ops: text, BEF and text again hold the same, and handlers and cancellation of a host's runtime."""

from __future__ import annotations

from pathlib import Path

import heald
import numpy as np
import pytest
from heald import errors
from heald.api import dtypes
from heald.runtime.program import ELEMENT_TYPES
from heald_eager import runtime_of

PROGRAMS = sorted((Path(__file__).parents[1] / "programs" / "corert").glob("*.mlir"))
RUNNING = [path for path in PROGRAMS if "tfrt_opt" not in path.read_text("utf-8")]
SUM = """
func.func @sum(%x: !corert.tensorhandle) -> !corert.tensorhandle {
  %null = "corert.create_null_op_handler"() : () -> !corert.ophandler
  %cpu = "corert.create_cpu_op_handler"(%null) : (!corert.ophandler) -> !corert.ophandler
  %y = corert.executeop(%cpu) "AddV2"(%x, %x) : 1
  tfrt.return %y : !corert.tensorhandle
}
"""


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_text_and_bef_hold_the_same(path):
    program = heald.mlir.loads(path.read_text("utf-8"))
    text = heald.mlir.dumps(program)
    decoded = heald.bef.loads(heald.bef.dumps(program)).program
    assert heald.mlir.dumps(decoded) == text
    assert heald.mlir.dumps(heald.mlir.loads(text)) == text


def test_most_programs_are_in_the_round_trip():
    assert len(RUNNING) >= 14


def test_handles_of_the_default_runtime_are_arguments_of_programs():
    (result,) = heald.mlir.loads(SUM).run("sum", heald.TensorHandle([1.0, 2.5]))
    assert result.get().numpy().tolist() == [2.0, 5.0]


def test_an_error_of_an_op_names_the_place_in_the_program():
    host = heald.HostContext()
    program = heald.mlir.loads(SUM.replace("AddV2", "MatMul"))
    (result,) = program.run("sum", heald.TensorHandle([1.0]), request=heald.RequestContext(host))
    assert isinstance(result.error, errors.InvalidArgument)
    assert (result.error.op, result.error.location.line) == ("MatMul", 5)


@pytest.mark.parametrize("call", ["corert.create_dense_tensor.i32 {shape = [1099511627776], value = [1 : i32]}",
                                  'corert.const_string_tensor {shape = [1048576, 1048576], value = ["a"]}',
                                  "corert.create_dense_tensor.f64 {shape = [4294967296, 4294967296], value = [1.0]}"])
def test_one_element_that_fills_a_large_tensor_takes_no_memory_before_the_budget_is_asked(call):
    program = heald.mlir.loads(f"func.func @main() -> !corert.tensorhandle {{\n  %a = {call}\n"
                               "  tfrt.return %a : !corert.tensorhandle\n}\n")
    host = heald.HostContext(config={"limits": {"memory": "16MiB"}})
    [result] = program.run("main", request=heald.RequestContext(host))
    assert isinstance(result.error, errors.ResourceExhausted)
    assert "of the limit of" in str(result.error)


def test_a_cancelled_core_runtime_gives_errors_until_its_restart():
    host = heald.HostContext()
    core = runtime_of(host).core
    x, program = core.handle([1.0]), heald.mlir.loads(SUM)

    def run():
        return program.run("sum", x, request=heald.RequestContext(host))[0]

    core.cancel(errors.Cancelled("the user has cancelled"))
    assert isinstance(run().error, errors.Cancelled)
    core.restart()
    assert run().get().numpy().tolist() == [2.0]


def test_one_host_has_one_runtime_and_another_host_has_another():
    first, second = heald.HostContext(), heald.HostContext()
    assert runtime_of(first) is runtime_of(first)
    runtime_of(first).register("mine", runtime_of(first).null_handler())
    with pytest.raises(errors.NotFound, match="op_handler not found: mine"):
        runtime_of(second).handler_of("mine")
    with pytest.raises(errors.NotFound, match="did you mean mine"):
        runtime_of(first).handler_of("mines")


TYPES = """
func.func @types(%chain: !tfrt.chain) -> !tfrt.chain {{
  %attrs = "corert.create_op_attrs"() : () -> !corert.opattrs
  %end = "corert.op_attrs_set.dtype"(%attrs, %chain) {{key = "T", value = {text}}}
    : (!corert.opattrs, !tfrt.chain) -> !tfrt.chain
  tfrt.return %end : !tfrt.chain
}}
"""


@pytest.mark.parametrize("dialect", ["", "tf_type", "corert"])
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=lambda dtype: dtype.name)
def test_type_attributes_survive_bef(dialect, dtype):
    text = f"!{dialect}.{dtype.name}" if dialect else ELEMENT_TYPES.get(dtype.name)
    if text is None:
        return  # MLIR's builtin dialect has no such type
    program = heald.mlir.loads(TYPES.format(text=text))
    decoded = heald.bef.loads(heald.bef.dumps(program)).program
    values = [call.attrs["value"] for function in decoded.functions.values() for call in function.kernels
              if "value" in call.attrs]
    assert values == [dtype]
    assert heald.mlir.dumps(decoded) == heald.mlir.dumps(program)


@pytest.mark.parametrize("text", ["!corert.nothing", "!corert.opattrs", "!corert.", "!other.quint8"])
def test_types_that_are_no_element_types_are_no_attributes_of_programs(text):
    with pytest.raises(errors.InvalidArgument):
        heald.mlir.loads(TYPES.format(text=text))


def test_an_op_of_a_program_takes_types_from_a_bef_file(tmp_path):
    cast = SUM.replace('"AddV2"(%x, %x)', '"Cast"(%x) {DstT = !corert.int32, SrcT = f64}')
    (tmp_path / "cast.bef").write_bytes(heald.bef.dumps(heald.mlir.loads(cast)))
    (result,) = heald.HostProgram.load(tmp_path / "cast.bef").run("sum", heald.TensorHandle(np.float64([1.5, 2.5])))
    assert result.get().numpy().tolist() == [1, 2]
