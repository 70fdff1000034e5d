"""Write families.tsv: the modules beside this one that register kernels, and their ops."""

from importlib import import_module
from pkgutil import iter_modules

from heald.api import Kernels

from . import TABLE, __path__


class Ops(Kernels):
    """A registry that records the ops of the registered kernels."""

    def __init__(self) -> None:
        self.found: dict[str, None] = {}

    def kernel(self, op, **_):  # type: ignore[no-untyped-def]
        self.found[op] = None
        return lambda bind: bind


def table() -> str:
    """The lines of families.tsv: a module, a tab, its ops."""
    lines = []
    for name in sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_")):
        family, ops = import_module(f".{name}", __package__), Ops()
        if hasattr(family, "register_kernels"):
            family.register_kernels(ops)
            lines.append(f"{name}\t{' '.join(sorted(ops.found))}\n")
    return "".join(lines)


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
