"""The plugin registers the op handlers that eager ops bring: one logs each op, one runs none.

Every start of heald imports this module, so the module is light.
"""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 3)


@hookimpl
def heald_op_handlers(registry: Any) -> None:
    registry.add("logging", "heald_eager.op_handlers:LoggingOpHandler")
    registry.add("null", "heald_eager.op_handlers:NullOpHandler")
