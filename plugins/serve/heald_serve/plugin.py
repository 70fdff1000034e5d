"""The command serve. Every start of heald imports this module, so the module is light."""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 1)


@hookimpl
def heald_commands(registry: Any) -> None:
    registry.add("serve", help="serve models over HTTP, with TensorFlow Serving's options and protocol",
                 add_arguments="heald_serve.serve:add_arguments", run="heald_serve.serve:serve")
