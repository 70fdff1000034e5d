"""The arguments of a call of a model, by position or by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy import ndarray

from ...errors import InvalidArgument, callers_code
from ..executor.step import RunOptions
from .run_step import check_limits


def take_options(named: dict[str, Any]) -> RunOptions | None:
    """Remove and return the RunOptions under the name "options". Any other value of that name is an input's.

    Raises InvalidArgument for options that ask for records of the run.
    """
    if not isinstance(named.get("options"), RunOptions):
        return None
    return check_limits(named.pop("options"), "model.session.run(..., options=options, metadata=metadata) records them")


def inputs_in_order(names: Sequence[str], arrays: Sequence[Any], named: Mapping[str, Any],
                    callee: str = "the model") -> list[Any]:
    """Return the inputs of a call of `callee` in the order of `names`. The first positional argument may be a dict of
    all.

    Raises InvalidArgument for inputs that are missing, unknown, or given twice.
    """
    if not named and len(arrays) == len(names) and arrays and type(arrays[0]) is ndarray:
        return list(arrays)  # nothing is left to check
    if len(arrays) == 1 and isinstance(arrays[0], Mapping) and not named:
        named, arrays = dict_of_mapping(arrays[0], "inputs"), ()
    if len(arrays) > len(names):
        raise InvalidArgument(f"{callee} takes {len(names)} inputs, {len(arrays)} given")
    inputs = dict(zip(names, arrays, strict=False))
    for name, value in named.items():
        if name not in names:
            raise InvalidArgument(f"{callee} has no input '{name}'",
                                  hint=f"its inputs: {', '.join(names) or 'none'}")
        if name in inputs:
            raise InvalidArgument(f"input '{name}' is given twice")
        inputs[name] = value
    missing = [name for name in names if name not in inputs]
    if missing:
        raise InvalidArgument(f"missing input: {', '.join(missing)}")
    return [inputs[name] for name in names]


def dict_of_mapping(argument: Any, what: str) -> dict[Any, Any]:
    """Return a mapping as a dict. Raises InvalidArgument for other objects; `what` is the user's word for it."""
    if type(argument) is dict:
        return argument
    if not isinstance(argument, Mapping):
        raise InvalidArgument(f"{what} are a {type(argument).__name__}; give a dict by name")
    with callers_code(f"{what} cannot be read"):
        return dict(argument.items())
