"""Host programs as text: text, program and BEF hold the same, and modules that are no programs are typed errors."""

from __future__ import annotations

from pathlib import Path

import heald
import numpy as np
import pytest
from heald.errors import InvalidArgument, NotFound, Unimplemented
from heald.runtime.program.compiled_model import CompiledModel, Entry
from heald.runtime.program.host_program import Call, ProgramDef, ProgramFunction
from heald.runtime.program.typed_attribute import typed_number
from heald.runtime.values import dtypes
from heald_mlir import MalformedText
from hypothesis import example, given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]

BRANCHES = """
func.func @twice(%a: i32) -> i32 {
  %0 = "tfrt.add.i32"(%a, %a) : (i32, i32) -> i32
  "tfrt.return"(%0) : (i32) -> ()
}
func.func @main() -> i32 {
  %yes = "tfrt.constant.i1"() {value = true} : () -> i1
  %x = "tfrt.constant.i32"() {value = 21 : i32} : () -> i32
  %r = "tfrt.if"(%yes, %x) ({
  ^bb0(%p: i32):
    %d = "tfrt.call"(%p) {callee = @twice, bef.nonstrict} : (i32) -> i32 loc("doubled"("f.py":3:4))
    "tfrt.return"(%d) : (i32) -> ()
  }, {
  ^bb0(%p: i32):
    "tfrt.return"(%p) : (i32) -> ()
  }) : (i1, i32) -> i32
  "tfrt.return"(%r) : (i32) -> ()
}
"""


def through_bef(program):
    return heald.bef.loads(heald.bef.dumps(program)).program


def test_a_program_runs_and_regions_are_functions_before_their_function():
    program = heald.mlir.loads(BRANCHES)
    assert [*program.functions] == ["twice", "%1", "%2", "main"]
    assert [result.get() for result in program.run("main")] == [42]


def test_places_names_and_marks_of_calls_survive():
    program = heald.mlir.loads(heald.mlir.dumps(heald.mlir.loads(BRANCHES), locations=True))
    call = program.functions["%1"].kernels[0]
    assert (call.node, call.location, call.nonstrict, call.functions) == (
        "doubled", heald.errors.Location("f.py", 3, 4), True, ("twice",))
    assert program.functions["main"].kernels[0].location == heald.errors.Location("-", 7, 10)


ATTRIBUTES = st.deferred(lambda: st.one_of(
    st.booleans(), st.text(max_size=5), st.just(()), st.none(),
    st.tuples(st.integers(0, 9), st.none()),
    st.lists(st.floats(width=16, allow_nan=False, allow_infinity=False), min_size=1, max_size=3).map(tuple),
    *(st.integers(least, largest).map(lambda n, name=name: typed_number(n, dtypes.named(name)))
      for name, least, largest in (
        ("int8", -128, 127), ("uint8", 0, 255), ("int32", -2**31, 2**31 - 1), ("uint64", 0, 2**64 - 1),
        ("int64", -2**63, 2**63 - 1))),
    *(st.floats(width=width, allow_nan=False).map(lambda n, name=name: typed_number(n, dtypes.named(name)))
      for name, width in (("float16", 16), ("float32", 32))),
    st.sampled_from([dtypes.int32, dtypes.bool_, dtypes.string, dtypes.named("qint8")]),
    st.sampled_from(["int32", "float32", "bool", "complex64", "uint8", "float16"]).flatmap(
        lambda name: st.lists(st.integers(0, 1), max_size=4).map(lambda values: np.array(values, name))),
    st.lists(ATTRIBUTES, min_size=1, max_size=3).map(tuple)))


