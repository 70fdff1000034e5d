"""heald config show."""

import json
import os

import pytest


def test_defaults_are_shown_without_their_origin(command):
    lines = command("config", "show").words
    assert lines[0] == ["key", "value"]
    assert ["placement.order", '"auto"'] in lines
    assert ["plugins.allow", "(not", "set)"] in lines


def test_origins_name_file_and_variable(command, tmp_path, monkeypatch):
    (tmp_path / "heald.toml").write_text('[placement]\nfallback = "allow"\n')
    monkeypatch.setenv("HEALD_PLUGINS__STRICT", "true")
    rows_by_key = {row["key"]: row for row in json.loads(command("config", "show", "--json").out)}
    assert rows_by_key["placement.fallback"] == {
        "key": "placement.fallback", "value": "allow", "origin": f"{tmp_path / 'heald.toml'}:2", "ignored": False}
    done = command("config", "show", "--origin")
    assert ["plugins.strict", "true", "environment", "HEALD_PLUGINS__STRICT"] in done.words


def test_a_mistake_in_a_named_file_is_an_error_with_its_place(command, tmp_path):
    (tmp_path / "own.toml").write_text("[placement]\nfalback = 1\n")
    done = command("config", "show", "--config", "own.toml")
    assert done.status == 1
    assert done.err == ("error: own.toml:2: [placement] has no key 'falback'\n"
                        "  hint: did you mean fallback?\n")


