"""Config is typed and closed, every source has its place, and every value knows where it came from."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from heald.errors import InvalidArgument, NotFound, PluginError
from heald.runtime.config.config import Config, load_config, plugin_config
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SECTIONS = "known: plugins, plugin, placement, kernels, allocator, limits, files, work_queue, " \
           "work_queues, passes, eager, cluster, debug"


def load(folder: Path, argument: Any = None, toml: str | None = None, **environ: str) -> Config:
    if toml is not None:
        (folder / "heald.toml").write_text(toml, "utf-8")
        environ = {"HEALD_CONFIG": str(folder / "heald.toml")} | environ
    return load_config(argument, environ={"XDG_CONFIG_HOME": str(folder / "user")} | environ, folder=folder)


def origin(config: Config, key: str) -> str:
    return {row.key: row.origin for row in config.origins()}[key]


def test_each_setting_has_its_default_in_the_absence_of_sources(tmp_path: Path) -> None:
    config = load(tmp_path)
    assert {row.origin for row in config.origins()} == {"default"}
    assert [(row.key, row.value) for row in config.origins()] == [
        ("plugins.block", ()), ("plugins.allow", None), ("plugins.strict", False), ("plugins.load", ()),
        ("placement.order", "auto"), ("placement.fallback", "warn"), ("placement.remap", {}),
        ("placement.provider", {}), ("placement.clear", False), ("placement.statistics", None),
        ("allocator.name", "plain"), ("allocator.limit", None),
        ("limits.memory", "80%"), ("limits.nested_calls", 1000),
        ("files.read", ()), ("files.write", ()), ("files.allow_ops", ()),
        ("work_queue.name", "multi_threaded"), ("work_queue.threads", None), ("work_queue.seed", 0),
        ("passes.disable", ()), ("eager.handler", ""),
        ("eager.asynchronous", "auto"), ("cluster.target", ""), ("cluster.workers", 2), ("cluster.max_steps", 64),
        ("cluster.checkpoint", None),        ("debug.poison", False), ("debug.synchronous", False),
        ("debug.check_types", False),
    ]
    assert Config().placement == config.placement


def test_named_work_queues_are_merged_over_the_sources_by_name_and_key(tmp_path: Path) -> None:
    toml = "[work_queues.slow]\nthreads = 1\nseed = 4\n[work_queues.fast]\nname = 'seeded'\n"
    config = load(tmp_path, {"work_queues": {"slow": {"threads": 2}}}, toml, HEALD_WORK_QUEUES__FAST__THREADS="3")
    slow, fast = config.work_queues["slow"], config.work_queues["fast"]
    assert (slow.name, slow.threads, slow.seed) == ("multi_threaded", 2, 4)
    assert (fast.name, fast.threads, fast.seed) == ("seeded", 3, 0)
    assert origin(config, "work_queues.slow.threads") == "argument"
    assert origin(config, "work_queues.fast.threads") == "environment HEALD_WORK_QUEUES__FAST__THREADS"
    assert list(config.work_queues) == ["fast", "slow"]


@pytest.mark.parametrize(("section", "message"), [
    ({"own": {"threads": 0}}, "[work_queues.own] threads must be from 1 to 4096, not 0"),
    ({"own": {"nmae": "x"}}, "argument: [work_queues.own] has no key 'nmae'; did you mean name?"),
    ({"own": {"seed": "x"}}, "argument: work_queues.own.seed must be an integer, not 'x'"),
    ({"own": 3}, "argument: [work_queues.own] must be a table, not 3"),
    ([], "argument: [work_queues] must be a table, not []"),
])
def test_a_mistake_in_a_named_work_queue_is_an_error_of_its_section(
    section: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load(tmp_path, {"work_queues": section})
    assert message in str(caught.value)


def test_stronger_sources_win_key_by_key_and_each_value_knows_its_own(tmp_path: Path) -> None:
    project = tmp_path / "project" / "deeper"
    project.mkdir(parents=True)
    (tmp_path / "user" / "heald").mkdir(parents=True)
    row = "[allocator]\nname = '{}'\n[placement.remap]\n'A:0' = '{}:0'\n'{}:1' = 'CPU:0'\n"
    files = {
        "user": tmp_path / "user" / "heald" / "config.toml",
        "pyproject": tmp_path / "project" / "pyproject.toml",
        "nearest": tmp_path / "project" / "heald.toml",
        "named": tmp_path / "named.toml",
    }
    kinds = list(files)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "user"), "HEALD_CONFIG": str(files["named"])}
    for name, path in files.items():
        prefix = "tool.heald." if name == "pyproject" else ""
        text = row.format(name, name.upper(), name.upper()).replace("[a", f"[{prefix}a").replace("[p", f"[{prefix}p")
        path.write_text("[other]\nx = 1\n" * (name == "pyproject") + text)
    for i, name in enumerate(kinds):
        variables = {k: v for k, v in environ.items() if k != "HEALD_CONFIG" or name == "named"}
        hidden = [files[k] for k in kinds[i + 1 :] if k != "named"]
        for path in hidden:
            path.rename(path.with_suffix(".hidden"))
        config = load_config(environ=variables, folder=project)
        for path in hidden:
            path.with_suffix(".hidden").rename(path)
        line = 4 if name == "pyproject" else 2
        assert config.allocator.name == name
        assert origin(config, "allocator.name") == f"{files[name]}:{line}"
        remap = {f"{kind.upper()}:1": "CPU:0" for kind in kinds[: i + 1]}
        assert config.placement.remap == remap | {"A:0": f"{name.upper()}:0"}
        assert origin(config, "placement.remap.USER:1") == f"{files['user']}:5"
    environ["HEALD_ALLOCATOR__NAME"] = "environment"
    config = load_config(environ=environ, folder=project)
    assert config.allocator.name == "environment"
    assert origin(config, "allocator.name") == "environment HEALD_ALLOCATOR__NAME"
    config = load_config({"allocator": {"name": "argument"}}, environ=environ, folder=project)
    assert (config.allocator.name, origin(config, "allocator.name")) == ("argument", "argument")
    assert load_config(config, environ={"HEALD_NONSENSE": "1"}) is config


def test_the_argument_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text("\n# words\npassses = 1\n")
    with pytest.raises(InvalidArgument, match=r"given.toml:3: there is no section \[passses\]; did you mean passes?"):
        load(tmp_path, tmp_path / "given.toml")
    with pytest.raises(NotFound, match=r"absent.toml does not exist; config= names it"):
        load(tmp_path, str(tmp_path / "absent.toml"))
    with pytest.raises(InvalidArgument, match="must be a dict, a path or a Config, not int"):
        load(tmp_path, 3)


@pytest.mark.parametrize(
    ("name", "text", "section", "key", "expected"),
    [
        ("HEALD_PLUGINS__STRICT", "1", "plugins", "strict", True),
        ("HEALD_plugins__Strict", "False", "plugins", "strict", False),
        ("HEALD_PLUGINS__BLOCK", "a, b,", "plugins", "block", ("a", "b")),
        ("HEALD_PLUGINS__BLOCK", '["a", "b"]', "plugins", "block", ("a", "b")),
        ("HEALD_PLUGINS__BLOCK", "", "plugins", "block", ()),
        ("HEALD_PLUGINS__ALLOW", "none", "plugins", "allow", None),
        ("HEALD_PLUGINS__ALLOW", "none,", "plugins", "allow", ("none",)),
        ("HEALD_PLACEMENT__ORDER", "auto", "placement", "order", "auto"),
        ("HEALD_PLACEMENT__ORDER", "GPU,CPU", "placement", "order", ("GPU", "CPU")),
        ("HEALD_PLACEMENT__FALLBACK", "error", "placement", "fallback", "error"),
        ("HEALD_PLACEMENT__REMAP", '{"GPU:*" = "OPENCL:0"}', "placement", "remap", {"GPU:*": "OPENCL:0"}),
        ("HEALD_PLACEMENT__REMAP__GPU:1", "CPU:0", "placement", "remap", {"GPU:1": "CPU:0"}),
        ("HEALD_PLACEMENT", "{clear = true}", "placement", "clear", True),
        ("HEALD_ALLOCATOR__NAME", "7", "allocator", "name", "7"),
    ],
)
def test_environment_variables_are_read_by_the_type_of_their_key(
    tmp_path: Path, name: str, text: str, section: str, key: str, expected: object
) -> None:
    config = load(tmp_path, **{name: text})
    assert getattr(getattr(config, section), key) == expected
    assert any(row.origin == f"environment {name}" for row in config.origins()) or expected in ((), {})


def test_names_of_ops_keep_their_case_in_the_environment(tmp_path: Path) -> None:
    config = load(tmp_path, toml="[kernels]\nConv2D = 'a'", HEALD_KERNELS__MatMul="onednn", HEALD_KERNELS='{Add = "b"}')
    assert config.kernels == {"Conv2D": "a", "MatMul": "onednn", "Add": "b"}


WRONG = {
    "HEALD_PLUGINS__STRIKT=1": "environment HEALD_PLUGINS__STRIKT: [plugins] has no key 'strikt'; did you mean strict?",
    "HEALD_FOO__X=1": f"environment HEALD_FOO__X: there is no section [foo]; {SECTIONS}",
    "HEALD_PLUGIN=1": "environment HEALD_PLUGIN: [plugin] must be a table, not '1'",
    "HEALD_PLUGIN__CPU=1": "environment HEALD_PLUGIN__CPU: [plugin.cpu] must be a table, not '1'",
    "HEALD_PLUGINS__STRICT=yes": "environment HEALD_PLUGINS__STRICT: plugins.strict must be true or false, not 'yes'",
    "HEALD_PLACEMENT__FALLBACK=eror": "environment HEALD_PLACEMENT__FALLBACK: placement.fallback must be 'allow' or "
    "'warn' or 'error', not 'eror'",
    "HEALD_PLACEMENT__REMAP={a": "environment HEALD_PLACEMENT__REMAP: placement.remap cannot be read as TOML",
    "HEALD_PLUGINS__BLOCK=[1]": "environment HEALD_PLUGINS__BLOCK: plugins.block[0] must be a string, not 1",
    "[plugins]\nstrict = 1": "heald.toml:2: plugins.strict must be true or false, not 1",
    "[plugins]\nload = [\n  'a.py',\n  3,\n]": "heald.toml:2: plugins.load[1] must be a string, not 3",
    "[plugins]\nload = [\n  'a.py',\n]\nblock = 4": "heald.toml:5: plugins.block must be a list, each item a string",
    "[placement]\nremap = {'GPU:*' = 3}": "heald.toml:2: placement.remap.GPU:* must be a string, not 3",
    "x = '''\n[a]\n'''\n": "heald.toml:1: there is no section [x]",
    "[[placement.remap]]\n": "heald.toml:1: placement.remap must be a table, not [{}]",
    "placement = 3": "heald.toml:1: [placement] must be a table, not 3",
    "[passes]\nzzz = 1": "heald.toml:2: [passes] has no key 'zzz'; known: disable",
    "[plugins.zzz]\na = 1": "heald.toml:1: [plugins] has no key 'zzz'; known: block, allow, strict, load; "
                            "options of a plugin are in [plugin.ID]",
    "[cluster]\ntarget = 'ray'\nworkers = 0": "heald.toml:3: [cluster] workers is 0; give a number of 1 or more",
    "[cluster]\nmax_steps = true": "heald.toml:2: cluster.max_steps must be an integer, not True",
    "HEALD_CLUSTER__MAX_STEPS=-1": "environment HEALD_CLUSTER__MAX_STEPS: [cluster] max_steps is -1; give a number",
    "[limits]\nnested_calls = 0": "heald.toml:2: [limits] nested_calls is 0, not 1 or more",
    "[placement.remap]\n'GPU:0' = 'a:b:c'": "heald.toml:2: [placement] remap: ",
    "a = 1\n b 2": "heald.toml:2:4: not TOML",
    "a = [": "heald.toml:1: not TOML",
}


@pytest.mark.parametrize("toml_text", WRONG)
def test_a_mistake_is_an_error_that_says_where_what_and_what_instead(tmp_path: Path, toml_text: str) -> None:
    name, _, text = toml_text.partition("=")
    with pytest.raises(InvalidArgument) as caught:
        load(tmp_path, **{name: text}) if name.startswith("HEALD_") else load(tmp_path, toml=toml_text)
    assert WRONG[toml_text] in str(caught.value)


def test_a_mistake_shows_even_where_it_is_overridden(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"heald.toml:2: plugins.strict must be"):
        load(tmp_path, {"plugins": {"strict": True}}, "[plugins]\nstrict = 'yes'")


def test_paths_can_be_absolute_for_another_folder_and_keep_all_else(tmp_path: Path) -> None:
    toml = ("[placement]\nremap = {'GPU:*' = 'CPU:0'}\n[kernels]\nAdd = 'b'\n[work_queues.slow]\nthreads = 1\n"
            "[plugin.X-y]\nname = 'n'\n")
    argument = {"placement": {"statistics": "s"}, "plugins": {"load": ["a.py", "b.c"]}, "cluster": {"checkpoint": "c"},
                "files": {"read": ["d", "/e"]}}
    config = load(tmp_path, argument, toml, HEALD_PLUGIN__X_Y__PRECISION="3", HEALD_FILES="{write = ['f', 'g/h']}")
    moved = config.with_absolute_paths()
    assert moved.placement.statistics == str(Path("s").absolute())
    assert moved.plugins.load == (str(Path("a.py").absolute()), "b.c")
    assert moved.cluster.checkpoint == str(Path("c").absolute())
    assert moved.files.read == (str(Path("d").absolute()), str(Path("/e").absolute()))
    assert moved.files.write == (str(Path("f").absolute()), str(Path("g/h").absolute()))
    paths = {"placement.statistics", "plugins.load", "cluster.checkpoint", "files.read", "files.write"}
    assert [row for row in moved.origins() if row.key not in paths] == [
        row for row in config.origins() if row.key not in paths]
    assert [(row.key, row.origin) for row in moved.origins()] == [(row.key, row.origin) for row in config.origins()]
    assert moved.plugin("X-y") == {"name": "n", "precision": "3"}
    assert [*Config().with_absolute_paths().origins()] == [*Config().origins()]


def test_the_file_that_the_environment_names_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nope.toml does not exist; environment HEALD_CONFIG or --config names it"):
        load(tmp_path, HEALD_CONFIG=str(tmp_path / "nope.toml"))
    (tmp_path / "latin.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(InvalidArgument, match=r"latin.toml cannot be read"):
        load(tmp_path, HEALD_CONFIG=str(tmp_path / "latin.toml"))


def test_paths_of_plugins_are_meant_from_the_file_that_names_them(tmp_path: Path) -> None:
    config = load(tmp_path, toml="[plugins]\nload = ['./a.py', 'b.c', '/d/e.py']")
    assert config.plugins.load == (str(tmp_path / "a.py"), "b.c", "/d/e.py")


@dataclass(frozen=True)
class Settings:
    required: int
    size: float = 1.0
    text: str = ""
    flag: bool = False
    pair: tuple[int, str] = (0, "")
    many: list[int] = field(default_factory=list)
    table: dict[str, float] = field(default_factory=dict)
    maybe: int | None = None
    mode: Literal["a", "b"] | int = "a"
    anything: Any = None


def test_a_plugins_section_is_checked_against_its_dataclass(tmp_path: Path) -> None:
    toml = """
        [plugin.my-plugin]
        required = 1
        size = 2
        pair = [3, "x"]
        table = {a = 1.5, b = 2.0}
        anything = {deep = [{er = 1}]}
    """
    environ = {"FLAG": "true", "MAYBE": "7", "MODE": "b", "MANY": "1,2", "TABLE": "{b = 3.0}", "TEXT": "{not a table"}
    config = load(tmp_path, toml=toml, **{f"HEALD_PLUGIN__MY_PLUGIN__{k}": v for k, v in environ.items()})
    assert plugin_config(config, "My_Plugin", Settings) == Settings(
        1, 2.0, "{not a table", True, (3, "x"), [1, 2], {"a": 1.5, "b": 3.0}, 7, "b", {"deep": [{"er": 1}]}
    )
    assert config.plugin("my-plugin")["maybe"] == "7"
    assert config.plugin("other") == {}
    assert origin(config, "plugin.my-plugin.size") == f"{tmp_path / 'heald.toml'}:4"
    (section,) = config.plugin_sections()
    assert (section.key, section.origin) == ("my_plugin", "environment HEALD_PLUGIN__MY_PLUGIN__MAYBE")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({}, "plugin.p.required has no default and is not set; set it in heald.toml or as HEALD_PLUGIN__P__REQUIRED"),
        ({"required": True}, "argument: plugin.p.required must be an integer, not True"),
        ({"required": 1.0}, "plugin.p.required must be an integer, not 1.0"),
        ({"required": 1, "pair": [1]}, "argument: plugin.p.pair must have 2 items, not 1"),
        ({"required": 1, "mode": 1.5}, "plugin.p.mode must be 'a' or 'b' or an integer, not 1.5"),
        ({"required": 1, "maybe": "x"}, "plugin.p.maybe must be an integer or none, not 'x'"),
        ({"required": 1, "table": {"a": "x"}}, "plugin.p.table.a must be a number, not 'x'"),
        ({"required": 1, "mod": "a"}, "argument: [plugin.p] has no key 'mod'; did you mean mode?"),
    ],
)
def test_a_wrong_plugin_setting_names_key_and_origin(tmp_path: Path, setting: dict[str, Any], message: str) -> None:
    config = load(tmp_path, {"plugin": {"p": setting}})
    with pytest.raises(InvalidArgument) as caught:
        plugin_config(config, "p", Settings)
    assert message in str(caught.value)


def test_a_class_that_config_cannot_fill_is_the_plugins_fault() -> None:
    @dataclass(frozen=True)
    class Odd:
        path: Path = Path()

    config = load_config({"plugin": {"p": {"path": "x"}}}, environ={})
    with pytest.raises(PluginError, match=r"plugin\.p\.path is declared as .*Path.*, which config cannot read; use"):
        plugin_config(config, "p", Odd)
    with pytest.raises(PluginError, match="are not declared as a frozen dataclass"):
        plugin_config(config, "p", dict)


WORDS = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=8).filter(lambda w: w != "none")
TEXTS = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)
DEVICES = st.from_regex(r"[A-Z][a-z_]{0,4}:([0-9]{1,3}|\*)", fullmatch=True)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    strict=st.booleans(), block=st.lists(WORDS, max_size=3), remap=st.dictionaries(DEVICES, DEVICES, max_size=3),
    name=TEXTS, number=st.integers(-(2**40), 2**40), real=st.floats(allow_nan=False), commas=st.booleans(),
)
def test_environment_and_toml_say_the_same(
    tmp_path: Path, strict: bool, block: list[str], remap: dict[str, str], name: str, number: int, real: float,
    commas: bool,
) -> None:
    table = "{" + ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in remap.items()) + "}"
    text = repr(real)
    toml = f"""
        [plugins]
        strict = {json.dumps(strict)}
        block = {json.dumps(block)}
        [placement]
        remap = {table}
        [allocator]
        name = {json.dumps(name)}
        [plugin.p]
        required = {number}
        size = {text}
    """
    environ = {
        "HEALD_PLUGINS__STRICT": str(strict), "HEALD_PLUGINS__BLOCK": ",".join(block) if commas else json.dumps(block),
        "HEALD_PLACEMENT__REMAP": table, "HEALD_ALLOCATOR__NAME": name, "HEALD_PLUGIN__P__REQUIRED": str(number),
        "HEALD_PLUGIN__P__SIZE": text,
    }
    empty = tmp_path / "empty"
    empty.mkdir(exist_ok=True)
    from_file, from_environment = load(tmp_path, toml=toml), load(empty, **environ)
    argument = {"plugins": {"strict": strict, "block": block}, "placement": {"remap": remap},
                "allocator": {"name": name}, "plugin": {"p": {"required": number, "size": real}}}
    for config in (from_environment, load(empty, argument)):
        for section in ("plugins", "placement", "allocator", "kernels"):
            assert getattr(config, section) == getattr(from_file, section)
        assert plugin_config(config, "p", Settings) == plugin_config(from_file, "p", Settings)
