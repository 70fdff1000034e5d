"""The ops of TensorFlow as typed functions: the content of `heald.ops`, by names in snake_case.

`ops.pyi` has the signatures and docstrings for editors and type checkers; `python -m heald_tf_ops.stubs` makes it of
the op table.
"""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import heald

    return getattr(heald.ops, name)


def __dir__() -> list[str]:
    import heald

    return dir(heald.ops)