MISTAKES = {
    "not TOML": ("x =", "not TOML: "),
    "unknown key": ("[placement]\nfalback = 1", "[placement] has no key 'falback'"),
    "threads": ("[work_queue]\nthreads = 100000", "[work_queue] threads must be from 1 to 4096, not 100000"),
    "work queue": ("[work_queue]\nname = 'x'", "names the work queue 'x', which is not there"),
    "named queue": ("[work_queues.q]\nname = 'x'", "names the work queue 'x', which is not there"),
    "allocator": ("[allocator]\nname = 'x'", "names the allocator 'x', which is not there"),
    "handler": ("[eager]\nhandler = 'x'", "names the op handler 'x', which is not there"),
    "remap": ("[placement]\nremap = {'GPU:0' = '//'}", "'//' is not a device name"),
    "option": ("[plugin.cpu]\ncount = 100000", "count"),
    "plugin without options": ("[plugin.tf_ops]\nx = 1", "takes no settings"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_found_file_is_a_warning_with_its_place_and_the_command_goes_on(
    command, own_runtime, tmp_path, name
):
    toml, message = MISTAKES[name]
    (tmp_path / "heald.toml").write_text(f"{toml}\n")
    done = command("devices", "CPU:0", "--check", "--json")
    assert done.status == 0
    assert json.loads(done.out)[0]["check"] == "PASS"
    (line,) = done.err.splitlines()
    assert line.startswith("warning: ")
    assert message in line
    assert f"{tmp_path / 'heald.toml'}:{1 if name in ('not TOML', 'plugin without options') else 2}" in line


def test_a_file_with_a_mistake_is_not_trusted(command, tmp_path):
    (tmp_path / "heald.toml").write_text("[work_queue]\nthreads = 100000\n")
    done = command("config", "trust", "heald.toml")
    assert done.status == 1
    assert "threads must be from 1 to 4096" in done.err


OPTION_MISTAKES = {
    "another type": ('[plugin.sim]\ndevices = "many"', "plugin.sim.devices must be an integer, not 'many'"),
    "a list of another type": ("[plugin.sim]\nfaults = [1]", "plugin.sim.faults[0] must be a string, not 1"),
    "an unknown option": ("[plugin.sim]\ndevice = 2", "[plugin.sim] has no key 'device'"),
    "a value out of range": ("[plugin.cpu]\ncount = 100000", "count"),
    "an option of a plugin without options": ("[plugin.tf_ops]\nx = 1", "plugin tf_ops takes no settings"),
}


@pytest.mark.parametrize("action", ["show", "trust"])
@pytest.mark.parametrize("name", OPTION_MISTAKES)
def test_a_mistake_in_an_option_of_a_plugin_is_an_error_with_its_place(command, tmp_path, name, action):
    toml, message = OPTION_MISTAKES[name]
    (tmp_path / "heald.toml").write_text(f"{toml}\n")
    (tmp_path / "own.toml").write_text(f"{toml}\n")
    done = command("config", "trust", "heald.toml") if action == "trust" else command(
        "config", "show", "--config", "own.toml")
    assert done.status == 1
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert message in done.err
    assert "tf_ops" in name or f"{'heald' if action == 'trust' else 'own'}.toml:" in done.err


def test_a_variable_with_another_type_than_the_option_is_an_error(command, monkeypatch):
    monkeypatch.setenv("HEALD_PLUGIN__SIM__DEVICES", "many")
    done = command("config", "show")
    assert done.status == 1
    assert "HEALD_PLUGIN__SIM__DEVICES: plugin.sim.devices must be an integer, not 'many'" in done.err


def test_options_of_a_plugin_that_is_not_installed_are_shown_with_a_warning(command, tmp_path):
    (tmp_path / "own.toml").write_text("[plugin.nixda]\na = 1\n")
    done = command("config", "show", "--config", "own.toml")
    assert done.status == 0
    assert ["plugin.nixda.a", "1"] in done.words
    assert "[plugin.nixda] (own.toml:1) is for a plugin that is not installed" in done.err


def test_settings_that_a_found_file_must_not_make_are_shown_as_ignored(command, tmp_path):
    (tmp_path / "heald.toml").write_text('[plugins]\nload = ["evil.py"]\n[plugin.example_device]\ndevices = 2\n')
    done = command("config", "show", "--origin")
    assert ["plugins.load", "[]", "default"] in done.words
    assert ["plugins.load", "(ignored)", f"{tmp_path / 'heald.toml'}:2"] in done.words
    assert ["plugin.example_device.devices", "2", f"{tmp_path / 'heald.toml'}:4"] in done.words
    assert done.err.startswith(f"warning: {tmp_path / 'heald.toml'} was found, not named: it cannot set plugins.load")


def test_trusting_a_file_tells_what_it_sets_beyond_others_and_lets_it(command, tmp_path):
    (tmp_path / "heald.toml").write_text('[debug]\npoison = true\n[placement]\nclear = true\n')
    done = command("config", "trust", "heald.toml")
    assert done.out.startswith(f"{tmp_path / 'heald.toml'} is trusted until it changes.")
    assert ["debug.poison", "true", f"{tmp_path / 'heald.toml'}:2"] in done.words
    assert "placement" not in done.out
    done = command("config", "show", "--origin")
    assert ["debug.poison", "true", f"{tmp_path / 'heald.toml'}:2"] in done.words
    assert done.err == ""
    assert command("config", "untrust", "heald.toml").status == 0
    assert ["debug.poison", "false", "default"] in command("config", "show", "--origin").words


def test_trust_is_for_files_that_a_search_finds(command, tmp_path):
    (tmp_path / "other.toml").write_text("")
    done = command("config", "trust", "other.toml")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("error: 'other.toml' is never found by searching")
    assert command("config", "untrust", "heald.toml").err == (
        "error: 'heald.toml' is not among the trusted config files\n"
        "  hint: heald config show --origin lists the files that count\n")
    assert command("config", "trust", "heald.toml").err.startswith("error: config file")
    assert command("config", "trust").status == 2


def test_a_config_file_that_the_command_line_names_sets_everything(command, tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text("[debug]\npoison = true\n")
    monkeypatch.setenv("HEALD_CONFIG", "before.toml")
    done = command("config", "show", "--origin", "--config", "mine.toml")
    assert ["debug.poison", "true", "mine.toml:2"] in done.words
    assert os.environ["HEALD_CONFIG"] == "before.toml"
    done = command("plugins", "--config", "absent.toml")
    assert done.err == ("error: config file absent.toml does not exist\n"
                        "  hint: environment HEALD_CONFIG or --config names it\n")
