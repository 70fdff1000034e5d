"""The commands of this plugin. Every start of heald imports this module, so the module is light."""

from typing import Any

from heald.api import hookimpl

HEALD_API = (1, 1)

COMMANDS = {  # the help by the command's name, which its module and its function have too
    "run": "run a model and print or save its outputs",
    "bench": "time a model: latency, throughput, memory, and what bounds it",
    "trace": "record when each kernel of a run worked, on which device and thread",
    "diff": "compare two models, or the results of one model with another device or with recorded results",
    "scan": "list the models below a folder, with the ops that each lacks",
    "doctor": "look at versions, plugins, devices, memory and limits, with the remedy of each fault",
    "new": "start a plugin: a device, kernels, an op, a graph pass, a loader, and more",
}


@hookimpl
def heald_commands(registry: Any) -> None:
    for name, text in COMMANDS.items():
        module = f"heald_tools.{name}"
        registry.add(name, help=text, add_arguments=f"{module}:add_arguments", run=f"{module}:{name}")
