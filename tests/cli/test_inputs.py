"""--input: one grammar for every command that has it, and --plugin for every command."""

from __future__ import annotations

import json
import string
from argparse import ArgumentParser
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from builders.graphs import node, placeholder
from heald.api.cli import GivenShape, InputText, inputs_by_name, parse_input
from heald.cli.commands import COMMANDS, of_plugins
from heald.cli.commands.inputs import METAVAR, add_input_shapes, shapes_by_name
from heald.errors import HealdError, InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata
from hypothesis import given, settings
from hypothesis import strategies as st

X = TensorMetadata(dtypes.float32, (None, 2))
NAMES = st.from_regex(r"[A-Za-z][\w./]{0,8}(:\d)?", fullmatch=True)
SHAPES = st.lists(st.integers(0, 10**9), max_size=5).map(tuple)
TYPES = st.sampled_from([None, "float32", "int32", "bool", "string", "bfloat16"])
WITH_INPUT = {"run", "bench", "trace", "diff", "report", "view", "explain", "compile"}


ACTIONS = {"config": ("show", "trust", "untrust"), "tfg": ("print", "parse", "verify", "export", "diff")}


def helps(command: Any) -> dict[str, str]:
    """The help of each command, and of each action of the commands that have actions."""
    names = [*COMMANDS, *(entry.name for entry in of_plugins().usable())]
    calls = [(name, action) for name in names for action in ACTIONS.get(name, ("",))]
    return {f"{name} {action}".strip(): command(name, *filter(None, (action,)), "--help").out for name, action in calls}


def shape_text(dims: tuple[int, ...], form: str) -> str:
    text = ("x" if form == "x" else ", " if form == "spaced" else ",").join(map(str, dims))
    return f"[{text}]" if form == "brackets" else f"({text})" if form == "parentheses" else text


def test_every_command_with_inputs_has_the_one_option(command):
    texts = helps(command)
    assert {name for name, text in texts.items() if "--input" in text} == WITH_INPUT
    assert {name for name, text in texts.items() if f"  --input {METAVAR}" in text} == WITH_INPUT


def test_every_command_takes_plugins(command):
    assert [name for name, text in helps(command).items() if "--plugin FILE" not in text] == []


@settings(deadline=None, max_examples=300)
@given(name=NAMES, dims=SHAPES, dtype=TYPES, form=st.sampled_from(["plain", "x", "spaced", "brackets", "parentheses"]))
def test_a_shape_is_read_alike_by_commands_that_run_and_commands_that_do_not(name, dims, dtype, form):
    text = f"{name}:{shape_text(dims, form)}" + (f":{dtype}" if dtype is not None else "")
    expected = GivenShape(dims, dtype)
    assert inputs_by_name([parse_input(text)], (name,)) == {name: expected}
    assert inputs_by_name([parse_input(text)], (name, "other")) == {name: expected}
    assert shapes_by_name(parsed_shapes(text), {name: None}) == {name: [expected]}
    without_name = text[len(name):]
    assert inputs_by_name([parse_input(without_name)], (name,)) == {name: expected}
    assert shapes_by_name(parsed_shapes(without_name), {name: None}) == {name: [expected]}


@settings(deadline=None, max_examples=300)
@given(name=NAMES, dims=SHAPES, form=st.sampled_from(["plain", "x", "spaced", "brackets", "parentheses"]))
def test_an_equals_sign_stands_for_the_colon_where_shapes_alone_count(name, dims, form):
    text = shape_text(dims, form)
    assert shapes_by_name(parsed_shapes(f"{name}={text}"), {name: None}) == {name: [GivenShape(dims)]}
    assert inputs_by_name([parse_input(f"{name}={text}")], (name,)) == {name: text}


@settings(deadline=None, max_examples=500)
@given(text=st.text(string.printable, max_size=30))
def test_any_text_is_read_or_refused_with_a_typed_error(text):
    for names in ((), ("x",), ("x", "y")):
        with suppress(HealdError):
            inputs_by_name([parse_input(text)], names)
        with suppress(HealdError, SystemExit):
            shapes_by_name(parsed_shapes(text), dict.fromkeys(names))


def parsed_shapes(*texts: str) -> list[InputText]:
    parser = ArgumentParser()
    add_input_shapes(parser)
    return list(parser.parse_args([f"--input={text}" for text in texts]).input)