@st.composite
def programs(draw, functions=3):
    """Functions of any calls, regions among them, in the order of the walk."""
    program_functions: dict[str, ProgramFunction] = {}
    named: list[str] = []

    def body(name, depth):
        types = draw(st.lists(st.sampled_from(["i32", "!t.x<a, 3>", "i1"]), max_size=2))
        names = tuple(f"arg{i}" for i in range(len(types)))
        calls = []
        for _ in range(draw(st.integers(0, 3))):
            regions = []
            symbols = draw(st.lists(st.sampled_from(named), max_size=1)) if named else []
            if depth < 2 and draw(st.integers(0, 3)) == 0:
                regions = [body(None, depth + 1)]
            args = draw(st.lists(st.integers(0, len(types) - 1), max_size=2)) if types else []
            results = draw(st.lists(st.sampled_from(["i32", "f64", "!tfrt.chain"]), max_size=2))
            given_results = tuple(range(len(types), len(types) + len(results)))
            types += results
            attrs = draw(st.dictionaries(st.sampled_from(["a", "b.c", "odd name", "value"]), ATTRIBUTES, max_size=2))
            calls.append(Call(draw(st.sampled_from(["k.a", "k.b"])), tuple(args), given_results, attrs,
                              functions=(*symbols, *regions), nonstrict=draw(st.booleans())))
        returned = tuple(draw(st.lists(st.integers(0, len(types) - 1), max_size=2))) if types else ()
        if name is None:
            name = f"%{len(program_functions)}"
        program_functions[name] = ProgramFunction(name, names, tuple(types), tuple(calls), returned)
        return name

    for index in range(draw(st.integers(1, functions))):
        named.append(body(f"f{index}", 0))
    return ProgramDef(program_functions)


HUGE = ProgramDef({"f": ProgramFunction("f", (), (), (Call("k.a", (), (), {"a": (None, 10**18), "b": (None, 9)}),),
                                        ())})


@given(programs())
@example(HUGE)
def test_text_program_and_bef_hold_the_same(program):
    text = heald.mlir.dumps(program)
    read = heald.mlir.loads(text)
    assert heald.mlir.dumps(read) == text
    assert heald.mlir.dumps(through_bef(read)) == text
    assert heald.mlir.dumps(heald.mlir.loads(heald.mlir.dumps(read, generic=True))) == text
    assert [*read.functions] == [*program.functions]
    for name, function in program.functions.items():
        read_function = read.functions[name]
        assert read_function.register_types == function.register_types
        assert [(c.code, c.args, c.results, c.functions, c.nonstrict) for c in read_function.kernels] == [
            (c.code, c.args, c.results, c.functions, c.nonstrict) for c in function.kernels]


def test_a_compiled_graph_is_read_as_text_and_runs_from_it():
    from heald.graphs.session import compile_model

    model = compile_model(ROOT / "examples/digits/frozen.pb", inputs={"image": [(2, 8, 8, 1)]})
    with pytest.raises(Unimplemented, match=r"heald.mlir.dumps\(model.program\)"):
        heald.mlir.dumps(model)
    text = heald.mlir.dumps(model.program, locations=True)
    program = heald.mlir.loads(text)
    assert heald.mlir.dumps(program, locations=True) == text
    assert program.functions["main"].kernels == model.program.functions["main"].kernels
    images = np.ones((2, 8, 8, 1), np.float32)
    expected = heald.HostProgram(*model.program).run("main", images)
    for ours, theirs in zip(program.run("main", images), expected, strict=True):
        np.testing.assert_array_equal(ours.get(), theirs.get())


@pytest.mark.parametrize("shape", ["1099511627777", "1000000x1000000", "4000x5000x6000x0x7"])
def test_equal_elements_take_the_memory_of_one(shape):
    text = f'module attributes {{heald.constants = [dense<7> : tensor<{shape}xi32>]}} {{\n}}\n'
    program = heald.mlir.loads(text)
    assert program.constants[0].shape == tuple(map(int, shape.split("x")))
    assert f"dense<7> : tensor<{shape}xi32>" in heald.mlir.dumps(program) or not program.constants[0].size
    assert through_bef(program).constants[0].shape == program.constants[0].shape


