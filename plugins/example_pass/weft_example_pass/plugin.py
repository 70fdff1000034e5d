"""The plugin: a graph pass. weft imports this module at every start, so the module is light."""

from weft.api import PassRegistrar, hookimpl

WEFT_API = (1, 3)


@hookimpl
def weft_passes(registry: PassRegistrar) -> None:
    registry.add("example-pass", "weft_example_pass.double_negation:remove_double_negation")
