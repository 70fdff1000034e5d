"""The declared operations of a host: the host kernels, and a few operations that are no kernels."""

from __future__ import annotations

from heald.api import errors
from heald.runtime.contract import HostKernelRegistry

from ..parser import OpSyntax
from .assembly_format import compile_syntax
from .declaration import Declaration, Operand, declaration_of

RETURN = "tfrt.return"
_NO_KERNELS = {declaration.name: declaration for declaration in (
    Declaration(RETURN, (), Operand("values", None), (), {},
                syntax="attr-dict ($values^ `:` type($values))?", summary="End a function with its results."),
)}


class KernelDialects:
    """The `Dialects` of a host. Each operation is looked up once. Any thread may call."""

    def __init__(self, kernels: HostKernelRegistry) -> None:
        self._kernels = kernels
        self._declarations: dict[str, Declaration | None] = dict(_NO_KERNELS)
        self._syntaxes: dict[str, OpSyntax | None] = {}

    def declaration(self, name: str) -> Declaration | None:
        """The declaration of an operation; None for an unknown one."""
        if name not in self._declarations:
            try:
                self._declarations[name] = declaration_of(self._kernels.get(name))
            except errors.NotFound:
                self._declarations[name] = None
        return self._declarations[name]

    def syntax(self, name: str) -> OpSyntax | None:
        """The custom syntax of an operation; None for one that has the generic form only.

        Raises PluginError for a malformed assembly format of a plugin.
        """
        if name not in self._syntaxes:
            declaration = self.declaration(name)
            self._syntaxes[name] = None if declaration is None else compile_syntax(declaration)
        return self._syntaxes[name]
