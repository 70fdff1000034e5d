"""Runs of graphs from files: written and read again, then in a session with made-up feeds and a deadline."""

from __future__ import annotations

import heald
from heald import graphdef
from heald.graphs.graph.graph import Graph
from heald.graphs.session.model import find_inputs, find_outputs

from .program_runs import OPTIONS, made_up


class Lossy(AssertionError):
    """A graph that was read and written is not the same any more."""


def run_graph(graph: Graph) -> None:
    again = graphdef.loads(graphdef.dumps(graph.replace()))
    if [bytes(n.raw) for n in again] != [bytes(n.raw) for n in graph] or again.versions != graph.versions:
        raise Lossy("a graph is not what it was when it has been written and read")
    with heald.Session(graph) as session:
        fetches = find_outputs(session)
        feeds = find_inputs(session, fetches)
        step = session.prepare(fetches, feeds)
        metas = step.program.functions["main"].arg_metas
        session.run(fetches, made_up(dict(zip(feeds, metas, strict=True)), graphdef.dumps(graph)), options=OPTIONS)