@pytest.mark.parametrize("shape", ["9223372036854775807", "x".join(["2"] * 70), "4294967296x4294967296"])
def test_more_elements_than_an_array_has_are_an_error(shape):
    with pytest.raises(InvalidArgument, match="dimension|constants"):
        heald.mlir.loads(f'module attributes {{heald.constants = [dense<7> : tensor<{shape}xi32>]}} {{\n}}\n')


def test_streams_follow_the_threshold_and_are_kept():
    def streams(attributes):
        calls = [f'  %{i} = "tfrt.add.i32"(%a, %a) {{_tfrt_cost = 5 : i64}} : (i32, i32) -> i32' for i in range(3)]
        head = f"func.func @f(%a: i32) attributes {{{attributes}}} {{"
        program = heald.mlir.loads("\n".join([head, *calls, '"tfrt.return"() : () -> ()', "}"]))
        assert heald.mlir.loads(heald.mlir.dumps(program)).functions["f"].streams == program.functions["f"].streams
        return program.functions["f"].streams

    assert len(set(streams("tfrt.cost_threshold = 10 : i64"))) == 1
    assert len(set(streams("tfrt.cost_threshold = 1 : i64"))) == 3


def test_native_and_synchronous_functions_survive():
    text = ('func.func private @n(i32) -> i32 attributes {tfrt.native}\n'
            'func.func @s(%a: i32) -> i32 attributes {tfrt.sync} {\n'
            '  %0 = "tfrt.call"(%a) {callee = @n} : (i32) -> i32\n  "tfrt.return"(%0) : (i32) -> ()\n}')
    program = heald.mlir.loads(text)
    assert program.functions["n"].kernels[0].code == "tfrt.native.n"
    assert program.functions["s"].is_sync
    written = heald.mlir.dumps(through_bef(program))
    assert "func.func private @n(i32) -> i32 attributes {tfrt.native}" in written
    assert "attributes {tfrt.sync}" in written


ENCODES = "BEF files cannot encode the 'a' attribute"
RETURNS = '"tfrt.return"() : () -> ()'


@pytest.mark.parametrize(("text", "line", "message"), [
    ('func.func @f() {\n"k.k"() : () -> ()}', 1, "all functions need to have a tfrt.return"),
    ("func.func @f()", 1, "external functions are not allowed"),
    (f'func.func @f() {{\n"k.k"() {{a = @g}} : () -> ()\n{RETURNS}}}', 2, "function @g not defined"),
    (f'func.func @f() {{\n"k.k"() {{a = {{}}}} : () -> ()\n{RETURNS}}}', 2, ENCODES),
    (f'func.func @f() {{\n"k.k"() {{a}} : () -> ()\n{RETURNS}}}', 2, ENCODES),
    ('func.func @f(%a: i32) -> i32 attributes {tfrt.sync} {\n"tfrt.return"(%a) : (i32) -> ()}', 2,
     "return value 0 is an argument in a sync function"),
    ('func.func @f() -> (i32, i32) attributes {tfrt.sync} {\n%a = "k.k"() : () -> i32\n'
     '"tfrt.return"(%a, %a) : (i32, i32) -> ()}', 3, "return value 1 is duplicated in a sync function"),
    ('func.func @f() -> i32 {\n"tfrt.return"() : () -> ()}', 2, "has 0 operands, but enclosing function returns 1"),
    ('func.func @f(%a: i64) -> i32 {\n"tfrt.return"(%a) : (i64) -> ()}', 2,
     "type of return operand 0 ('i64') doesn't match function result type ('i32')"),
    (f'func.func @f(%a: i64) {{\n"k.k"() ({{ "k.u"(%a) : (i64) -> () {RETURNS} }}) : () -> ()\n{RETURNS}}}', 2,
     "'k.u' op using value defined outside the region"),
    (f'func.func @f() {{\n"k.u"(%b) : (i64) -> ()\n%b = "k.k"() : () -> i64\n{RETURNS}}}', 2,
     "operand #0 does not dominate this use"),
    (f"func.func @f() {{ {RETURNS} }}\nfunc.func @f() {{ {RETURNS} }}", 2, "redefinition of symbol named 'f'"),
    (f'func.func @"%1"() {{ {RETURNS} }}\nfunc.func @f() {{\n"k.k"() ({{ {RETURNS} }}) : () -> ()\n{RETURNS}}}', 1,
     "function '%1' has the name of a region"),
    ('"k.k"() : () -> ()', 1, "'k.k' op is not within a function"),
])
def test_a_module_that_is_no_program_is_an_error_at_its_operation(text, line, message):
    with pytest.raises(MalformedText) as raised:
        heald.mlir.loads(text, file="p.mlir")
    assert message in raised.value.message
    assert raised.value.location[:2] == ("p.mlir", line)


