"""Effects of plugins' kernels on a step: their errors, their results, their claims."""

from __future__ import annotations

import sys

import heald
import numpy as np
import pytest
from builders.graphs import const, graph, node, placeholder
from heald.errors import InvalidArgument, PluginError, ResourceExhausted, Unimplemented

PLUGIN = """
import numpy as np
from heald.api import OpSpec, ValueInfo, TensorMetadata, hookimpl, errors, info

HEALD_API = (1, 0)

@hookimpl
def heald_ops(registry):
    for name, metadata in (("BadShape", lambda attrs, x: 1 / 0), ("BadInfo", lambda attrs, x: (4,))):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type", "what: string = ''"],
                            metadata=metadata))
    for name in ("Raise", "Count", "Two", "Refuse", "Keep", "BadBind", "BadAttach", "Alias"):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type", "what: string = ''"],
                            metadata=None if name == "Count" else lambda attrs, x: x))
    registry.add(OpSpec("Test>Needed", inputs=["x: T"], outputs=["a: T", "b: T", "c: T"], attrs=["T: type"],
                        metadata=lambda attrs, x: (x, x, x)))

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)

def register(kernels):
    @kernels.kernel("Test>Raise")
    def raising(b):
        def run(x, out):
            raise {"value": ValueError, "memory": MemoryError, "key": KeyError, "not": NotImplementedError,
                   "heald": errors.Unavailable, "interrupt": KeyboardInterrupt}[b.attrs["what"]]("boom")
        return run

    @kernels.kernel("Test>Count", allocates=True)
    def counting(b):
        return {"none": lambda x: None, "three": lambda x: (x, x, x), "scalar": lambda x: 7.0,
                "strided": lambda x: x[..., ::2]}[b.attrs["what"]]

    kernels.kernel("Test>Alias", alias=lambda attrs: {"none": {}, "input": {0: 5}, "negative": {0: -1},
                                                      "output": {7: 0}}[attrs["what"]])(lambda b: None)

    @kernels.kernel("Test>BadBind")
    def bad_bind(b):
        return {}["nothing"]

    @kernels.kernel("Test>BadShape")
    @kernels.kernel("Test>BadInfo")
    def never(b):
        return None

    @kernels.kernel("Test>Refuse")
    def refusing(b):
        return b.decline("never")

    @kernels.kernel("Test>Keep", when=lambda attrs: attrs["no such attribute"], priority=5)
    @kernels.kernel("Test>Two", when=lambda attrs: attrs["what"] != "other")
    def two(b):
        return 3

    @kernels.kernel("Test>Needed")
    def needed(b):
        told = sum(1 << number for number in b.needed)
        def run(x, *outs):
            for number in b.needed:
                outs[number][...] = told
        return run

    @kernels.kernel("Test>Keep")
    def keep(b):
        return Attached()

    @kernels.kernel("Test>BadAttach")
    def bad_attach(b):
        return BadAttached()

class Attached:
    def run(self, x, out):
        out[...] = x * 3
    def attach(self, inputs, outputs):
        (x,), (out,) = inputs, outputs
        return lambda: np.multiply(x, 2, out)

class BadAttached(Attached):
    def attach(self, inputs, outputs):
        return {}["nothing"]
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("plugin") / "test_kernels.py"
    path.write_text(PLUGIN)
    return {"plugins": {"load": [str(path)]}}


def session(config, op, what="", shape=(4,)):
    nodes = [placeholder("x", shape), node("before", "Neg", "x"), node("n", f"Test>{op}", "before", what=what),
             node("after", "Neg", "n"), node("other", "Neg", "before")]
    return heald.Session(graph(*nodes), config)


X = np.float32([1, 2, 3, 4])


@pytest.mark.parametrize(("what", "kind"), [
    ("value", PluginError), ("memory", ResourceExhausted), ("not", PluginError), ("key", PluginError),
])
def test_an_exception_of_a_kernel_is_a_typed_error_with_its_place_and_cause(config, what, kind):
    failing = session(config, "Raise", what)
    for _ in range(2):
        with pytest.raises(kind, match="boom") as caught:
            failing.run("after", {"x": X})
        error = caught.value
        assert (error.node, error.op, error.device) == ("n", "Test>Raise", "CPU:0")
        assert "boom" in str(error.__cause__)
        assert np.array_equal(failing.run("other", {"x": X}), X)


def test_a_typed_error_of_a_kernel_keeps_its_type(config):
    with pytest.raises(heald.errors.Unavailable, match="boom") as caught:
        session(config, "Raise", "heald").run("after", {"x": X})
    assert (caught.value.node, caught.value.__cause__) == ("n", None)


def test_an_interrupt_inside_a_kernel_leaves_the_session_usable(config):
    interrupted = session(config, "Raise", "interrupt")
    with pytest.raises(KeyboardInterrupt):
        interrupted.run("after", {"x": X})
    assert np.array_equal(interrupted.run("other", {"x": X}), X)


@pytest.mark.parametrize("shape", [(4,), (None,), None])
def test_a_kernel_is_told_which_of_its_outputs_have_consumers(config, shape):
    session = heald.Session(graph(
        placeholder("x", shape), node("n", "Test>Needed", "x"), node("before", "Identity", "n:1"),
        node("y", "Neg", "before"), node("lazy", "Test>Count", "x", what="strided"),
        node("m", "Test>Needed", "lazy"), node("z", "AddV2", "m", "m:2"),
    ), config)
    assert session.run("y", {"x": X}).tolist() == [-2] * 4
    assert [result.tolist() for result in session.run(["y", "n"], {"x": X})] == [[-3] * 4, [3] * 4]
    assert session.run("n:2", {"x": X}).tolist() == [4] * 4
    assert [result.tolist() for result in session.run(["n:2", "n:1", "n"], {"x": X})] == [[7] * 4] * 3
    assert session.run("y", {"x": X}).tolist() == [-2] * 4
    assert session.run("z", {"x": X}).tolist() == [10] * 2


def test_a_kernel_that_is_run_before_the_program_is_told_that_all_outputs_are_needed(config):
    session = heald.Session(graph(const("x", X), node("n", "Test>Needed", "x"), node("y", "Neg", "n:1")), config)
    assert session.run("y").tolist() == [-7] * 4


@pytest.mark.parametrize(("what", "got"), [("none", 0), ("three", 3)])
def test_a_kernel_that_returns_the_wrong_number_of_values_is_named(config, what, got):
    with pytest.raises(PluginError, match=f"returned {got} values, expected 1") as caught:
        session(config, "Count", what).run("n", {"x": X})
    assert (caught.value.node, caught.value.op) == ("n", "Test>Count")


def test_an_allocating_kernel_may_return_scalars_and_views(config):
    assert session(config, "Count", "scalar").run("n", {"x": X}) == 7
    assert session(config, "Count", "strided").run("n", {"x": X}).tolist() == [-1, -3]


def test_a_kernel_that_declines_where_nobody_else_serves_is_an_error_with_its_reason(config):
    with pytest.raises(Unimplemented, match="never") as caught:
        session(config, "Refuse").run("n", {"x": X})
    assert caught.value.node == "n"


def test_a_bind_that_returns_nonsense_is_named(config):
    with pytest.raises(PluginError, match=r"test_kernels's kernel for Test>Two returned int"):
        session(config, "Two").run("n", {"x": X})
    with pytest.raises(Unimplemented, match="condition"):
        session(config, "Two", "other").run("n", {"x": X})


@pytest.mark.parametrize("shape", [(4,), (None,)])
@pytest.mark.parametrize(("what", "message"), [
    ("none", "bind of test_kernels's kernel for Test>Alias returned None, but declares no alias= for output 0"),
    ("input", "alias= of test_kernels's kernel for Test>Alias shows input 5 as output 0; the node"),
    ("negative", "shows input -1 as output 0"),
    ("output", "shows input 0 as output 7"),
])
def test_an_alias_that_the_kernel_does_not_declare_rightly_is_the_plugins_fault(config, shape, what, message):
    with pytest.raises(PluginError, match=message) as caught:
        session(config, "Alias", what, shape).run("after", {"x": X})
    assert (caught.value.node, caught.value.plugin) == ("n", "test_kernels")


@pytest.mark.parametrize(("op", "kind", "message"), [
    ("BadBind", PluginError, "bind of test_kernels's kernel for Test>BadBind raised KeyError"),
    ("BadShape", PluginError, "metadata function of Test>BadShape raised ZeroDivisionError"),
    ("BadInfo", PluginError, "metadata function of Test>BadInfo raised AttributeError"),
])
def test_a_plugins_fault_before_the_run_names_it_and_the_node(config, op, kind, message):
    with pytest.raises(kind, match=message) as caught:
        session(config, op).run("n", {"x": X})
    assert caught.value.node == "n"
    assert caught.value.__cause__ is not None


def test_a_kernel_with_attach_is_attached_where_its_buffers_are_fixed(config):
    attached = session(config, "Keep")
    assert np.array_equal(attached.run("after", {"x": X}), X * 2)  # n is a buffer of the frame
    assert np.array_equal(attached.run("n", {"x": X}), -X * 3)  # n is a fresh result


def test_an_exception_of_attach_names_node_and_kernel(config):
    with pytest.raises(PluginError, match="attach of test_kernels's kernel for Test>BadAttach raised Key") as caught:
        session(config, "BadAttach").run("after", {"x": X})
    assert (caught.value.node, caught.value.op) == ("n", "Test>BadAttach")
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_condition_that_raises_makes_its_kernel_no_candidate(config):
    refused = session(config, "Keep").placement()["n"].refused
    why = "its condition on the attributes raised KeyError: 'no such attribute'"
    assert refused == [("CPU test_kernels.Test>Keep", why)]


def test_a_one_file_plugin_adds_a_pass_that_sees_and_changes_the_pruned_graph(tmp_path):
    path = tmp_path / "negate.py"
    path.write_text("""
