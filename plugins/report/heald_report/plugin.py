"""The commands report and view. Every start of heald imports this module, so the module is light."""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 1)


@hookimpl
def heald_commands(registry: Any) -> None:
    registry.add("report", help="write a page with pictures of a model: its graph, placement and a run",
                 add_arguments="heald_report.report:add_arguments", run="heald_report.report:report")
    registry.add("view", help="serve the page of heald report on this machine, with values of tensors",
                 add_arguments="heald_report.view:add_arguments", run="heald_report.view:view")
