"""The recorded answers of tensorflow-text 2.21.1, as graphs of heald and arrays. cases.json has a case a line."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import heald
import numpy as np
from heald.api import Graph, Node, dtypes

DATA = Path(__file__).parent / "data"
Case = dict[str, Any]
TEXTS = ("model", "normalization_form", "string_separator", "suffix_indicator", "unknown_token")  # names of attributes
TYPES = ("T", "Tin", "Tsplits", "Tvalues", "dtype", "out_type")


@cache
def cases() -> list[Case]:
    return json.loads((DATA / "cases.json").read_text("utf-8"))["cases"]


@cache
def models() -> dict[str, bytes]:
    """The models of the recordings, by name."""
    with zipfile.ZipFile(DATA / "models.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def array_of(recorded: list[Any]) -> np.ndarray[Any, Any]:
    """A recorded tensor: its kind, its shape, its elements. A string has a character for each byte."""
    kind, shape, content = recorded
    if kind == "model":
        return np.frombuffer(models()[content], np.uint8)
    if kind == "text":
        return np.array(models()[content], object)
    if kind == "string":
        array = np.empty(len(content), object)
        array[:] = [text.encode("latin1") for text in content]
        return array.reshape(shape)
    return np.array(content, dtypes.named(kind).numpy).reshape(shape)


def attributes_of(recorded: dict[str, Any]) -> dict[str, Any]:
    """Recorded attributes. `@NAME` stands for a model, other texts have a character for each byte."""
    def value(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        return models()[text[1:]] if text.startswith("@") else text.encode("latin1")

    types = {name: dtypes.named(text) for name, text in recorded.items() if name in TYPES}
    return {name: value(text) if name in TEXTS else text for name, text in recorded.items()} | types


def run_case(case: Case, *, as_constants: bool = False) -> list[Any]:
    """The outputs of a case. Its inputs are fed, or constants of the graph."""
    feeds = {name: array_of(recorded) for name, recorded in case.get("feed", {}).items()}
    nodes = [Node(n["name"], n["op"], n["inputs"], attrs=attributes_of(n["attrs"])) for n in case.get("nodes", ())]
    names: list[str] = []
    for number, recorded in enumerate(case["in"]):
        if isinstance(recorded, str):
            names.append(recorded)
            continue
        names.append(f"i{number}")
        array = array_of(recorded)
        dtype = dtypes.named({"model": "uint8", "text": "string"}.get(recorded[0], recorded[0]))
        if as_constants:
            nodes.append(Node(names[-1], "Const", attrs={"dtype": dtype, "value": array}))
        else:
            nodes.append(Node(names[-1], "Placeholder", attrs={"dtype": dtype}))
            feeds[names[-1]] = array
    nodes.append(Node("op", case["op"], names, attrs=attributes_of(case["attrs"])))
    with heald.Session(Graph(nodes)) as session:
        return session.run([f"op:{i}" for i in range(len(case.get("out", [0])))], feeds)


def is_alike(got: Any, want: np.ndarray[Any, Any]) -> bool:
    """True for equal types, shapes and elements; floats may differ in the last digits."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    return bool(np.allclose(got, want, 1e-5, 1e-6)) if want.dtype.kind == "f" else bool(np.array_equal(got, want))
