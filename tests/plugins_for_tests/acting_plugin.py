"""A plugin of the tests alone: kernels that do what a test asks for when their node runs, or is bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from heald.api import OpSpec, available, hookimpl

HEALD_API = (1, 0)
CONFIG = {"plugins": {"load": ["plugins_for_tests.acting_plugin"]}}
acts: dict[str, Callable[[], object]] = {}  # by node, or by pass: done within its kernel, or within the pass
binds: dict[str, Callable[[], object]] = {}  # by node: done within its bind
ran: list[str] = []  # nodes, in the order in which their kernels began
passed: list[str] = []  # passes, in the order in which they began


@hookimpl
def heald_ops(registry):
    for name in ("Act", "ActNow"):
        registry.add(OpSpec(f"Act>{name}", inputs=["x: T"], outputs=["y: T"], attrs=["T: type"],
                            metadata=lambda _, x: x))


@hookimpl
def heald_kernels(registry):
    registry.kernels("CPU", register)


@hookimpl
def heald_passes(registry):
    registry.add("first", partial(return_graph, "first"))
    registry.add("second", partial(return_graph, "second"), after=["first"])


def return_graph(name, graph, context):
    passed.append(name)
    acts.get(name, int)()
    return graph


def begin(node):
    ran.append(node)
    acts.get(node, int)()


def register(kernels):
    @kernels.kernel("Act>Act")
    def act(b):
        binds.get(b.node, int)()

        def run(x, out):
            begin(b.node)
            np.add(x, 1, out)
        return run

    @kernels.kernel("Act>ActNow", asynchronous=True)
    def act_now(b):
        """Declared asynchronous: its consumers run event-driven."""
        def run(x):
            begin(b.node)
            return available(x + 1)
        return run
