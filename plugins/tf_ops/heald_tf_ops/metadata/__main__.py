"""Generates families.tsv: the family modules beside this one, and the ops of their metadata functions."""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from . import __path__
from .rules import RULES, TABLE


def table() -> str:
    """Return a line a family: its module and its ops."""
    for module in iter_modules(__path__):
        if not module.name.startswith("_"):
            import_module(f".{module.name}", __package__)
    ops: dict[str, list[str]] = {}
    for op, rule in RULES.added.items():
        function: Any = rule.function
        module_of = getattr(function, "func", function).__module__  # a partial's function has the module
        ops.setdefault(module_of.rpartition(".")[2], []).append(op)
    return "".join(f"{family}\t{' '.join(sorted(ops[family]))}\n" for family in sorted(ops))


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
