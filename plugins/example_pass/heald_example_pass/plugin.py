"""The plugin: a graph pass. heald imports this module at every start, so the module is light."""

from heald.api import PassRegistrar, hookimpl

HEALD_API = (1, 4)
HEALD_ID = "example_pass"


@hookimpl
def heald_passes(registry: PassRegistrar) -> None:
    registry.add("example-pass", "heald_example_pass.double_negation:remove_double_negation")