from heald.api import hookimpl
HEALD_API = (1, 0)
seen = []

def drop_double_negation(graph, _):
    seen.append(sorted(graph.nodes))
    changed = []
    for n in graph.nodes.values():
        source = graph.nodes.get(n.inputs[0].node) if n.op == "Neg" else None
        if source is not None and source.op == "Neg":
            changed.append(n.replace(op="Identity", inputs=[str(source.inputs[0])]))
    return graph.replace(nodes=changed)

@hookimpl
def heald_passes(registry):
    registry.add("double-negation", drop_double_negation)
""")
    nodes = graph(placeholder("x", (4,)), node("a", "Neg", "x"), node("b", "Neg", "a"), const("unused", 1))
    with_pass = heald.Session(nodes, {"plugins": {"load": [str(path)]}})
    prepared = with_pass.prepare("b", ["x"])
    assert [c.op for c in prepared.program.functions["main"].kernels] == ["Identity"]
    assert np.array_equal(with_pass.run("b", {"x": X}), X)
    without = heald.Session(nodes, {"plugins": {"load": [str(path)]}, "passes": {"disable": ["double-negation"]}})
    assert [c.op for c in without.prepare("b", ["x"]).program.functions["main"].kernels] == ["Neg", "Neg"]


FOLDING = """
from heald.api import Node, TensorValue, hookimpl
HEALD_API = (1, 0)
kept = []

