"""`heald.ops`: every op of the registry as a function, by its name in small letters: `heald.ops.matmul(a, b)`.

A function takes the op's inputs by position and its attributes by keyword. Fetched once, it is the bound op. It has the
docstring and the signature of the op's declaration.

Functions become names of this module when they are first fetched. So the module has no other names: `heald.ops.any` and
`heald.ops.min` are ops, and no code here may mean Python's.
"""

from typing import Any as _Any

from .op_lookup import bound_op as _bound_op
from .op_lookup import op_names as _op_names


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'heald.ops' has no attribute '{name}'")
    function = globals()[name] = _bound_op(name)
    return function


def __dir__() -> list[str]:
    return _op_names()
