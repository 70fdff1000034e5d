"""The pairs of devices that programs over several devices are tested on; a process with others names them itself."""

from __future__ import annotations

import os
from typing import Any

import heald
import pytest
from builders.graphs import graph
from heald.graphs.graph.graph import Node

PAIRS = os.environ.get("HEALDTEST_PAIRS", "EXAMPLE:0/EXAMPLE:1 SIM:0/SIM:1").split()
CONFIG: dict[str, Any] = {"plugin": {"example_device": {"devices": 2}, "sim": {"devices": 2}}}

on_pairs = pytest.mark.parametrize(("first", "second"), [pair.split("/") for pair in PAIRS], ids=PAIRS)


def session_of(*nodes: Node, device_of_session: str | None = None, **config: Any) -> heald.Session:
    """A session with devices of its own, two of each simulated type."""
    return heald.Session(graph(*nodes), CONFIG | config, device=device_of_session)


def rows(session: heald.Session) -> dict[str, dict[str, str]]:
    """The placement report by node."""
    return {row["node"]: row for row in session.placement().table()}


def assigned_devices(session: heald.Session) -> dict[str, str]:
    """The devices of nodes that have one."""
    return {name: row["assigned"] for name, row in rows(session).items() if row["assigned"] != "host"}


def run_traced(session: heald.Session, *arguments: Any, **options: Any) -> tuple[Any, Any]:
    """A run's results, and its trace."""
    metadata = heald.RunMetadata()
    results = session.run(*arguments, options=heald.RunOptions(trace=True), metadata=metadata, **options)
    return results, metadata.trace


def copies(trace: Any) -> list[tuple[str, str]]:
    """The transfers of a traced run: (node that wants the value, device)."""
    return [(e.call.node, e.device) for e in trace.events if e.call.code == "heald.copy" and not e.is_asynchronous]


def faults(session: heald.Session) -> list[Any]:
    """The faults that the simulated devices of a session have recorded."""
    return [fault for record in session.host.records("SIM") if record.status != "found"
            for fault in record.device.native.report]  # type: ignore[union-attr]