def fold(graph, context):
    kept.append(context.kept)
    known = context.infer(graph)
    values = {n.name: known[n.name][0].value for n in graph if n.op == "AddV2" and known[n.name][0].value is not None}
    return graph.replace(nodes=[Node(name, "Const", attrs={"dtype": TensorValue(v).dtype, "value": TensorValue(v)})
                                for name, v in values.items()])

def lose(graph, _):
    return graph.replace(without=["b"])

@hookimpl
def heald_passes(registry):
    registry.add("fold", __name__ + ":fold" if NAMED else fold)
    registry.add("lose", lose, after=["fold"])
"""


@pytest.mark.parametrize("named", [False, True])
def test_a_pass_is_told_what_stays_and_may_have_constants_computed(tmp_path, monkeypatch, named):
    (tmp_path / f"folding{named}.py").write_text(FOLDING.replace("NAMED", str(named)))
    monkeypatch.syspath_prepend(tmp_path)
    nodes = graph(placeholder("x", (2,)), const("c", [1, 2]), node("s", "AddV2", "c", "c", device="EXAMPLE:0",
                                                                   _class=[b"loc:@gone"]), node("b", "AddV2", "x", "s"))
    config = {"plugins": {"load": [f"folding{named}"], "block": ["simplify"]}, "passes": {"disable": ["lose"]}}
    session = heald.Session(nodes, config)
    (first, before), (name, after) = session.graphs_by_pass(["b"], ["x"])
    assert (first, before["s"].op, name, after["s"].op) == ("", "AddV2", "fold", "Const")
    assert after["s"].attrs["value"].array().tolist() == [2, 4]
    assert session.run("b", {"x": [1, 1]}).tolist() == [3, 5]
    assert sys.modules[f"folding{named}"].kept[-1] == {"x", "b"}


ASKING = """
from heald.api import hookimpl
HEALD_API = (1, 0)
seen = {}

