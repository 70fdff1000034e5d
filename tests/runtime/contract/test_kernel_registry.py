"""Kernels are ranked by config, priority and id; packs are imported when their device type is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
from harness.run_op import REGISTRIES
from heald.api import OpSpec
from heald.errors import PluginError, Unavailable
from heald.runtime.contract.device import DeviceType, DeviceTypeRegistry
from heald.runtime.contract.hookspecs import Contribution, DeviceRegistrar, OpRegistrar, PassRegistrar
from heald.runtime.contract.kernel import KernelPack, KernelRegistry, Kernels, check_bound
from heald.runtime.discovery.plugin_record import PluginRecord
from heald.runtime.values import dtypes

FLOAT, INT = {"T": dtypes.float32}, {"T": dtypes.int32}

pytestmark = pytest.mark.filterwarnings("ignore::heald.errors.HealdWarning")  # as in test_discovery


def registry(override: dict[str, str] | None = None, *, owner: str = "dev") -> KernelRegistry:
    types = DeviceTypeRegistry()
    types.add(DeviceType("TOY", "nowhere:scan", None, 0, owner))
    return KernelRegistry(types, override, REGISTRIES.ops)


def bring(to: KernelRegistry, plugin: str, *, priority: int = 0, is_of_device_plugin: bool = False, **ops: Any) -> None:
    """A pack with these ops; a value may be the arguments of `kernel`."""

    def register(kernels: Kernels) -> None:
        for op, options in ops.items():
            kernels.kernel(op, **options)(lambda _: None)

    to.add_pack(KernelPack("TOY", register, priority, plugin, is_of_device_plugin))


def order(of: KernelRegistry, op: str) -> list[str]:
    return [kernel.pack for kernel in of.candidates(op, "TOY")]


def test_priority_of_pack_and_kernel_add_up_and_ties_go_to_the_lower_id() -> None:
    kernels = registry()
    bring(kernels, "c", Add={}, Mul={"priority": 1})
    bring(kernels, "a", Add={})
    bring(kernels, "b", priority=1, Add={}, Mul={})
    assert order(kernels, "Add") == ["b", "a", "c"]
    assert order(kernels, "Mul") == ["b", "c"]
    assert order(kernels, "Sub") == []


@pytest.mark.parametrize("later_brings", [(), ("fusion",), ("pattern",), ("fusion", "pattern")])
def test_a_family_that_comes_later_keeps_the_fusions_and_patterns_of_its_pack(later_brings: tuple[str, ...]) -> None:
    def bring_both(kernels: Kernels, name: str, kinds: tuple[str, ...]) -> None:
        if "fusion" in kinds:
            kernels.fusion(f"{name}Fusion", ops=["Mul"], priority=int(name == "Late"))(lambda _: None)
        if "pattern" in kinds:
            kernels.pattern(f"{name}Pattern", ends=["Mul"], find=lambda *_: None)(lambda _: None)

    def register_family(kernels: Kernels) -> None:
        kernels.kernel("Mul")(lambda _: None)
        bring_both(kernels, "Late", later_brings)

    def register(kernels: Kernels) -> None:
        bring_both(kernels, "Early", ("fusion", "pattern"))
        kernels.later(["Mul"], register_family)

    kernels = registry()
    kernels.add_pack(KernelPack("TOY", register, 0, "a"))
    assert [fusion.kernel.op for fusion in kernels.fusions("TOY", "a")] == ["EarlyFusion"]
    assert order(kernels, "Mul") == ["a"]
    late = ["LateFusion"] if "fusion" in later_brings else []
    assert [fusion.kernel.op for fusion in kernels.fusions("TOY", "a")] == [*late, "EarlyFusion"]
    late = ["LatePattern"] if "pattern" in later_brings else []
    assert [pattern.kernel.op for pattern in kernels.patterns("TOY", "a")] == ["EarlyPattern", *late]
    kernels.reload("TOY")
    assert [fusion.kernel.op for fusion in kernels.fusions("TOY", "a")] == ["EarlyFusion"]


def test_config_puts_the_named_pack_first_and_settles_the_conflict() -> None:
    kernels = registry({"Add": "c"})
    bring(kernels, "a", priority=9, Add={}, Mul={})
    bring(kernels, "c", priority=9, Add={}, Mul={})
    assert order(kernels, "Add") == ["c", "a"]
    assert order(kernels, "Mul") == ["a", "c"]
    assert [c.what for c in kernels.conflicts()] == ["the kernel for Mul on TOY at equal priority"]


def test_a_pack_is_imported_once_and_only_for_its_device_type() -> None:
    kernels, calls = registry(), []
    kernels.add_pack(KernelPack("TOY", lambda _: calls.append("toy"), 0, "a"))
    kernels.add_pack(KernelPack("OTHER", lambda _: calls.append("other"), 0, "a"))
    order(kernels, "Add")
    order(kernels, "Mul")
    assert calls == ["toy"]


def test_the_own_kernels_of_a_lost_claim_to_a_device_type_do_not_count() -> None:
    kernels = registry(owner="winner")
    bring(kernels, "winner", is_of_device_plugin=True, Add={})
    bring(kernels, "loser", is_of_device_plugin=True, Add={})
    bring(kernels, "third", Add={})
    assert order(kernels, "Add") == ["third", "winner"]


@pytest.mark.parametrize("fault", [ValueError("boom"), SystemExit(2)])
def test_a_pack_that_fails_is_left_out_whole_and_the_others_serve(fault: BaseException) -> None:
    def half_way(kernels: Kernels) -> None:
        kernels.kernel("Add")(lambda _: None)
        raise fault

    kernels = registry()
    kernels.add_pack(KernelPack("TOY", half_way, 5, "bad"))
    kernels.add_pack(KernelPack("TOY", "no_such_module:register", 5, "gone"))
    kernels.add_pack(KernelPack("TOY", "json:nothing", 5, "unnamed"))
    bring(kernels, "good", Add={})
    assert order(kernels, "Add") == ["good"]
    assert kernels.failures["TOY", "bad"].__cause__ is fault
    assert "registering its kernels for TOY raised" in str(kernels.failures["TOY", "bad"])
    assert "No module named 'no_such_module'" in str(kernels.failure("TOY", "gone"))
    assert "'json:nothing' names no function" in str(kernels.failure("TOY", "unnamed"))
    assert kernels.failure("OTHER", "bad") is None


def test_a_pack_may_say_that_what_it_needs_is_not_here() -> None:
    def missing(_: Kernels) -> None:
        raise Unavailable("the library is not installed", hint="pip install library")

    kernels = registry()
    kernels.add_pack(KernelPack("TOY", missing, 5, "bad"))
    bring(kernels, "good", Add={})
    assert order(kernels, "Add") == ["good"]
    assert str(kernels.failure("TOY", "bad")) == "the library is not installed; pip install library"
    record = PluginRecord("bad").with_error(kernels.failures["TOY", "bad"])
    assert (record.status, record.reason, record.remedy) == (
        "unavailable", "the library is not installed", "pip install library")


def test_a_kernel_refuses_by_types_and_condition_with_a_reason() -> None:
    kernels = registry()
    bring(kernels, "a", Add={"dtypes": {"T": ("float32", "half")}}, Mul={"when": lambda attrs: attrs["n"] > 1},
          Pack={"dtypes": {"T": "any"}}, Many={"dtypes": {"L": ["int32"]}})
    bring(kernels, "a", One={"dtypes": {"T": "float32"}})
    (add,), (mul,), (pack,) = (kernels.candidates(op, "TOY") for op in ("Add", "Mul", "Pack"))
    (many,), (one,) = (kernels.candidates(op, "TOY") for op in ("Many", "One"))
    assert add.refuses(FLOAT) is None
    assert add.refuses(INT) == "T=int32 is not among float32, float16"
    assert one.refuses(INT) == "T=int32 is not among float32"
    assert mul.refuses({"n": 2}) is None
    assert mul.refuses({"n": 1}) == "its condition on the attributes does not hold"
    assert pack.refuses(INT) is None
    assert many.refuses({"L": (dtypes.int32, dtypes.int32)}) is None
    assert many.refuses({"L": (dtypes.int32, dtypes.string)}) == "L=int32, string is not among int32"


def test_kernels_conflict_only_where_priority_and_types_meet() -> None:
    kernels = registry()
    shared: dict[str, Any] = {"Sub": {}} | {f"Op{i}": {} for i in range(9)}
    bring(kernels, "a", Add={"dtypes": {"T": "float32"}}, Mul={}, **shared)
    bring(kernels, "b", Add={"dtypes": {"T": "int32"}}, Mul={"priority": 1}, **shared)
    order(kernels, "Add")
    (conflict,) = kernels.conflicts()
    assert conflict.what == "the kernels for Op0, Op1, Op2 and 7 more on TOY at equal priority"
    assert (conflict.winner, conflict.loser) == ("a", "b")
    assert conflict.remedy == "set [kernels] Op0 = 'b' or 'a'"


def test_two_kernels_of_one_pack_do_not_hide_a_conflict_with_another() -> None:
    kernels = registry()
    bring(kernels, "a", Add={"dtypes": {"T": "float32"}})
    bring(kernels, "a", Add={"dtypes": {"T": "int32"}})
    bring(kernels, "b", Add={"dtypes": {"T": "float32"}})
    order(kernels, "Add")
    assert len(kernels.conflicts()) == 1


def test_device_types_go_by_priority_then_id_and_rivals_are_conflicts() -> None:
    types = DeviceTypeRegistry()
    for name, priority, plugin in [("A", 1, "x"), ("B", 5, "y"), ("A", 1, "w"), ("A", 3, "z")]:
        types.add(DeviceType(name, "nowhere:scan", None, priority, plugin))
    assert [(t.type, t.plugin) for t in types.by_priority()] == [("B", "y"), ("A", "z")]
    assert [(c.what, c.winner, c.loser) for c in types.conflicts()] == [
        ("device type A", "z", "w"), ("device type A", "z", "x")]
    assert types.get("C") is None


@pytest.mark.parametrize("what", ["host", "retains"])
def test_inputs_are_named_as_the_op_names_them_where_the_op_is_known(what: str) -> None:
    kernels = registry()
    bring(kernels, "good", Reshape={what: ["shape"]}, NoSuchOp={what: ["anything"]})
    bring(kernels, "bad", Neg={}, Reshape={what: ["shape", "shpae"]})
    bring(kernels, "worse", NoOp={what: ["x"]})
    assert order(kernels, "Reshape") == ["good"]
    assert order(kernels, "Neg") == []
    assert str(kernels.failures["TOY", "bad"]) == (
        f"{what} of bad's kernel for Reshape names 'shpae', which is no input of the op (op Reshape); "
        "the op's inputs: tensor, shape")
    assert str(kernels.failures["TOY", "worse"]).endswith("the op's inputs: none")


@pytest.mark.parametrize(("options", "text"), [
    ({"layouts": {"features": "csr"}}, "'csr', which is no layout (op Relu); the layouts: dense, scalar, coo"),
    ({"layouts": {"x": "coo"}}, "names 'x', which is no input or output of the op"),
    ({"layouts": {"features": "coo"}, "alias": {0: 0}}, "declares layouts, and an alias or a late result")])
def test_a_wrong_declaration_of_layouts_is_the_packs_failure(options: dict[str, Any], text: str) -> None:
    kernels = registry()
    bring(kernels, "bad", Relu=options)
    assert order(kernels, "Relu") == []
    assert text in str(kernels.failures["TOY", "bad"])


def test_kernels_of_declared_layouts_are_no_candidates_of_graphs_and_rank_as_others() -> None:
    kernels = registry()
    bring(kernels, "a", Relu={"layouts": {"features": "coo"}}, Add={})
    bring(kernels, "b", priority=1, Relu={"layouts": {"features": "coo"}})
    assert order(kernels, "Relu") == []
    assert [kernel.pack for kernel in kernels.of_layouts("Relu", "TOY")] == ["b", "a"]
    assert kernels.of_layouts("Add", "TOY") == []
    assert kernels.conflicts() == []


TWICE: list[tuple[Callable[[Contribution], Any], str]] = [
    (lambda to: DeviceRegistrar(to).device(type="A", scan="a:b"), "device type 'A' is announced twice"),
    (lambda to: OpRegistrar(to).add(OpSpec("A")), "op 'A' is declared twice"),
    (lambda to: PassRegistrar(to).add("a", lambda graph: graph), "pass 'a' is registered twice"),
]


@pytest.mark.parametrize(("add", "message"), TWICE)
def test_one_plugin_registers_a_name_once(add: Callable[[Contribution], Any], message: str) -> None:
    to = Contribution("p")
    add(to)
    with pytest.raises(PluginError, match=message):
        add(to)


@pytest.mark.parametrize("name", ["gpu", "My Type", "A-B", "", "1A"])
def test_a_device_type_is_written_in_capitals(name: str) -> None:
    with pytest.raises(PluginError, match="must be written in capitals"):
        DeviceRegistrar(Contribution("p")).device(type=name, scan="a:b")


def test_a_bind_function_returns_a_function_none_or_an_attachable() -> None:
    for good in (None, print, type("Attachable", (), {"run": print, "attach": print})()):
        check_bound(good, "pack", "Add")
    with pytest.raises(PluginError, match="bind of pack's kernel for Add returned int; expected a function, None"):
        check_bound(3, "pack", "Add")


@pytest.mark.parametrize(("ops", "heads", "both"), [
    (["Add", "MatMul"], ["MatMul"], "MatMul"), (["Mul", "Conv2D", "MatMul"], ["MatMul", "Conv2D"], "Conv2D, MatMul"),
    (["Add"], ["MatMul"], None), (["Add"], [], None)])
def test_a_fusion_with_an_op_in_both_lists_gives_a_warning(ops: list[str], heads: list[str], both: str | None) -> None:
    kernels = registry()
    kernels.add_pack(KernelPack("TOY", lambda to: to.fusion("F", ops=ops, heads=heads)(lambda _: None), 0, "a"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernels.load("TOY")
    texts = [str(warning.message) for warning in caught]
    assert [text.partition(" in ops=")[0] for text in texts] == (
        [] if both is None else [f"plugin a: fusion 'F' has {both}"])
