"""A command of a third party: `heald count MODEL` prints how often each op is in a model of any format.

    HEALD_PLUGINS__LOAD=examples/count_command.py heald count model.pb
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter

from heald.api import CommandRegistrar, hookimpl
from heald.api.cli import add_model, open_graph, say

HEALD_API = (1, 4)


@hookimpl
def heald_commands(registry: CommandRegistrar) -> None:
    registry.add("count", help="count the ops of a graph", add_arguments=add_arguments, run=count_ops)


def add_arguments(parser: ArgumentParser) -> None:
    add_model(parser)


def count_ops(args: Namespace) -> int:
    for op, count in sorted(Counter(node.op for node in open_graph(args, weights=False).graph).items()):
        say(f"{count:6} {op}")
    return 0
