"""`weft.ops`: every op of the registry as a function, by its name in small letters: `weft.ops.matmul(a, b)`.

A function takes the op's inputs by position and its attributes by keyword. Fetched once, it is the bound op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any  # `weft.ops.any` is the op: small names are looked up

from ..contract.op import REQUIRED, ArgDef, AttrDef, OpDef, OpRegistry, attr_text
from ..errors import NotFound, WeftError, closest
from .default_runtime import default_call, default_runtime, default_table
from .execute import op_function


class _MissingOp(NotFound, AttributeError):
    """An op that no plugin brings, as an attribute of the module."""


def bound_op(name: str) -> Callable[..., Any]:
    """Return the op of this name, in any spelling, as a function of inputs and attributes.

    Raises NotFound with the names nearest to it.
    """
    registry = default_runtime().host.registries.ops
    op = registry.get(_full_name(name, registry))
    function = op_function(default_table(), default_call, op.name, _count(op))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = _documentation(op)
    return function


def _count(op: OpDef) -> int:
    """The number of inputs of the op; 0 where it varies."""
    varies = any(arg.number_attr is not None or arg.type_list_attr is not None for arg in op.inputs)
    return 0 if varies else len(op.inputs)


def _full_name(name: str, registry: OpRegistry) -> str:
    """The registered name that these letters spell. Raises NotFound."""
    if name in registry:
        return name
    spelled = name.replace("_", "").lower()
    found = [op for op in registry if op.replace("_", "").replace(">", "").lower() == spelled]
    if not found:
        return name
    return min(found, key=lambda op: (op.startswith("_"), op))


def _documentation(op: OpDef) -> str:
    inputs = ", ".join(_arg_text(arg) for arg in op.inputs)
    outputs = ", ".join(_arg_text(arg) for arg in op.outputs)
    attrs = "".join(f"\n    {_attr_text(attr)}" for attr in op.attrs.values())
    return f"Op {op.name}: ({inputs}) -> ({outputs}).{attrs and f'{chr(10)}{chr(10)}Attributes:{attrs}'}"


def _arg_text(arg: ArgDef) -> str:
    kind = arg.type_attr or arg.type_list_attr or (arg.dtype.name if arg.dtype is not None else "any")
    return f"{arg.name}: {kind}{'[]' if arg.number_attr is not None else ''}"


def _attr_text(attr: AttrDef) -> str:
    default = "" if attr.default is REQUIRED else f" = {attr_text(attr.default)}"
    return f"{attr.name}: {attr.type}{default}"


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'weft.ops' has no attribute '{name}'")
    try:
        found = bound_op(name)
    except NotFound as error:
        raise _missing(name, error) from None
    globals()[name] = found
    return found


def _missing(name: str, error: WeftError) -> _MissingOp:
    registry = default_runtime().host.registries.ops
    near = [_small(op) for op in closest(name.replace("_", ""), (op.lower() for op in registry))]
    return _MissingOp(f"no op is called '{name}'", op=name,
                      hint=f"did you mean weft.ops.{' or weft.ops.'.join(near)}?" if near else error.hint)


def _small(name: str) -> str:
    return name.lower()


def __dir__() -> list[str]:
    return sorted({_small(op) for op in default_runtime().host.registries.ops if not op.startswith("_")})
