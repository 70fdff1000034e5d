"""Commands of plugins: registered by a hook, chosen by name, and refused loudly."""

from __future__ import annotations

import sys
from itertools import permutations
from pathlib import Path

import heald.api.cli
import pytest
from heald.cli.commands import COMMANDS
from heald.errors import PluginError
from heald.runtime.contract.command import RESERVED, Command, CommandRegistry
from heald.runtime.contract.hookspecs import CommandRegistrar, Contribution
from heald.runtime.discovery import discovery
from heald.runtime.support import install
from hypothesis import given
from hypothesis import strategies as st

HEAD = """
from heald.api import hookimpl

HEALD_API = (1, 0)
{imports}

@hookimpl
def heald_commands(registry):
    registry.add("{name}", help="greet 100% of people", add_arguments={add_arguments}, run={run})

def add_arguments(parser):
    parser.add_argument("--count", type=positive, default=1)

def run(args):
    {body}
"""
CLI = "from heald.api.cli import positive, say, show_json"


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """Writes a one-file plugin that brings a command; its module is forgotten afterwards."""

    def write(file, body="return 0", name="greet", imports=CLI, add_arguments="add_arguments", run="run"):
        monkeypatch.delitem(sys.modules, file, raising=False)
        path = Path(tmp_path, f"{file}.py")
        path.write_text(HEAD.format(name=name, body=body, imports=imports, add_arguments=add_arguments, run=run))
        written.append(file)
        return str(path)

    written: list[str] = []
    yield write
    for file in written:
        sys.modules.pop(file, None)


def test_a_one_file_plugin_brings_a_command(command, plugin):
    file = plugin("greeting_one", "say(f'hello {args.count}'); return 3")
    assert command("greet", "--plugin", file, "--count", "2") == (3, "hello 2\n", "")


def test_options_of_a_plugins_command_are_checked_as_others_are(command, plugin):
    done = command("greet", "--plugin", plugin("greeting_checked"), "--count", "0")
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("error: argument --count: '0' is no whole number from 1 on, such as 10\n")


def test_the_help_of_a_plugins_command_has_its_options_and_the_common_ones(command, plugin):
    done = command("greet", "--plugin", plugin("greeting_helped"), "--help")
    assert done.out.startswith("usage: heald greet [-h] [--config FILE] [--plugin FILE] [--count COUNT]\n")
    assert "\nGreet 100% of people.\n" in done.out


@pytest.mark.parametrize("source", ["--config", "HEALD_CONFIG"])
def test_a_config_file_loads_the_plugin_of_a_command(command, plugin, tmp_path, monkeypatch, source):
    plugin("greeting_loaded", "say('hello'); return 0")
    config = tmp_path / "settings.toml"
    config.write_text('[plugins]\nload = ["./greeting_loaded.py"]\n')
    if source == "--config":
        assert command("greet", "--config", config) == (0, "hello\n", "")
        return
    monkeypatch.setenv(source, str(config))
    assert command("greet") == (0, "hello\n", "")
    assert "    greet       greet 100% of people\n" in command("--help").out


def test_functions_of_a_command_are_imported_when_it_is_chosen(command, plugin, tmp_path, monkeypatch):
    (tmp_path / "greeting_work.py").write_text("def options(parser): pass\ndef work(args):\n    return 5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = plugin("greeting_lazy", add_arguments="'greeting_work:options'", run="'greeting_work:work'")
    command("plugins", "--plugin", file)
    command("--help")
    assert "greeting_work" not in sys.modules
    try:
        assert command("greet").status == 5
    finally:
        sys.modules.pop("greeting_work", None)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"body": "1 / 0"}, "error: ZeroDivisionError: division by zero, raised at "),
    ({"body": "return None"}, "error: command 'greet' of plugin greeting_bad returned None, not a status\n"
                              "  hint: return 0 when"),
    ({"run": "'greeting_absent:run'"}, "error: command 'greet' of plugin greeting_bad raised ModuleNotFoundError: "),
    ({"run": "'json:absent'"}, "error: command 'greet' of plugin greeting_bad raised PluginError: 'json:absent' "),
    ({"add_arguments": "lambda parser: parser.add_argument('--config')"},
     "error: command 'greet' of plugin greeting_bad raised ArgumentError: argument --config: conflicting option"),
    ({"body": "raise FileNotFoundError(2, 'No such file or directory', 'x.txt')"},
     "error: x.txt: No such file or directory\n"),
], ids=["run", "status", "module", "function", "arguments", "system"])
def test_a_fault_of_a_command_is_told_with_its_plugin(command, plugin, arguments, message):
    done = command("greet", "--plugin", plugin("greeting_bad", **arguments))
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith(message)


