"""Queues in recorded situations: TensorFlow 2.21 gave the results, codes and messages.

Each situation of tests/data/queues.json has a queue and its steps in order. A step with `begin` waits in a thread until
the step with `join` of that name. A step with `instead` differs on purpose, for its `reason`.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import heald
import numpy as np
import pytest
from builders.graphs import graph, placeholder
from heald.errors import HealdError
from heald.graphs.graph.attr_value import ShapeAttr
from heald.graphs.graph.node import Node
from heald.runtime.values import dtypes

SITUATIONS = json.loads((Path(__file__).parents[1] / "data" / "queues.json").read_text("utf-8"))
SAME_WORDS = " is closed", " is already closed", "operation was cancelled"  # these messages are TensorFlow's


def session_of(case: dict[str, Any], form: str) -> heald.Session:
    types = tuple(getattr(dtypes, name) for name in case["types"])
    attrs = dict(case["attrs"])
    component_types = types[1:] if case["op"].startswith("Priority") else types
    attrs |= {"component_types": component_types, "shapes": tuple(ShapeAttr(shape) for shape in attrs["shapes"])}
    fed = [f"x{i}" for i in range(len(types))]
    gives, takes = {"Tcomponents": types}, {"component_types": types}
    return heald.Session(graph(
        Node("q", case["op"].removesuffix("V2") + form, attrs=attrs),
        *(placeholder(name, None, dtype) for name, dtype in zip(fed, types, strict=True)),
        placeholder("n", None, dtypes.int32),
        Node("put", f"QueueEnqueue{form}", ("q", *fed), attrs=gives),
        Node("puts", f"QueueEnqueueMany{form}", ("q", *fed), attrs=gives),
        Node("get", f"QueueDequeue{form}", ("q",), attrs=takes),
        Node("gets", f"QueueDequeueMany{form}", ("q", "n"), attrs=takes),
        Node("rest", f"QueueDequeueUpTo{form}", ("q", "n"), attrs=takes),
        Node("size", f"QueueSize{form}", ("q",)), Node("closed", f"QueueIsClosed{form}", ("q",)),
        Node("close", f"QueueClose{form}", ("q",)),
        Node("kill", f"QueueClose{form}", ("q",), attrs={"cancel_pending_enqueues": True})))


def array_of(value: Any, dtype: str) -> Any:
    if dtype != "string":
        return np.array(value, dtype)
    texts = np.array(value, object)
    return np.array([text.encode() for text in texts.reshape(-1)], object).reshape(texts.shape)


def text(result: Any) -> Any:
    return json.loads(json.dumps(result.tolist(), default=bytes.decode))


def outcome(session: heald.Session, case: dict[str, Any], step: dict[str, Any]) -> dict[str, Any]:
    """Run a step; return its results, or its error's code and message."""
    feeds: dict[str, Any] = {f"x{i}": array_of(x, case["types"][i]) for i, x in enumerate(step.get("x", ()))}
    if "n" in step:
        feeds["n"] = step["n"]
    name, acts = step["do"], step["do"] in ("put", "puts", "close", "kill")
    count = 1 if name in ("size", "closed") else len(case["types"])
    options = heald.RunOptions(timeout=step["timeout"] / 1000) if "timeout" in step else None
    try:
        outputs = session.run([] if acts else [f"{name}:{i}" for i in range(count)], feeds,
                              targets=[name] if acts else [], options=options)
    except HealdError as error:
        return {"code": error.code, "message": error.message}
    return {"out": [text(x) for x in outputs]}


def is_as_recorded(actual: dict[str, Any], step: dict[str, Any]) -> bool:
    step = step.get("instead", step)
    if "out" in step:
        return actual.get("out") == step["out"]
    message = step["message"]
    said = next((message[message.index(words):] for words in SAME_WORDS if words in message), "")
    return actual.get("code") == step["code"] and actual["message"].endswith(said)


@pytest.mark.parametrize("form", ["V2", ""])
@pytest.mark.parametrize("situation", range(len(SITUATIONS)), ids=[case["situation"] for case in SITUATIONS])
def test_a_queue_does_what_tensorflows_did(situation: int, form: str) -> None:
    case = SITUATIONS[situation]
    begun: dict[str, Any] = {}
    with session_of(case, form) as session, ThreadPoolExecutor(4) as threads:
        for number, step in enumerate(case["steps"]):
            if "begin" in step:
                begun[step["begin"]] = threads.submit(outcome, session, case, step)
                time.sleep(0.03)
                assert not begun[step["begin"]].done()
                continue
            actual = begun.pop(step["join"]).result(10) if "join" in step else outcome(session, case, step)
            assert is_as_recorded(actual, step), (number, step, actual)
