"""Names that a package exports and imports when they are first used (PEP 562), also from other distributions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from ...errors import NotFound


def lazy_exports(package: str, exports: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of `package`, which raises AttributeError for names that are not listed.

    `exports` lists by module, absolute or relative to the package, the names that are taken from it. No such name may
    be that of a module of the package: the import of the module would overwrite it.
    """
    modules = {name: module for module, names in exports.items() for name in names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        return getattr(import_module(modules[name], package), name)

    return get


def import_of_distribution(where: str, attribute: str) -> Any:
    """Import "module", or the name in "module:name", of another distribution of heald's, for an attribute of heald.

    Raises NotFound when it is not installed, or when an older one without this module is.
    """
    module, _, name = where.partition(":")
    package = module.partition(".")[0]
    try:
        imported = import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, package):
            raise
        from .install import install_hint

        distribution = package.replace("_", "-")
        raise NotFound(f"{attribute} is part of {distribution}, which is not installed, or too old",
                       hint=install_hint(distribution, upgrade=True)) from error
    return getattr(imported, name) if name else imported