@pytest.mark.parametrize("body", ["1 / 0", "len(3)", "import json; json.loads('{')"],
                         ids=["own", "own call", "library"])
def test_a_fault_of_a_command_has_the_line_of_the_plugins_own_code(command, plugin, body):
    file = plugin("greeting_bad", body=body)
    done = command("greet", "--plugin", file)
    line = next(n for n, text in enumerate(Path(file).read_text().splitlines(), 1) if body in text)
    assert f", raised at {file}:{line}\n  hint: this is a fault of plugin greeting_bad: " in done.err


def test_two_plugins_with_a_command_of_one_name_are_a_conflict_and_neither_runs(command, plugin):
    files = [word for name in ("greeting_a", "greeting_b") for word in ("--plugin", plugin(name))]
    assert command("greet", *files) == (1, "", (
        "warning: plugin greeting_a: command 'greet' is brought by plugin greeting_b too: none is used; "
        "set [plugins] block = ['greeting_a'] or ['greeting_b']\n"
        "error: command 'greet' is brought by plugins greeting_a and greeting_b: none of them is used\n"
        "  hint: set [plugins] block = ['greeting_a'] or ['greeting_b']\n"))
    rows = {record.id: record for record in heald.plugins()}
    assert [(rows[name].status, rows[name].reason, rows[name].remedy) for name in ("greeting_a", "greeting_b")] == [
        ("conflict", f"command 'greet' is brought by plugin {other} too: none is used",
         "set [plugins] block = ['greeting_a'] or ['greeting_b']") for other in ("greeting_b", "greeting_a")]
    assert "    greet " not in command("--help").out


def test_a_command_of_cores_name_is_a_conflict_and_cores_runs(command, plugin):
    file = plugin("greeting_core", "say('not core'); return 0", name="config")
    done = command("plugins", "--plugin", file)
    (row,) = [line for line in done.words if line[0] == "greeting_core"]
    assert row[1] == "conflict"
    (record,) = [record for record in heald.plugins() if record.id == "greeting_core"]
    assert (record.status, record.reason) == ("conflict", "command 'config' is core's: the plugin's is not used")
    done = command("config", "show")
    assert done.status == 0
    assert "not core" not in done.out


def test_a_command_of_tools_is_never_replaced(command, plugin):
    done = command("bench", "model.pb", "--plugin", plugin("greeting_bench", name="bench"))
    assert done.err.splitlines()[1].startswith(
        "error: command 'bench' is brought by plugins greeting_bench and tools: none of them")


@pytest.mark.parametrize("name", sorted(install.COMMANDS))
def test_a_command_of_a_distribution_that_is_not_installed_names_the_remedy(command, monkeypatch, name):
    monkeypatch.setattr(discovery, "plugin_distributions", lambda _: [])
    monkeypatch.delenv("HEALD_PLUGINS__BLOCK", raising=False)
    assert command(name, "model.pb") == (
        2, "", f"heald {name}: not installed: {install.install_hint(install.COMMANDS[name])}\n")


