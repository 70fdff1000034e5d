"""Host programs as users of TFRT know them: MLIR text, the tools for it, and the kernels of TFRT's dialects.

The public functions are `heald.mlir.loads`, `load`, `dumps` and `dump`; they are imported when they are first used.

Modules: `lexer` has the tokens; `type_parser`, `location_parser`, `element_parser` and `attribute_parser`, each built
on the one before, and `parser` read text as a parse tree (`ir`, `attributes`, `types`, `floats`). `printer` writes it.
`diagnostics` compares errors with expected ones. `program_reader` and `program_writer`
convert the tree from and to a ProgramDef of core, with `program_attributes` and `lowered_attributes`. `text_file` has
the public functions and the loader. `kernels` has the host kernels.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .commands import add_opt_arguments as add_opt_arguments
    from .commands import add_translate_arguments as add_translate_arguments
    from .commands import is_program as is_program
    from .commands import opt as opt
    from .commands import run_program as run_program
    from .commands import translate as translate
    from .lexer import MalformedText as MalformedText
    from .program_reader import InvalidProgram as InvalidProgram
    from .text_file import dump as dump
    from .text_file import dumps as dumps
    from .text_file import load as load
    from .text_file import loads as loads

__all__ = ["InvalidProgram", "MalformedText", "dump", "dumps", "load", "loads"]
# The last six serve the commands translate, opt and run, which other distributions have.
_WHERE = {"MalformedText": "lexer", "InvalidProgram": "program_reader", "dump": "text_file", "dumps": "text_file",
          "load": "text_file", "loads": "text_file", "add_translate_arguments": "commands", "is_program": "commands",
          "run_program": "commands", "translate": "commands", "add_opt_arguments": "commands", "opt": "commands"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'heald_mlir' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f".{_WHERE[name]}", __name__), name)