def test_every_function_has_its_own_error():
    with pytest.raises(MalformedText) as raised:
        heald.mlir.loads("func.func @f()\nfunc.func @g()")
    assert [error.location.line for error in (raised.value, *raised.value.others)] == [1, 2]


def test_a_value_that_text_lacks_is_refused_with_the_way_out():
    call = Call("k.k", (), (), {"a": b"bytes"})
    program = ProgramDef({"f": ProgramFunction("f", (), (), (call,), ())})
    with pytest.raises(Unimplemented, match=r"attribute 'a' of type bytes.*\.bef file"):
        heald.mlir.dumps(program)
    with pytest.raises(InvalidArgument, match="register type 'two words' is no type"):
        heald.mlir.dumps(ProgramDef({"f": ProgramFunction("f", ("a",), ("two words",), (), ())}))
    with pytest.raises(Unimplemented, match="signatures"):
        heald.mlir.dumps(CompiledModel(ProgramDef({}), (Entry("s", "f", (), ()),)))
    with pytest.raises(InvalidArgument, match="got list"):
        heald.mlir.dumps([])


def test_files_are_chosen_by_their_suffix_or_by_the_format(tmp_path):
    path = tmp_path / "p.mlir"
    heald.mlir.dump(heald.mlir.loads(BRANCHES), path)
    other = path.with_suffix(".txt")
    other.write_text(f"// a comment\n{path.read_text()}")
    for program in (heald.HostProgram.load(path), heald.HostProgram.load(other, format="mlir")):
        assert [result.get() for result in program.run("main")] == [42]
    with pytest.raises(NotFound):
        heald.mlir.load(tmp_path / "none.mlir")
    with pytest.raises(Unimplemented, match="text of a graph"):
        heald.mlir.loads('"tfg.graph"() ({}) : () -> ()')


def test_branches_and_loops_of_a_graph_keep_their_functions_in_text():
    from builders.control_flow import branch, function, loop, program
    from builders.graphs import const, node, placeholder

    graph = program(
        [placeholder("p", (), dtypes.bool_), placeholder("x", ()), const("limit", 100.0),
         branch("chosen", "p", "doubled", "squared", "x"), loop("grown", "below", "step", "chosen", "limit")],
        function("doubled", "v", [node("two", "AddV2", "v", "v")], {"y": "two:z:0"}),
        function("squared", "v", [node("square", "Square", "v")], {"y": "square:y:0"}),
        function("below", "v limit", [node("is_less", "Less", "v", "limit")], {"go": "is_less:z:0"}, "go:bool_"),
        function("step", "v limit", [node("more", "AddV2", "v", "v"), node("same", "Identity", "limit")],
                 {"v_next": "more:z:0", "limit_next": "same:output:0"}))
    with heald.Session(graph) as session:
        lowered = session.prepare(["chosen", "grown"], ["p", "x"]).program
        expected = [session.run(["chosen", "grown"], {"p": p, "x": 3.0}) for p in (True, False)]
    read = heald.mlir.loads(heald.mlir.dumps(lowered))
    for name, function_read in read.functions.items():
        assert [call.functions for call in function_read.kernels] == [
            call.functions for call in lowered.functions[name].kernels]
    for p, answers in zip((True, False), expected, strict=True):
        assert [float(value.get()) for value in read.run("main", p, np.float32(3))] == [float(a) for a in answers]
