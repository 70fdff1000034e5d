"""weft config show."""

import json


def test_defaults_are_shown_without_their_origin(command):
    lines = command("config", "show").words
    assert lines[0] == ["key", "value"]
    assert ["placement.order", '"auto"'] in lines
    assert ["plugins.allow", "(not", "set)"] in lines


def test_origins_name_file_and_variable(command, tmp_path, monkeypatch):
    (tmp_path / "weft.toml").write_text('[placement]\nfallback = "allow"\n')
    monkeypatch.setenv("WEFT_PLUGINS__STRICT", "true")
    found = {row["key"]: row for row in json.loads(command("config", "show", "--json").out)}
    assert found["placement.fallback"] == {
        "key": "placement.fallback", "value": "allow", "origin": f"{tmp_path / 'weft.toml'}:2"}
    done = command("config", "show", "--origin")
    assert ["plugins.strict", "true", "environment", "WEFT_PLUGINS__STRICT"] in done.words


def test_a_mistake_is_told_with_its_place(command, tmp_path):
    (tmp_path / "weft.toml").write_text("[placement]\nfalback = 1\n")
    done = command("config", "show")
    assert done.status == 1
    assert done.err == (f"error: {tmp_path / 'weft.toml'}:2: [placement] has no key 'falback'\n"
                        "  hint: did you mean fallback?\n")