@pytest.mark.parametrize(("text", "names", "expected"), [
    ("x=3", "x", {"x": "3"}), ("3", "x", {"x": "3"}), ("x=a=b", "x", {"x": "a=b"}), ("x:2,2", "xy", {"x": (2, 2)}),
    ("12:30", "x", {"x": "12:30"}), ("http://host/a", "x", {"x": "http://host/a"}), ("x:", "x", {"x": ()}),
    ("data.npz:key", "x", {"x": "data.npz:key"}), ("x:0=1", "x", {"x:0": "1"}), ("x:0:1,2", "x", {"x:0": (1, 2)}),
    ("z:1,2", "x", {"x": "z:1,2"}), (":1,2", "x", {"x": (1, 2)}), ("1,2", "x", {"x": "1,2"}), ("", "x", {"x": ()}),
])
def test_colons_of_other_texts_stay(text: str, names: str, expected: dict[str, Any]) -> None:
    content = inputs_by_name([parse_input(text)], tuple(names))
    assert {name: value.dims if isinstance(value, GivenShape) else value or () for name, value in content.items()} == (
        expected)


@pytest.mark.parametrize(("texts", "names", "message"), [
    (["3"], "xy", "names no input, and the model has 2 inputs"), (["3"], "", "the model has no inputs"),
    (["x=1", "x:2"], "x", "input 'x' is given twice"), ([":1,2"], "xy", "names no input"),
])
def test_texts_that_name_no_input_or_one_twice_are_errors(texts: list[str], names: str, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        inputs_by_name(map(parse_input, texts), tuple(names))


@pytest.mark.parametrize("text", ["x:3,2", "x:3x2:float32", "x:[3, 2]", ":3,2", "x:3,2:float"])
@pytest.mark.parametrize("name", ["run", "bench", "diff", "trace", "report", "explain", "compile"])
def test_each_command_takes_a_shape(command, saved, tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    model = saved(placeholder("x", (None, 2)), node("y", "Neg", "x"))
    more = {"bench": ("--duration", "0.01"), "diff": ("--device", "EXAMPLE:0"), "report": ("-o", "r.html"),
            "trace": ("-o", "t.json")}.get(name, ())
    done = command(name, model, "--input", text, *more)
    assert done.status == 0, done.err
    if name == "run":
        assert "[3,2]" in done.out or "3,2" in done.out


@pytest.mark.parametrize("name", ["run", "bench", "diff", "trace", "report", "view", "explain", "compile"])
@pytest.mark.parametrize(("text", "message"), [
    ("x:3,3", "[3,3]"), ("x:3,2:int32", "it cannot have type int32"), ("x:3,2:nothing", "nothing")])
def test_each_command_refuses_a_shape_or_type_that_misfits(command, saved, tmp_path, monkeypatch, name, text, message):
    monkeypatch.chdir(tmp_path)
    model = saved(placeholder("x", (None, 2)), node("y", "Neg", "x"))
    more = {"diff": ("--device", "EXAMPLE:0"), "report": ("-o", "r.html")}.get(name, ())
    done = command(name, model, "--input", text, *more)
    assert done.status == 1
    assert message in done.err.replace("(3, 3)", "[3,3]")


@pytest.mark.parametrize("text", ["x=a.npy", "x=b.npz:k", "x=b.npz", "a.npy", "x=[[1, 2], [3, 4], [5, 6]]"])
@pytest.mark.parametrize("name", ["explain", "compile"])
def test_values_stand_for_their_shape(command, saved, tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    array = np.zeros((3, 2), np.float32)
    np.save("a.npy", array)
    np.savez("b.npz", k=array)
    done = command(name, saved(placeholder("x", (None, 2)), node("y", "Neg", "x")), "--input", text, "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)


@pytest.mark.parametrize("content", [
    b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", b"no array", b"\x93NUMPY\x09\x00"])
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_a_damaged_file_of_a_shape_is_an_error(command, saved, tmp_path, monkeypatch, content, suffix):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"a{suffix}").write_bytes(content)
    model = saved(placeholder("x", (None, 2)), node("y", "Neg", "x"))
    for text, message in ((f"x=a{suffix}", "cannot be read"), (f"x=gone{suffix}", "gone")):
        done = command("explain", model, "--input", text)
        assert (done.status, done.out) == (1, "")
        assert message in done.err
        assert "Traceback" not in done.err


def test_a_shape_without_room_is_an_error(command, saved):
    done = command("run", saved(placeholder("x", None), node("y", "Neg", "x")), "--input", "x:999999999,999999999")
    assert done.status == 1
    assert "has no room in memory" in done.err