def ask(graph, context):
    seen.update({n.name: (n.op, context.resolve(n), context.infer(graph).get(n.name)) for n in graph})
    return graph

@hookimpl
def heald_passes(registry):
    registry.add("ask", ask)
"""


@pytest.fixture
def asking(tmp_path, monkeypatch):
    (tmp_path / "asking.py").write_text(ASKING)
    monkeypatch.syspath_prepend(tmp_path)
    yield {"plugins": {"load": ["asking"], "block": ["simplify"]}}
    sys.modules.pop("asking")


def test_a_pass_is_told_of_ops_attributes_and_shapes(asking):
    nodes = graph(placeholder("x", (None, 3)), const("w", np.ones((3, 5))), node("m", "MatMul", "x", "w"),
                  node("short", "MatMul", "x"), node("odd", "NoSuchOp", "m"), node("y", "Neg", "m"))
    heald.Session(nodes, asking).run("y", {"x": [[1, 2, 3]]})
    infos_by_name = sys.modules["asking"].seen
    (_, entry, (product,)) = infos_by_name["m"]
    assert (entry.op.name, entry.attrs["transpose_a"], product.shape) == ("MatMul", False, (None, 5))
    assert infos_by_name.keys() == {"x", "w", "m", "y"}


def test_a_pass_is_told_the_elements_of_what_needs_constants_alone(asking):
    nodes = graph(placeholder("x", (2,)), const("c", [1, 4]), node("r", "Sqrt", "c"), node("s", "AddV2", "r", "c"),
                  const("dims", [1 << 20], np.int32), const("one", 1), node("f", "Fill", "dims", "one",
                                                                            index_type=heald.api.dtypes.int32),
                  node("y", "AddV2", "x", "s"))
    heald.Session(nodes, asking).run(["y", "f"], {"x": [0, 0]})
    result = {name: info and info[0].value for name, (_, _, info) in sys.modules["asking"].seen.items()}
    assert (result["s"].tolist(), result["x"], result["y"], result["f"]) == ([2, 6], None, None, None)
    heald.Session(nodes, asking).run("y", {"x": [0, 0], "c": [9, 9]})
    assert sys.modules["asking"].seen["s"][2][0].value is None


BOUND = """
from heald.api import OpSpec, ValueInfo, errors, hookimpl
HEALD_API = (1, 0)
bound = []

@hookimpl
def heald_ops(registry):
    for name, values in (("Twice", ()), ("Told", ["x"])):
        registry.add(OpSpec(f"Test>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type", "needs: bool"],
                            metadata=lambda attrs, x: ValueInfo(x.meta), values=values))

@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", lambda kernels: kernels.kernel("Test>Told")(kernels.kernel("Test>Twice")(twice)))

def twice(b):
    bound.append(b.inputs[0].is_known)
    if b.attrs["needs"] and not b.inputs[0].is_known:
        raise errors.Unimplemented("what is not known before the run")
    given = b.inputs[0].value if b.attrs["needs"] else None

    def run(x, out):
        out[...] = 2 * (x if given is None else given)
    return run
