"""Look-up of ops as functions, by their names in any spelling."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from typing import Any

from heald.api import OpDef
from heald.errors import HealdError, NotFound, closest
from heald.runtime.contract import OpRegistry

from .default_runtime import default_call, default_runtime, default_table
from .execute import op_function
from .op_signature import documentation, op_signature, python_name

_SEPARATORS, _NON_WORD = re.compile(r"[\W_]"), re.compile(r"\W")


class _MissingOp(NotFound, AttributeError):
    """An op that no plugin brings, as an attribute of the module."""


def bound_op(name: str) -> Callable[..., Any]:
    """Return the op of this name, in any spelling, as a function of inputs and attributes.

    Raises NotFound, which is an AttributeError too, with the names nearest to it.
    """
    registry = default_runtime().host.registries.ops
    try:
        op = registry.get(_full_name(name, registry))
    except NotFound as error:
        raise _missing_op_error(name, error) from None
    function = op_function(default_table(), default_call, op.name, _input_count(op))
    function.__name__ = function.__qualname__ = python_name(op.name)
    function.__doc__ = documentation(op)
    function.__signature__ = op_signature(op)  # type: ignore[attr-defined]
    return function


def _input_count(op: OpDef) -> int:
    """The number of inputs of the op; 0 where it varies."""
    varies = any(arg.number_attr is not None or arg.type_list_attr is not None for arg in op.inputs)
    return 0 if varies else len(op.inputs)


def _full_name(name: str, registry: OpRegistry) -> str:
    """The registered name that these letters spell. Raises NotFound."""
    if name in registry:
        return name
    spelled = _letters(name)
    spellings = [op for op in registry if _letters(op) == spelled]
    if not spellings:
        return name
    return min(spellings, key=lambda op: (op.startswith("_"), op))


def _missing_op_error(name: str, error: HealdError) -> _MissingOp:
    registry = default_runtime().host.registries.ops
    by_letters = {_letters(op): op for op in registry if not op.startswith("_")}
    similar = [_small_name(by_letters[letters]) for letters in closest(_letters(name), by_letters)]
    return _MissingOp(f"no op is called '{name}'", op=name,
                      hint=f"did you mean heald.ops.{' or heald.ops.'.join(similar)}?" if similar else error.hint)


def _letters(name: str) -> str:
    """The part of a name that all of its spellings share."""
    return _SEPARATORS.sub("", name).lower()


def _small_name(op: str) -> str:
    """The shortest spelling that is a name of Python: matmul, assert_, example_gelu."""
    name = _NON_WORD.sub("_", op.lower())
    return f"{name}_" if keyword.iskeyword(name) else name


def op_names() -> list[str]:
    """The small names of all ops but internal ones."""
    return sorted({_small_name(op) for op in default_runtime().host.registries.ops if not op.startswith("_")})