def test_a_command_of_a_distribution_that_is_blocked_is_told_so(command, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGINS__BLOCK", "tools")
    done = command("bench", "model.pb")
    assert (done.status, done.err.splitlines()[0]) == (1, "error: plugin tools is blocked: [plugins] block names it")


@pytest.mark.parametrize(("name", "remedy"), [
    ("benhc", "did you mean bench?"), ("inspekt", "did you mean inspect?"), ("zzz", "heald --help lists them")])
def test_a_name_that_no_command_has_is_told_with_the_nearest(command, name, remedy):
    assert command(name) == (2, "", "usage: heald [-h] [--version] COMMAND ...\n"
                                    f"heald: error: no command is called '{name}'; {remedy}\n")


def test_help_lists_cores_commands_when_plugins_cannot_be_loaded(command, monkeypatch):
    monkeypatch.setenv("HEALD_CONFIG", "nothere.toml")
    done = command("--help")
    assert done.status == 0
    assert done.err.startswith("error: ")
    assert "nothere.toml" in done.err
    assert "    inspect " in done.out
    assert "    bench " not in done.out


def test_the_names_that_core_reserves_are_those_of_its_commands():
    assert set(RESERVED) == set(COMMANDS)


@pytest.mark.parametrize(("changed", "message"), [
    ({"name": "Greet"}, "command 'Greet' must be written in small letters"),
    ({"name": "-x"}, "command '-x' must be written in small letters"),
    ({"help": " "}, "command 'greet' has the help ' '"), ({"help": "a\nb"}, "has the help"),
    ({"run": "module"}, "command 'greet' has run='module'"), ({"run": 3}, "has run=3"),
    ({"add_arguments": None}, "command 'greet' has add_arguments=None"),
])
def test_a_registration_that_cannot_work_is_refused(changed, message):
    registration = {"name": "greet", "help": "greet", "add_arguments": "a.b:c", "run": len} | changed
    with pytest.raises(PluginError, match=message):
        CommandRegistrar(Contribution("x")).add(registration.pop("name"), **registration)


def test_a_plugin_registers_a_name_once():
    registrar = CommandRegistrar(Contribution("x"))
    registrar.add("greet", help="greet", add_arguments=print, run=len)
    with pytest.raises(PluginError, match="command 'greet' is registered twice"):
        registrar.add("greet", help="greet", add_arguments=print, run=len)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "ops"]), st.sampled_from("xyz")), max_size=4, unique=True))
def test_the_order_of_plugins_decides_nothing(pairs):
    winners = set()
    for order in permutations(pairs):
        registry = CommandRegistry()
        for name, plugin_id in order:
            registry.add(Command(name, "help", print, len, plugin_id))
        winners.add((tuple(registry.usable()), frozenset(registry.conflicts())))
    assert len(winners) == 1
    (usable, conflicts) = winners.pop()
    assert {plugin for _, plugin in pairs} == {c.plugin for c in usable} | {c.plugin for c in conflicts}


def test_the_example_of_the_page_prints_what_the_page_says(command, digits, tmp_path):
    page = Path(__file__).parents[2].joinpath("docs", "commands.md").read_text("utf-8")
    source, line, printed = (text.partition("\n")[2] for text in page.split("```")[1:6:2])
    (tmp_path / "largest.py").write_text(source)
    (_, *words) = line.replace("examples/digits", str(digits)).split()
    try:
        assert command(*words) == (0, printed, "")
    finally:
        sys.modules.pop("largest", None)


def test_the_contract_of_commands_has_every_name_it_lists():
    assert all(getattr(heald.api.cli, name) is not None for name in heald.api.cli.__all__)
    assert dir(heald.api.cli) == sorted(heald.api.cli.__all__)
    with pytest.raises(AttributeError, match=r"module 'heald\.api\.cli' has no attribute 'nothing'"):
        heald.api.cli.nothing  # noqa: B018


@pytest.mark.parametrize("name", [*COMMANDS, "config show", "run", "bench", "trace", "diff", "scan", "doctor"])
def test_every_command_takes_plugins_of_one_file(command, name):
    done = command(*name.split(), "--help")
    assert (done.status, "--plugin FILE" in done.out) == (0, name != "config")  # its actions have it


def test_config_show_knows_the_settings_of_a_plugin_that_is_brought(command, tmp_path):
    plugin = tmp_path / "brought_settings.py"
    plugin.write_text("from dataclasses import dataclass\nHEALD_API = (1, 0)\n@dataclass(frozen=True)\nclass Config:\n"
                      "    level: int = 7\n")
    assert "plugin.brought_settings.level" in command("config", "show", "--plugin", str(plugin)).out