"""


@pytest.mark.parametrize("needs", [False, True])
def test_constants_alike_are_computed_by_one_bound_kernel_unless_it_needs_them(asking, tmp_path, needs):
    (tmp_path / "binding.py").write_text(BOUND)
    asking["plugins"]["load"].append("binding")
    values = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
    constants = [const(name, value) for name, value in values.items()]
    same = node("a2", "Test>Twice", "a", needs=needs)
    doubled = [same, *(same.replace(name=f"{name}2", inputs=[name]) for name in ("b", "c"))]
    nodes = graph(placeholder("x", (2,)), *constants, *doubled, node("s", "AddN", "x", "a2", "b2", "c2", N=4))
    assert heald.Session(nodes, asking).run("s", {"x": [1, 1]}).tolist() == [19, 25]
    infos_by_name = sys.modules["asking"].seen
    assert {name: infos_by_name[f"{name}2"][2][0].value.tolist() for name in values} == {
        name: [2 * number for number in value] for name, value in values.items()}
    bound = sys.modules.pop("binding").bound
    assert bound.count(False) == 1
    assert (len(bound) > 4) is needs  # when the program is linked each node is bound


def test_bind_is_told_what_the_metadata_function_reads_of_constants_too(asking, tmp_path):
    (tmp_path / "binding.py").write_text(BOUND)
    asking["plugins"]["load"].append("binding")
    nodes = graph(placeholder("x", (2,)), const("a", [1, 2]), node("b", "Test>Told", "a", needs=False),
                  node("s", "AddV2", "x", "b"))
    assert heald.Session(nodes, asking).run("s", {"x": [1, 1]}).tolist() == [3, 5]
    assert all(sys.modules.pop("binding").bound)


def test_a_pass_knows_no_more_than_the_type_of_what_does_not_fit(asking):
    nodes = graph(placeholder("x", (4, 3)), const("w", np.ones((2, 5))), node("m", "MatMul", "x", "w"))
    with pytest.raises(InvalidArgument):
        heald.Session(nodes, asking).run("m", {"x": np.ones((4, 3), np.float32)})
    assert sys.modules["asking"].seen["m"][2][0].shape is None


def test_a_tensor_that_is_fed_in_the_midst_of_a_graph_is_a_placeholder_for_passes(asking):
    nodes = graph(placeholder("x", (None, 3)), node("a", "Neg", "x"), node("b", "Neg", "a"), node("y", "Neg", "b"))
    session = heald.Session(nodes, asking)
    assert session.run(["y", "b"], {"b": [1.0, 2.0]})[0].tolist() == [-1, -2]
    infos_by_name = sys.modules["asking"].seen
    op, _, infos = infos_by_name["b"]
    assert (infos_by_name.keys(), op, infos[0].shape) == ({"b", "y"}, "Placeholder", None)


RELU = """
from heald.api import hookimpl
HEALD_API = (1, 0)

def change(graph, _):
    return graph.replace(nodes=[n.replace(op="OP", device="DEVICE") for n in graph if n.op == "Relu"])

@hookimpl
def heald_passes(registry):
    registry.add("change", change)
"""


@pytest.mark.parametrize(("op", "is_asked_for", "device", "ran"), [
    ("Neg", "EXAMPLE:0", "EXAMPLE:0", -1), ("Neg", "CPU:0", "CPU:0", -1), ("Neg", "", "CPU:0", -1),
    ("Rsqrt", "EXAMPLE:0", "EXAMPLE:0", 1),  # no kernel there
])
def test_nodes_of_a_pass_run_only_where_it_asks_for_them(tmp_path, op, is_asked_for, device, ran):
    path = tmp_path / f"{tmp_path.name}.py"  # a name that no module has yet
    path.write_text(RELU.replace("OP", op).replace("DEVICE", is_asked_for))
    config = {"plugins": {"load": [str(path)], "block": ["simplify"]}, "placement": {"fallback": "error"}}
    nodes = graph(placeholder("x", (1,)), node("y", "Relu", "x", device="EXAMPLE:0"), node("z", "Abs", "x"))
    session = heald.Session(nodes, config)
    assert session.run("y", {"x": [1]}) == ran
    assert session.placement()["y"].device == "EXAMPLE:0"
    prepared = session.prepare("y", ["x"])
    assert prepared.program.requires == (device,)
    why = "pass 'change': Rsqrt 'y': EXAMPLE:0: no kernel for Rsqrt"
    assert prepared.skipped_passes == (why if op == "Rsqrt" else "")


BROADCASTING = """
import numpy as np
from heald.api import constant, hookimpl
HEALD_API = (1, 0)

