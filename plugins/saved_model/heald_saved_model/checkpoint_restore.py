"""Restoring: variables of a session get the values that a checkpoint has under the names of their nodes.

The saver of a graph and `write_checkpoint` use these names. No node of the session's graph runs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heald import Session
from heald.api import Graph, Node, new_name
from heald.errors import Location, NotFound

from .checkpoint import Checkpoint, file_contents, shard_name
from .freeze import REFERENCE_OPS

HANDLES = frozenset({"VarHandleOp", "_ReferenceVariable"})  # ops of variables, after passes


def restore_variables(session: Session, place: str | os.PathLike[str]) -> Sequence[str]:
    """Assign the saved values. Return the names of the variables that the checkpoint lacks.

    `place`: The prefix of a checkpoint, or a folder, of whose checkpoints the newest counts.

    Raises NotFound without a checkpoint, DataLoss for a damaged one, and the errors of an assignment.
    """
    checkpoint = _open(_prefix(Path(place)))
    saved_names = {f"{node.name}/handle": node.name for node in session.given_graph if node.op in REFERENCE_OPS}
    variables = {saved_names.get(node.name, node.name): node for node in session.graph if node.op in HANDLES}
    values = {name: checkpoint.read(name) for name in variables if name in checkpoint}
    if values:
        _assign(session, {name: variables[name] for name in values}, values)
    return [name for name in variables if name not in values]


def _assign(session: Session, variables: dict[str, Node], values: dict[str, Any]) -> None:
    used_names = {node.name for node in variables.values()}
    nodes, feeds, targets = list[Node](), dict[str, Any](), list[str]()
    for name, variable in variables.items():
        dtype = {"dtype": variable.attrs["dtype"]}
        value = Node(new_name(f"{variable.name}/saved", used_names), "Placeholder", attrs=dtype)
        assign = Node(new_name(f"{variable.name}/restored", used_names), "AssignVariableOp",
                      [variable.name, value.name], device=variable.device, attrs=dtype)
        handle = variable.replace(controls=(), attrs={k: v for k, v in variable.attrs.items() if k != "_class"})
        nodes += [handle, value, assign]
        feeds[value.name] = values[name]
        targets.append(assign.name)
    session.beside(Graph(nodes)).run([], feeds, targets=targets)


def _prefix(place: Path) -> Path:
    if not place.is_dir():
        return place
    indices = [(index.stat().st_mtime_ns, index) for index in place.glob("*.index")]
    if not indices:
        raise NotFound("this folder has no checkpoint", location=Location(str(place)))
    return max(indices)[1].with_suffix("")


def _open(prefix: Path) -> Checkpoint:
    index = prefix.with_name(f"{prefix.name}.index")
    if not index.exists():
        raise NotFound("there is no checkpoint of this prefix", location=Location(str(prefix)),
                       hint="give the path without '.index' or '.data-...'")
    return Checkpoint(file_contents(index), lambda number, count: file_contents(
        prefix.with_name(f"{prefix.name}.{shard_name(number, count)}")), str(prefix))
