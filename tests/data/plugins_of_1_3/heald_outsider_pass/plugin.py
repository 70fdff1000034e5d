"""The plugin: a graph pass. heald imports this module at every start, so the module is light."""

from heald.api import PassRegistrar, hookimpl

HEALD_API = (1, 3)


@hookimpl
def heald_passes(registry: PassRegistrar) -> None:
    registry.add("outsider-pass", "heald_outsider_pass.double_negation:remove_double_negation")
