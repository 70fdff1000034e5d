"""The table of metadata functions, and the decorator that fills it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from heald.api import MetadataFunction, MetadataRule

TABLE = Path(__file__).parent / "families.tsv"
F = TypeVar("F", bound=MetadataFunction)


class Rules(Mapping[str, MetadataRule]):
    """Rules by op. `family_of` maps each op to the module that adds its rule."""

    def __init__(self, family_of: Mapping[str, str]) -> None:
        self._family_of = family_of
        self.added: dict[str, MetadataRule] = {}

    def __getitem__(self, op: str) -> MetadataRule:
        if op not in self.added:
            import_module(f".{self._family_of[op]}", __package__)
        return self.added[op]

    def __iter__(self) -> Iterator[str]:
        return iter(self._family_of)

    def __len__(self) -> int:
        return len(self._family_of)

    def add(self, op: str, rule: MetadataRule) -> None:
        assert op not in self.added, f"{op} has two metadata functions"
        self.added[op] = rule


def rule(*ops: str, values: tuple[str, ...] = ()) -> Callable[[F], F]:
    """Register the decorated function as the metadata function of these ops.

    `values` names the inputs whose elements it reads when they are known: the runtime binds anew when they change.
    """

    def add(function: F) -> F:
        for op in ops:
            RULES.add(op, MetadataRule(function, values))
        return function

    return add


def _families() -> Mapping[str, str]:
    lines = (line.split("\t") for line in TABLE.read_text("utf-8").splitlines())
    return {op: family for family, ops in lines for op in ops.split()}


RULES = Rules(_families())
