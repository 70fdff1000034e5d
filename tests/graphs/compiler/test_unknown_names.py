"""Names that no node has: the hint names the node of another scope. Changes of values that are no variables."""

from __future__ import annotations

import heald
import pytest
from builders.graphs import const, graph, node
from heald.errors import NotFound, Unimplemented

SESSION = graph(const("x", 1), node("y", "Neg", "x"), node("net/a/out", "Neg", "x"), node("net/b/out", "Neg", "x"))


@pytest.mark.parametrize(("name", "hint"), [
    ("import/y:0", "did you mean y?"), ("import/import/y", "did you mean y?"),
    ("import/net/a/out:0", "did you mean net/a/out?"), ("a/out", "did you mean net/a/out?"),
    ("out", "did you mean net/a/out or net/b/out?"), ("net/a/oout", "did you mean net/a/out"),
    ("zzzzzzzz", "heald inspect shows"), ("", "heald inspect shows"), ("/", "heald inspect shows")])
@pytest.mark.parametrize("use", ["fetch", "feed", "target"])
def test_a_name_in_another_scope_is_suggested(name: str, hint: str, use: str) -> None:
    fetches, feeds, targets = {"fetch": (name, {}, ()), "feed": ("y", {name: 1}, ()),
                               "target": ([], {}, [name.partition(":")[0]])}[use]
    with heald.Session(SESSION) as session, pytest.raises(NotFound, match="no node is called") as caught:
        session.run(fetches, feeds, targets=targets)
    assert caught.value.hint.startswith(hint)


@pytest.mark.parametrize("op", ["Assign", "AssignAdd", "AssignSub"])
def test_a_change_of_a_value_names_the_value(op: str) -> None:
    nodes = graph(const("x", 1), const("one", 1), node("set", op, "x", "one"))
    with heald.Session(nodes) as session, pytest.raises(Unimplemented) as caught:
        session.run("set")
    assert caught.value.message == (f"op {op} changes a variable, and its input is no reference: it is output 0 of "
                                    "'x', a Const")
    assert caught.value.node == "set"
