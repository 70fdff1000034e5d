"""Every command shows escapes for text of a model that a terminal would act on."""

from __future__ import annotations

import json
import os
import pty
import shutil
import sys
from pathlib import Path

import heald
import pytest
from builders.graphs import const, graph, node, placeholder
from heald import graphdef
from heald.cli.printing.notices import tell_error
from heald.errors import InvalidArgument, Location
from heald.graphs.graph.attr_value import Func
from heald.graphs.graph.graph import Node
from heald.runtime.values import dtypes

HOSTILE = "\x1b[2J\x1b]0;x\x07\r\t\x00\x7f\x9b31m\u202e\u2066\u2028\x85"
MODELS = Path(__file__).parents[1] / "data" / "saved_models"


def forge_file(model, **replaced):
    """A file's bytes with the text that stands for hostile text replaced, as long as it is."""
    for name, text in replaced.items():
        raw = text.encode()[: len(name)].decode("utf-8", "ignore").encode().ljust(len(name), b"\x1b")
        assert name.encode() in model
        model = model.replace(name.encode(), raw)
    return model


@pytest.fixture
def hostile(tmp_path):
    """A graph of hostile ops, devices, functions and attributes, beside nodes that can run."""
    attrs = {"MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK": b"MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK",
             "_class": [b"loc:@MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK"],
             "f": Func("MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK")}
    hostile_graph = graph(placeholder("x", (2,)), node("y", "Neg", "x"), const("text", [HOSTILE.encode()], object),
                 Node("odd", "MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK", ("x",), device="/device:MARKMARKMARKMARK:0",
                      attrs=attrs),
                 Node("far", "Neg", ("x",), device="/device:MARKMARKMARKMARK:0", attrs={"T": dtypes.float32}),
                 Node("with", "Neg", ("x",), attrs={"T": dtypes.float32, **attrs}))
    path = tmp_path / "hostile.pb"
    graph_bytes = graphdef.dumps(hostile_graph)
    forged = forge_file(graph_bytes, MARKMARKMARKMARKMARKMARKMARKMARKMARKMARK=HOSTILE, MARKMARKMARKMARK=HOSTILE)
    path.write_bytes(forged)
    return path


def assert_shown(done):
    text = done.out + done.err
    assert text
    acting = {c for c in text if not c.isprintable() and c != "\n"}
    assert not acting, f"{acting} in {text}"


COMMANDS = [
    ["inspect"], ["inspect", "--passes"], ["inspect", "--json"], ["explain"], ["explain", "--all", "--json"],
    ["explain", "--fetch", "odd"], ["run", "--input", "x=[1, 2]", "--fetch", "odd"], ["ops", "--missing"],
    ["run", "--input", "x=[1, 2]", "--fetch", "text"], ["run", "--input", "x=[1, 2]", "--fetch", "text", "--json"],
    ["run", "--input", "x=[1, 2]", "--fetch", "far"], ["run", "--input", "x=[1, 2]", "--fetch", HOSTILE[:4]],
    ["run", "--input", "x=[1, 2]", "--fetch", "with"],
    ["diff", "--device", "CPU:0", "--fetch", "odd"], ["diff", "--device", "CPU:0", "--fetch", "far", "--all"],
    ["bench", "--duration", "0.01"],
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_no_command_prints_what_a_terminal_acts_on(command, hostile, arguments):
    first, *more = arguments
    done = command(first, *more, hostile) if more[-1:] == ["--missing"] else command(first, hostile, *more)
    assert_shown(done)
    if "--json" in arguments and done.status == 0:
        json.loads(done.out)


def test_a_model_that_is_refused_is_told_with_escapes(command, tmp_path):
    raw = graphdef.dumps(graph(Node("MARKMARKMARKMARK", "NoOp")))
    (tmp_path / "bad.pb").write_bytes(forge_file(raw, MARKMARKMARKMARK=HOSTILE))
    done = command("inspect", tmp_path / "bad.pb")
    assert_shown(done)
    assert r"\x1b[2J" in done.err


@pytest.mark.parametrize("name", ["serving_default", "serve"])
def test_signatures_and_tags_are_shown_with_escapes(command, tmp_path, name):
    shutil.copytree(MODELS / "keras" / "model", tmp_path / "model")
    file = tmp_path / "model" / "saved_model.pb"
    file.write_bytes(forge_file(file.read_bytes(), **{name: HOSTILE}))
    for arguments in (["inspect"], ["run"], ["explain"]):
        done = command(arguments[0], tmp_path / "model")
        assert_shown(done)


def test_a_command_of_an_odd_name_is_shown_with_escapes(command):
    assert_shown(command(HOSTILE))


def test_files_of_odd_names_are_shown_with_escapes(command, tmp_path, hostile):
    for name in ("\x1b[2J", "half\udc80", "\x9b31m"):
        (tmp_path / f"{name}.pb").write_bytes(hostile.read_bytes())
        for arguments in ([f"{name}.pb"], [f"{name}.pb", "--json"], [f"{name}.nothing"]):
            assert_shown(command("inspect", *arguments))


def test_json_keeps_every_character(command, words_of, tmp_path):
    text = "é\u202e\x9b\x1b\u2028 \\ \""
    report = json.loads(command("run", words_of, "--input", f"s={json.dumps([text])}", "--json").out)
    assert report["outputs"]["t"]["values"] == [text]


@pytest.fixture
def words_of(saved):
    return saved(placeholder("s", (1,), dtypes.string), node("t", "Identity", "s", T=dtypes.string))


def test_a_graph_that_prints_writes_escapes_to_a_terminal(monkeypatch):
    ours, theirs = pty.openpty()
    printing_graph = graph(const("text", HOSTILE.encode(), object),
                 Node("p", "PrintV2", ("text",), attrs={"output_stream": b"stderr", "end": b"\n"}))
    with os.fdopen(ours, "rb", 0) as terminal, os.fdopen(theirs, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        heald.Session(printing_graph).run([], targets="p")
        terminal_bytes = terminal.read(4096)
    assert rb"\x1b[2J\x1b]0;x\x07\r\t\x00\x7f\x9b31m\u202e" in terminal_bytes
    assert b"\x1b" not in terminal_bytes


def test_an_error_of_long_texts_is_told_in_four_kilobytes(capsys):
    error = InvalidArgument("m" * 10**6, node="n" * 10**6, hint="h" * 10**6, location=Location("f" * 10**6))
    error.__cause__ = ValueError("c" * 10**6)
    tell_error(error)
    stderr = capsys.readouterr().err
    assert len(stderr) <= 4096
    assert [line.split()[0] for line in stderr.splitlines()] == ["error:", "hint:", "where:", "cause:"]
