"""The table of metadata functions, and the decorator that fills it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..op import MetadataFunction, MetadataRule

RULES: dict[str, MetadataRule] = {}
F = TypeVar("F", bound=MetadataFunction)


def rule(*ops: str, values: tuple[str, ...] = ()) -> Callable[[F], F]:
    """The decorated function is the metadata function of these ops; `values` names the inputs whose elements it
    reads where they are known (so that the runtime binds anew when they change)."""

    def add(function: F) -> F:
        for op in ops:
            assert op not in RULES, f"{op} has two metadata functions"
            RULES[op] = MetadataRule(function, values)
        return function

    return add
