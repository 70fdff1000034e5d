"""The bodies and the answers of classify and regress.

A body has `examples`, objects of features, and perhaps `context`, features of all of them. The kind of a feature comes
from its literals: 1 and true are integers, 1.0 a float, a string or a b64 object bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from heald.errors import InvalidArgument

from ..classify import CLASSIFICATION, REGRESSION, Method, classifications, regressions
from ..messages import message_class
from ..predict import Arrays
from .json_text import debug_text
from .request_tensors import to_bytes
from .response_text import float_texts, string_text

METHODS: Mapping[str, Method] = {"classify": CLASSIFICATION, "regress": REGRESSION}
_CONVERTERS: Mapping[str, Callable[[Any], Any]] = {"bytes_list": to_bytes, "int64_list": int, "float_list": float}
_INT64 = range(-(1 << 63), 1 << 63)


def example_strings(document: Mapping[str, Any], verb: str) -> Any:
    """The examples of a body as an array of serialized messages. Raises InvalidArgument."""
    examples = document.get("examples")
    if "examples" not in document:
        raise InvalidArgument(f"When method is {verb}, key 'examples' is expected and was not found")
    if not isinstance(examples, list) or not examples:
        raise InvalidArgument(f"Example list must be a non-empty list, given {debug_text(examples)}")
    context = _message(document["context"], "context").SerializeToString() if "context" in document else b""
    array = np.empty(len(examples), object)
    array[:] = [context + _message(example, f"example {at}").SerializeToString() for at, example in enumerate(examples)]
    return array


def _message(features: Any, where: str) -> Any:
    if not isinstance(features, dict):
        raise InvalidArgument(f"Example must be JSON object but got JSON Value: {debug_text(features)}")
    message = message_class("tensorflow.Example")()
    for name, value in features.items():
        try:
            feature = message.features.feature[name]
        except UnicodeEncodeError:  # half of a surrogate pair
            raise InvalidArgument(f"the name {debug_text(name)} of a feature of {where} is no text") from None
        _add_feature(feature, value, f"feature '{name}' of {where}")
    return message


def _add_feature(feature: Any, value: Any, where: str) -> None:
    values = value if isinstance(value, list) else [value]
    kinds = {_kind(item, where) for item in values}
    if len(kinds) > 1:
        raise InvalidArgument(f"Unexpected element type in feature list: {where} has {' and '.join(sorted(kinds))}")
    for kind in kinds:
        getattr(feature, kind).value.extend(map(_CONVERTERS[kind], values))


def _kind(value: Any, where: str) -> str:
    """The list of a feature that holds a value. Raises InvalidArgument for a value that none holds."""
    if isinstance(value, float):
        return "float_list"
    if isinstance(value, int) and value in _INT64:
        return "int64_list"
    if isinstance(value, str | dict):
        return "bytes_list"
    raise InvalidArgument(f"JSON value: {debug_text(value)} of {where} is no integer, number, string or b64 object")


def classify_body(outputs: Arrays, count: int) -> bytes:
    classes, scores = classifications(outputs, count)
    width = (scores if classes is None else classes).shape[1]
    labels, numbers = ['""'] * (count * width), ["0.0"] * (count * width)
    if classes is not None:
        labels = [string_text(item) for item in classes.reshape(-1).tolist()]
    if scores is not None:
        numbers = float_texts(scores.reshape(-1))
    pairs = [f"[{label}, {number}]" for label, number in zip(labels, numbers, strict=True)]
    rows = (", ".join(pairs[at * width : (at + 1) * width]) for at in range(count))
    return _results(f"[{row}]" for row in rows)


def regress_body(outputs: Arrays, count: int) -> bytes:
    return _results(float_texts(regressions(outputs, count)))


def _results(texts: Any) -> bytes:
    return f'{{"results": [{", ".join(texts)}]}}'.encode("utf-8", "surrogateescape")


WRITERS = {"classify": classify_body, "regress": regress_body}