def change(graph, _):
    return graph.replace(nodes=[constant("c", np.float32([2])), graph["y"].replace(op="Mul", inputs=["x", "c"])])

@hookimpl
def heald_passes(registry):
    registry.add("change", change)
"""


def test_a_pass_is_left_out_when_the_kernel_of_its_node_declines(tmp_path):
    (tmp_path / "broadcasting.py").write_text(BROADCASTING)
    config = {"plugins": {"load": [str(tmp_path / "broadcasting.py")], "block": ["simplify"]}}
    session = heald.Session(graph(placeholder("x", (None,)), node("y", "Relu", "x", device="EXAMPLE:0")), config)
    prepared = session.prepare("y", ["x"])
    assert session.run("y", {"x": [1]}) == 2
    assert prepared.skipped_passes == ""
    assert session.run("y", {"x": [-1, 1]}).tolist() == [0, 1]
    why = "Mul 'y': EXAMPLE:0 example_device.Mul: shapes differ; broadcasting is not implemented"
    assert prepared.skipped_passes == f"pass 'change': {why}"


SEVERAL = """
from heald.api import hookimpl
HEALD_API = (1, 0)
OPS = {"a": ("Relu", "Rsqrt"), "b": ("Relu", "Neg"), "c": ("Neg", "Rsqrt")}

@hookimpl
def heald_passes(registry):
    for name, (before, after) in OPS.items():
        registry.add(name, lambda graph, _, before=before, after=after: graph.replace(
            nodes=[n.replace(op=after) for n in graph if n.op == before]))
"""


def test_passes_are_left_out_only_if_their_nodes_cannot_run(tmp_path):
    (tmp_path / "several.py").write_text(SEVERAL)
    config = {"plugins": {"load": [str(tmp_path / "several.py")], "block": ["simplify"]},
              "placement": {"fallback": "error"}}
    session = heald.Session(graph(placeholder("x", (1,)), node("y", "Relu", "x", device="EXAMPLE:0")), config)
    assert session.run("y", {"x": [1]}) == -1
    why = "Rsqrt 'y': EXAMPLE:0: no kernel for Rsqrt"
    assert session.prepare("y", ["x"]).skipped_passes == f"pass 'a': {why}; pass 'c': {why}"


def test_a_pass_that_loses_what_is_fetched_is_named(tmp_path):
    path = tmp_path / "losing.py"
    path.write_text(FOLDING.replace("NAMED", "False"))
    session = heald.Session(graph(placeholder("x", (2,)), node("b", "Neg", "x")), {"plugins": {"load": [str(path)]}})
    with pytest.raises(PluginError, match="pass 'lose' of plugin losing lost the node 'b'") as caught:
        session.run("b", {"x": [1, 1]})
    assert "context.kept" in caught.value.hint


def test_an_allocator_of_a_plugin_is_used_by_config_alone(tmp_path):
    path = tmp_path / "small.py"
    path.write_text("""
from heald.api import PlainAllocator, hookimpl
HEALD_API = (1, 0)

class Small(PlainAllocator):
    def allocate(self, nbytes, alignment=64):
        if nbytes > 1000:
            from heald.api import errors
            raise errors.ResourceExhausted(f"{nbytes} bytes are too many")
        return super().allocate(nbytes, alignment)

@hookimpl
def heald_allocators(registry):
    registry.add("small", Small)
""")
    nodes = graph(placeholder("x", (None,)), node("a", "Neg", "x"), node("b", "Neg", "a"))
    limited = heald.Session(nodes, {"plugins": {"load": [str(path)]}, "allocator": {"name": "small"}})
    assert np.array_equal(limited.run("b", {"x": X}), X)
    with pytest.raises(ResourceExhausted, match="too many"):
        limited.run("b", {"x": np.zeros(1000, np.float32)})
    with pytest.raises(heald.errors.NotFound, match="no allocator is called 'none'"):
        heald.Session(nodes, {"allocator": {"name": "none"}})
