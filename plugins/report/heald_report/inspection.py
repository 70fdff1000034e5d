"""Answers about a loaded model: the value of a tensor, its shape for other inputs, and a node on another device.

A question is JSON from a page. It names a node by number, an output, and a text for each input: empty for made-up
numbers, `:2,8` for made-up numbers of this shape, `picture 1` for a picture that the page sent, or a JSON value. No
text is the name of a file.

The comparison runs one node alone: its inputs are the values of the whole model's run. Constants stay constants, since
kernels may need them before a run. So a difference is of this node, and none of nodes before it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from heald.errors import HealdWarning, InvalidArgument, NotFound, Unimplemented, boundary

from .node_table import NodeTable, bodies_of, shown_text
from .picture_inputs import PICTURE, RANGES, PictureInputs
from .value_summary import value_summary

if TYPE_CHECKING:
    from heald import Model

LONGEST_RUN_SECONDS = 60.0
LARGEST_DIFFERENCE = 1e-3  # in standard deviations, as of heald diff
LARGEST_INPUT_ELEMENTS = 1 << 26  # of a made-up input
LONGEST_TEXT = 8 << 20  # characters of an input: pixels of 224x224 as JSON have 3 million


class Inspector:
    """Answers questions about one model. One caller at a time.

    `names`: by number of a node on the page, its function and its name.
    """

    def __init__(self, model: Model) -> None:
        self._model, self._graph = model, model.graph
        self.names = [*NodeTable(bodies_of(self._graph)).numbers]
        self._pictures = PictureInputs(model)
        self._actions = {"values": self._values, "shapes": self._shapes, "compare": self._compare,
                         "outputs": self._outputs, "picture": self._take_picture}

    def form_data(self) -> dict[str, Any]:
        """Return the inputs and the device types, for the page's forms."""
        devices = self._model.session.host.preference()
        return {"inputs": [[shown_text(name), str(meta), self._pictures.takes(name)]
                           for name, meta in self._model.inputs.items()],
                "ranges": [*RANGES], "devices": [f"{device_type}:0" for device_type in devices]}

    @boundary
    def answer(self, question: Any) -> dict[str, Any]:
        """Raises InvalidArgument for a question of another form, and the errors of runs."""
        if not isinstance(question, dict) or question.get("do") not in self._actions:
            raise InvalidArgument(f"a question is an object whose 'do' is one of {', '.join(self._actions)}")
        return self._actions[question["do"]](question)

    def _values(self, question: Mapping[str, Any]) -> dict[str, Any]:
        value, = self._run([self._tensor(question)], self._feeds(question))
        return value_summary(value)

    def _outputs(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Run the whole model."""
        values = self._run([*self._model.fetched.values()], self._feeds(question))
        return {"outputs": [[shown_text(name), value_summary(value)]
                            for name, value in zip(self._model.fetched, values, strict=True)]}

    def _take_picture(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Keep a picture as the value of an input, and show it as the model sees it."""
        shown = _text(question, "input")
        picture = self._pictures.take(self._input_name(shown), _text(question, "content"), _text(question, "range"))
        return {"text": picture.text, "note": picture.note, "value": value_summary(picture.value)}

    def _shapes(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Link the step for the shapes of the inputs, without a run."""
        feeds = self._feeds(question)
        outputs = self._model.fetched
        tensors = list(dict.fromkeys((self._tensor(question), *outputs.values())))
        executable = self._model.session.prepare(tensors, tuple(feeds)).executable(
            tuple(feed.shape for feed in feeds.values()))
        metas = [executable.layout.registers.metas[register] for register in executable.function.results]
        named = {tensor: name for name, tensor in outputs.items()}
        return {"shapes": [[shown_text(named.get(tensor, tensor)), str(meta)]
                           for tensor, meta in zip(tensors, metas, strict=True)]}

    def _compare(self, question: Mapping[str, Any]) -> dict[str, Any]:
        from heald import Session
        from heald_tools.compare import compare

        device = _text(question, "device")
        name = self._name(question)
        index = _number(question, "output")
        node = self._graph.nodes[name]
        sources = [str(source) for source in node.inputs]
        expected, *values = self._run([f"{name}:{index}", *sources], self._feeds(question))
        alone, feeds = self._graph_of_node(name, values)
        with (warnings.catch_warnings(record=True) as notes,
              Session(alone, {"placement": {"clear": True}}, device=device, target="local") as session):
            warnings.simplefilter("always", HealdWarning)  # a device that declines the node warns, and another runs it
            value, = session.run([f"{name}:{index}"], feeds)
            row = session.placement()[name]
        largest, relative, is_beyond = compare(value, expected, LARGEST_DIFFERENCE)
        here = self._model.placement()[name]
        return {"device": row.device or "host", "reference": here.device or "host",
                "largest": _figure(largest), "relative": _figure(relative), "is_beyond": bool(is_beyond),
                "notes": [shown_text(str(note.message)) for note in notes],
                "value": value_summary(value)}

    def _graph_of_node(self, name: str, values: Sequence[Any]) -> tuple[Any, dict[str, Any]]:
        """Return a graph of the node alone, and the feeds of its inputs."""
        from heald.api import Graph, Node, dtypes

        node = self._graph.nodes[name]
        made: dict[str, Any] = {}
        feeds, inputs = {}, []
        for number, (source, value) in enumerate(zip(node.inputs, values, strict=True)):
            producer = self._graph.nodes[source.node]
            if producer.op == "Const":
                made[producer.name] = producer.replace(controls=(), device="", without_attrs=("_class",))
                inputs.append(producer.name)
                continue
            feed = f"heald_inspection_input_{number}"
            made[feed] = Node(feed, "Placeholder", attrs={"dtype": dtypes.of_numpy(value.dtype), "shape": value.shape})
            feeds[feed] = value
            inputs.append(feed)
        alone = node.replace(inputs=inputs, controls=(), device="", without_attrs=("_class",))
        return Graph([*made.values(), alone], self._graph.functions.values()), feeds

    def _run(self, tensors: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        from heald import RunOptions

        results = self._model.session.run(list(tensors), feeds, options=RunOptions(timeout=LONGEST_RUN_SECONDS))
        return list(results)

    def _name(self, question: Mapping[str, Any]) -> str:
        number = _number(question, "node")
        if number >= len(self.names):
            raise NotFound(f"the graph has no node with the number {number}")
        function, name = self.names[number]
        if function:
            raise Unimplemented(f"node '{name}' is in function '{function}', whose values a run does not return",
                                hint="look at the node that calls the function")
        return name

    def _tensor(self, question: Mapping[str, Any]) -> str:
        return f"{self._name(question)}:{_number(question, 'output')}"

    def _feeds(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arrays of all inputs, by the session's names. Made-up strings are empty."""
        from heald.runtime.service import convert_feed

        texts = question.get("inputs", {})
        if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
            raise InvalidArgument("'inputs' of a question is an object of texts")
        values = {self._input_name(shown): text for shown, text in texts.items()}
        return {self._model.fed[name]: convert_feed(self._value_of_input(values.get(name, ""), name), meta, name)
                for name, meta in self._model.inputs.items()}

    def _value_of_input(self, text: str, name: str) -> Any:
        if text.strip().startswith(PICTURE):
            return self._pictures.value(text.strip(), name)
        return input_value(text, self._model.inputs[name], name)

    def _input_name(self, shown: str) -> str:
        """Return the input that the page shows by this text."""
        by_shown_name = {shown_text(name): name for name in self._model.inputs}
        if shown not in by_shown_name:
            raise NotFound(f"the model has no input '{shown[:60]}'", hint=f"its inputs: {', '.join(by_shown_name)}")
        return by_shown_name[shown]


def input_value(text: str, meta: Any, name: str) -> Any:
    """Return the value of an input's text. Raises InvalidArgument for a text that is none."""
    from heald_tools.inputs import made_up_array, read

    text = text.strip()
    if len(text) > LONGEST_TEXT:
        raise InvalidArgument(f"input '{name}': the text has more than {LONGEST_TEXT} characters")
    if not text:
        return made_up_array(meta, name, is_text=True)
    if text.startswith(":"):
        return read(_shape(text, name), meta, name)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidArgument(f"input '{name}' is {meta}; '{text[:60]}' is no JSON value and no shape",
                              hint='[[1, 2], [3, 4]], "text", or :2,8 for numbers of this shape') from None


def _shape(text: str, name: str) -> Any:
    from heald.api.cli import GivenShape

    sizes = [part.strip() for part in text[1:].split(",") if part.strip()]
    if not all(size.isascii() and size.isdecimal() and len(size) < 10 for size in sizes):
        raise InvalidArgument(f"input '{name}': '{text[:60]}' is no shape", hint=":2,8")
    shape = tuple(map(int, sizes))
    if prod(shape) > LARGEST_INPUT_ELEMENTS:
        raise InvalidArgument(f"input '{name}': a shape of more than {LARGEST_INPUT_ELEMENTS} elements is not made up")
    return GivenShape(shape)


def _figure(number: float | None) -> str:
    return "" if number is None else f"{number:.3g}"


def _number(question: Mapping[str, Any], key: str) -> int:
    number = question.get(key, 0)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 31:
        raise InvalidArgument(f"'{key}' of a question is a whole number from 0 on")
    return number


def _text(question: Mapping[str, Any], key: str) -> str:
    text = question.get(key)
    if not isinstance(text, str) or not text:
        raise InvalidArgument(f"'{key}' of a question is a text")
    return text
