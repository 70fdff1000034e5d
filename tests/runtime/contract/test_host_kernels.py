"""The signature of a host kernel is its declaration; registries of them keep plugins apart."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import pytest
from heald.api import I32, Callee, Chain, HostKernels, HostType, Step, Tensor
from heald.errors import Location, NotFound, PluginError
from heald.runtime.contract.host_kernel import HostKernelRegistry, HostPack, declare_host_kernel

N = TypeVar("N")

pytestmark = pytest.mark.filterwarnings("ignore::heald.errors.HealdWarning")  # as in test_discovery


def clamp(x: I32, *, low: I32 = 0, high: I32) -> I32:
    """Between low and high."""
    return min(max(x, low), high)


def several(step: Step, x: N, *others: N, body: Callee) -> tuple[N, Chain]: ...


def cases(x: Any, *, branches: tuple[Callee, ...]) -> list[Any]: ...


def nothing(x: Tensor) -> None: ...


def placed(x: I32, *, where: Location | None = None) -> I32: ...


@pytest.mark.parametrize(("function", "options", "text"), [
    (clamp, {}, "my.kernel(x: i32) {low: i32 = 0, high: i32} -> i32"),
    (several, {"step": True, "types": {"N": I32}}, "my.kernel(x: i32, *others: i32) {@body} -> (i32, !tfrt.chain)"),
    (cases, {}, "my.kernel(x: any) {@branches...} -> ..."),
    (nothing, {}, "my.kernel(x: tensor) -> ()"),
    (placed, {}, "my.kernel(x: i32) -> i32"),
])
def test_a_declaration_is_read_off_the_signature(function, options, text):
    assert str(declare_host_kernel("my.kernel", function, **options)) == text


def test_the_documentation_is_the_functions_own():
    assert declare_host_kernel("my.clamp.i32", clamp).doc == "Between low and high."


def test_a_parameter_for_the_place_of_a_call_is_no_attribute():
    kernel = declare_host_kernel("my.kernel", placed)
    assert (kernel.located, dict(kernel.attributes)) == ("where", {})


def untyped(x) -> I32: ...
def silent(x: I32): ...
def python_typed(x: int) -> I32: ...
def free(x: N) -> I32: ...
def keywords(**attributes: I32) -> I32: ...
def no_step() -> I32: ...
def two_kinds(*, first: Callee, others: tuple[Callee, ...]) -> I32: ...
def unknown(x: Unheard) -> I32: ...  # noqa: F821


@pytest.mark.parametrize(("function", "message"), [
    (untyped, "declares no type for 'x'"),
    (silent, "declares no type for its results"),
    (python_typed, "'x' of host kernel my.kernel: <class 'int'> is not a type of registers"),
    (free, "'x' of host kernel my.kernel: ~N is not a type of registers"),
    (keywords, "takes \\*\\*attributes"),
    (two_kinds, "takes functions and a tuple of functions"),
    (unknown, "name 'Unheard' is not defined"),
])
def test_a_signature_that_declares_nothing_is_refused(function, message):
    with pytest.raises(PluginError, match=message):
        declare_host_kernel("my.kernel", function)


def test_a_kernel_without_parameters_takes_no_step():
    with pytest.raises(PluginError, match="takes no step"):
        declare_host_kernel("my.kernel", no_step, step=True)


def test_a_code_has_a_dialect():
    with pytest.raises(PluginError, match="'clamp' is not the name of a host kernel"):
        declare_host_kernel("clamp", clamp)


def test_a_type_of_ones_own_is_an_annotation():
    point = Annotated[tuple, HostType("!my.point")]

    def far(at: Any) -> I32: ...

    far.__annotations__["at"] = point
    assert str(declare_host_kernel("my.far", far)) == "my.far(at: !my.point) -> i32"


def pack(*codes):
    def register(kernels: HostKernels) -> None:
        for code in codes:
            kernels.kernel(code)(clamp)

    return register


def registry(**packs):
    kernel_registry = HostKernelRegistry()
    for plugin, register in packs.items():
        kernel_registry.add_pack(HostPack(register, plugin))
    return kernel_registry


def test_a_pack_that_fails_is_left_out_whole_by_name():
    def half(kernels):
        kernels.kernel("b.one")(clamp)
        raise ValueError("no more")

    kernels = registry(a=pack("a.one"), b=half, c="nowhere_at_all:register")
    assert kernels.get("a.one").plugin == "a"
    with pytest.raises(NotFound, match=r"no host kernel b\.one.*did you mean a\.one"):
        kernels.get("b.one")
    assert sorted(kernels.failures) == ["b", "c"]
    assert "ValueError: no more" in kernels.failures["b"].message


def test_a_kernel_of_two_plugins_is_that_of_the_lower_id_and_a_conflict():
    kernels = registry(b=pack("x.one", "b.one"), a=pack("x.one"), heald=pack("w.one"), aa=pack("w.one"))
    assert [kernels.get(code).plugin for code in ("x.one", "b.one", "w.one")] == ["a", "b", "heald"]
    assert sorted((c.what, c.winner, c.loser) for c in kernels.conflicts()) == [
        ("host kernel w.one", "heald", "aa"), ("host kernel x.one", "a", "b")]


def test_no_pack_of_a_plugin_is_imported_for_one_of_healds_own_kernels():
    asked_for = []
    kernels = registry(heald=pack("w.one"), a=lambda kernels: asked_for.append("a"))
    assert kernels.get("w.one").plugin == "heald"
    assert asked_for == []
    with pytest.raises(NotFound):
        kernels.get("a.none")
    assert asked_for == ["a"]


def test_a_code_declared_twice_by_one_plugin_is_its_failure():
    kernels = registry(a=pack("x.one", "x.one"))
    kernels.load()
    assert "declared twice" in kernels.failures["a"].message


def test_a_broken_pack_is_in_its_plugins_record(site):
    site.add("heald-broken", {"broken": "broken"}, {"broken.py": """
from heald.api import hookimpl
HEALD_API = (1, 0)
@hookimpl
def heald_kernels(registry):
    registry.host_kernels("nothing_here:register")
"""})
    facts = site.run("""
        warnings.simplefilter("ignore")
        tell(records=shown(load_plugins(load_config()).listing()))
    """)
    (record,) = [record for record in facts["records"] if record["id"] == "broken"]
    assert (record["status"], record["registered"]) == ("failed", {"host kernels": 1})
    assert "nothing_here" in record["reason"]
