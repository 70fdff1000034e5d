"""A command of a third party: `heald count MODEL` prints how often each op is in a graph.

    HEALD_PLUGINS__LOAD=examples/count_command.py heald count model.pb
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections import Counter

from heald.api import CommandRegistrar, hookimpl
from heald.api.cli import say

HEALD_API = (1, 3)


@hookimpl
def heald_commands(registry: CommandRegistrar) -> None:
    registry.add("count", help="count the ops of a graph", add_arguments=add_arguments, run=count_ops)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", help="a frozen graph, as .pb or .pbtxt")


def count_ops(args: Namespace) -> int:
    import heald

    for op, count in sorted(Counter(node.op for node in heald.graphdef.load(args.model)).items()):
        say(f"{count:6} {op}")
    return 0
