"""A config file that was found by searching sets harmless things; the rest of it needs the user's word."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from harness.another_user import POSIX, give_away
from heald.errors import HealdError, HealdWarning, InvalidArgument
from heald.runtime.config.config import HARMLESS_SETTINGS, SECTIONS, Config, load_config, plugin_config
from heald.runtime.config.search import project_files
from heald.runtime.config.trust import digest, set_trust
from heald.runtime.discovery.discovery import Plugins, load_plugins

HOSTILE = """\
[plugins]
load = ["evil.py"]
allow = ["evil"]
strict = true
block = ["some"]
[placement]
order = ["GPU"]
fallback = "error"
remap = { "GPU:*" = "CPU:0" }
clear = true
[kernels]
MatMul = "other"
[allocator]
name = "pooled"
limit = "1GiB"
[work_queue]
name = "single_threaded"
threads = 2
seed = 7
[passes]
disable = ["fusion"]
[debug]
poison = true
[plugin.p]
number = 3
switch = true
text = "x"
marked = "y"
either = "z"
names = ["n"]
"""
IGNORED = {"plugins.load": 2, "plugins.allow": 3, "plugins.strict": 4, "allocator.limit": 15, "debug.poison": 23,
           "plugin.p.text": 27, "plugin.p.either": 29, "plugin.p.names": 30}


@dataclass(frozen=True)
class Options:
    number: int = 0
    switch: bool = False
    text: str = ""
    marked: str = field(default="", metadata={"found": True})
    either: int | str = 0
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("number is negative")


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The user's config folder."""
    folder = tmp_path / "user" / "heald"
    folder.mkdir(parents=True, mode=0o700)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def load(folder: Path, user: Path, **environ: str) -> Config:
    return load_config(environ={"XDG_CONFIG_HOME": str(user.parent)} | environ, folder=folder)


def warning_texts(config: Config) -> list[str]:
    return list(config.warnings({"p": Options()}))


def ignored_keys(config: Config) -> set[str]:
    return {row.key for row in config.ignored_rows({"p": Options()})}


@pytest.fixture
def hostile(project: Path) -> Path:
    path = project / "heald.toml"
    path.write_text(HOSTILE)
    return path


def test_a_found_file_sets_what_is_harmless_and_nothing_else(hostile: Path, user: Path) -> None:
    config = load(hostile.parent, user)
    assert (config.plugins.load, config.plugins.allow, config.plugins.strict) == ((), None, False)
    assert (config.allocator.limit, config.debug.poison) == (None, False)
    assert (config.plugins.block, config.allocator.name, config.passes.disable) == (("some",), "pooled", ("fusion",))
    assert (config.placement.order, config.placement.fallback) == (("GPU",), "error")
    assert (config.placement.remap, config.placement.clear) == ({"GPU:*": "CPU:0"}, True)
    assert config.kernels == {"MatMul": "other"}
    assert (config.work_queue.name, config.work_queue.threads, config.work_queue.seed) == ("single_threaded", 2, 7)
    assert plugin_config(config, "p", Options) == Options(number=3, switch=True, marked="y")


def test_one_warning_names_every_ignored_key_with_its_line_and_the_remedy(hostile: Path, user: Path) -> None:
    (text,) = warning_texts(load(hostile.parent, user))
    for key, line in IGNORED.items():
        assert f"{key} (line {line})" in text
    assert text.startswith(f"{hostile} was found, not named: it cannot set ")
    assert text.endswith(f"; to let it: heald config trust {hostile}, or --config {hostile}")
    assert text.count("(line ") == len(IGNORED)


def test_a_file_that_sets_harmless_things_only_is_no_warning(project: Path, user: Path) -> None:
    (project / "heald.toml").write_text("[placement]\nfallback = 'allow'\n[plugin.p]\nnumber = 1\nmarked = 'a'\n")
    assert warning_texts(load(project, user)) == []


def test_a_found_file_may_describe_named_work_queues_as_the_one_work_queue(project: Path, user: Path) -> None:
    (project / "heald.toml").write_text("[work_queues.own]\nname = 'seeded'\nthreads = 2\nseed = 3\n")
    config = load(project, user)
    assert (config.work_queues["own"].name, config.work_queues["own"].threads) == ("seeded", 2)
    assert warning_texts(config) == []


def test_every_name_in_the_table_of_harmless_settings_exists() -> None:
    config = Config()
    config_keys = {row.key for row in config.origins()}
    assert config_keys >= HARMLESS_SETTINGS
    assert {key.partition(".")[0] for key in HARMLESS_SETTINGS} < set(SECTIONS)


def test_the_table_of_a_pyproject_is_found_like_any_file(project: Path, user: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.heald]\nplugins.load = ['evil.py']\nplacement.clear = true\n")
    config = load(project, user)
    assert (config.plugins.load, config.placement.clear) == ((), True)
    assert "plugins.load (line 2)" in warning_texts(config)[0]


def test_a_stronger_ignored_setting_hides_no_weaker_one_of_the_user(hostile: Path, user: Path) -> None:
    (user / "config.toml").write_text("[plugins]\nload = ['mine']\n[plugin.p]\ntext = 'mine'\n")
    config = load(hostile.parent, user)
    assert config.plugins.load == ("mine",)
    assert plugin_config(config, "p", Options).text == "mine"
    assert {row.key: row.value for row in config.origins({"p": Options()})}["plugin.p.text"] == "mine"


@pytest.mark.parametrize("how", ["config=", "HEALD_CONFIG", "the user's file"])
def test_a_file_that_the_user_named_or_owns_sets_everything(hostile: Path, user: Path, how: str) -> None:
    if how == "config=":
        config = load_config(hostile, environ={"XDG_CONFIG_HOME": str(user.parent)}, folder=hostile.parent)
    elif how == "HEALD_CONFIG":
        config = load(hostile.parent, user, HEALD_CONFIG=str(hostile))
    else:
        (user / "config.toml").write_text(HOSTILE)
        config = load(user, user)
    assert config.plugins.strict
    assert config.plugins.load[0].endswith("evil.py")
    assert (warning_texts(config), ignored_keys(config)) == ([], set())


def test_a_trusted_file_sets_everything_until_it_changes(hostile: Path, user: Path) -> None:
    assert not set_trust(user, hostile, digest(hostile.read_bytes()))
    assert load(hostile.parent, user).plugins.load == (str(hostile.parent / "evil.py"),)
    assert warning_texts(load(hostile.parent, user)) == []
    hostile.write_text(HOSTILE + "# changed\n")
    config = load(hostile.parent, user)
    assert config.plugins.load == ()
    assert warning_texts(config)[0].startswith(f"{hostile} has changed since it was trusted: it cannot set ")
    assert set_trust(user, hostile, None)
    assert warning_texts(load(hostile.parent, user))[0].startswith(f"{hostile} was found, not named")


def test_trust_belongs_to_one_path(hostile: Path, user: Path, tmp_path: Path) -> None:
    set_trust(user, hostile, digest(hostile.read_bytes()))
    other = tmp_path / "other"
    other.mkdir()
    (other / "heald.toml").write_text(HOSTILE)
    assert load(other, user).plugins.load == ()


@POSIX
def test_the_list_of_trusted_files_is_the_users_alone(hostile: Path, tmp_path: Path) -> None:
    user = tmp_path / "fresh" / "heald"
    set_trust(user, hostile, digest(hostile.read_bytes()))
    modes = [path.stat().st_mode & 0o777 for path in (user.parent, user, user / "trusted.json")]
    assert modes == [0o700, 0o700, 0o600]
    (user / "trusted.json").chmod(0o666)
    assert load(hostile.parent, user).plugins.load == ()


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "[" * 100_000])
def test_a_damaged_list_of_trusted_files_is_an_error_that_names_it(project: Path, user: Path, text: str) -> None:
    (user / "trusted.json").write_text(text)
    with pytest.raises(InvalidArgument, match=r"the list of trusted config files .*trusted.json cannot be read"):
        load(project, user)


@pytest.mark.parametrize("mark", [".git", "pyproject.toml"])
def test_the_search_ends_at_the_root_of_the_project(project: Path, mark: str) -> None:
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    (project / "heald.toml").write_text("")
    assert list(project_files(deep)) == [project / "heald.toml"]
    (project / "a" / mark).write_text("")
    assert project / "heald.toml" not in list(project_files(deep))
    (project / "a" / "heald.toml").write_text("")
    assert next(project_files(deep)) == project / "a" / "heald.toml"


@POSIX
@pytest.mark.parametrize("name", ["heald.toml", "pyproject.toml"])
def test_a_found_file_of_another_user_is_skipped_with_a_warning(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (project / name).write_text("[tool.heald]\nthis is not TOML")
    give_away(project / name, monkeypatch)
    (text,) = warning_texts(load(project, user))
    assert text == (f"{project / name} belongs to another user and is not used; "
                    f"to use it: heald config trust {project / name}")


@POSIX
def test_a_pyproject_of_another_user_without_our_table_is_no_warning(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text("[project]\nname = 'heald'\n[tool.heald-other]\nx = 1\n")
    give_away(project / "pyproject.toml", monkeypatch)
    assert warning_texts(load(project, user)) == []


def test_a_pyproject_without_our_name_is_not_parsed(project: Path, user: Path) -> None:
    (project / "pyproject.toml").write_text("this is not TOML")
    assert warning_texts(load(project, user)) == []


def test_a_pyproject_without_our_table_is_parsed_once(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "pyproject.toml"
    file.write_text('[project]\nname = "heald-x"\n[tool]\nother = {}\n')
    load(project, user)
    with monkeypatch.context() as patch:
        patch.setattr("heald.runtime.config.file.parse", None)
        assert load(project, user).placement.order == "auto"
    file.write_text('[project]\nname = "heald-x"\n[tool]\nheald.placement.order = ["SIM"]\n')
    assert list(load(project, user).placement.order) == ["SIM"]


@POSIX
def test_a_link_of_another_user_is_skipped_as_well(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    if os.geteuid() != 0:
        pytest.skip("only root makes links of others")
    (project / "own.toml").write_text("[placement]\nclear = true\n")
    (project / "heald.toml").symlink_to("own.toml")
    os.lchown(project / "heald.toml", 12345, -1)
    assert not load(project, user).placement.clear


@POSIX
def test_the_users_file_that_others_may_write_counts_as_a_found_one(project: Path, user: Path) -> None:
    user_file = user / "config.toml"
    user_file.write_text("[plugins]\nload = ['evil']\n[placement]\nclear = true\n")
    user_file.chmod(0o664)
    config = load(project, user)
    assert (config.plugins.load, config.placement.clear) == ((), True)
    assert warning_texts(config)[0].startswith(
        f"{user_file} can be written by others: it cannot set plugins.load (line 2); to let it: chmod go-w {user_file}")


@POSIX
def test_the_users_file_of_another_user_is_not_used(
    project: Path, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (user / "config.toml").write_text("[placement]\nclear = true\n")
    give_away(user / "config.toml", monkeypatch)
    config = load(project, user)
    assert not config.placement.clear
    assert "belongs to another user" in warning_texts(config)[0]


def test_a_relative_home_is_no_home(project: Path) -> None:
    (project / "conf" / "heald").mkdir(parents=True)
    (project / "conf" / "heald" / "config.toml").write_text("[plugins]\nload = ['evil']\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        assert load_config(environ={"XDG_CONFIG_HOME": "conf"}).plugins.load == ()


def test_no_command_installs_a_plugin_that_a_found_file_names(project: Path, user: Path) -> None:
    (project / "heald.toml").write_text("[kernels]\nMatMul = 'evil'\n[plugin.bad]\nx = 1\n")
    config = load(project, user, HEALD_PLUGINS__ALLOW="")
    with pytest.warns(HealdWarning) as caught:
        load_plugins(config)
    texts = [str(warning.message) for warning in caught]
    assert [text.endswith("is for a plugin that is not installed") for text in texts] == [True, False, True]
    assert "names the op 'MatMul', which is not there" in texts[1]
    assert not [text for text in texts if "pip install" in text]


def test_the_commands_in_a_warning_are_quoted(tmp_path: Path, user: Path) -> None:
    folder = tmp_path / "a; rm -rf b"
    folder.mkdir()
    (folder / "heald.toml").write_text("[plugins]\nload = ['x']\n")
    commands = f"heald config trust '{folder}/heald.toml', or --config '{folder}/heald.toml'"
    assert commands in warning_texts(load(folder, user))[0]


FILLING = [("work_queue]\nthreads", None), ("work_queues.own]\nthreads", None), ("plugin.cpu]\ncount", "cpu"),
           ("plugin.onednn]\nthreads", "onednn"), ("plugin.sim]\ndevices", "sim"),
           ("plugin.example_device]\ndevices", "example_device")]


@pytest.mark.parametrize(("section", "plugin"), FILLING)
def test_a_number_that_would_fill_the_machine_is_a_warning_in_a_found_file_and_an_error_in_another(
    project: Path, user: Path, section: str, plugin: str | None
) -> None:
    path = project / "heald.toml"
    path.write_text(f"[{section} = 1000000000\n")
    plugins = Plugins(load(project, user))
    plugins.load()
    assert [record.id for record in plugins.records() if record.status == "failed"] == []
    (text,) = plugins.config.warnings(plugins.configs)
    assert text.startswith(f"{path}:2: ")
    assert "1000000000" in text
    assert text.endswith("; this setting is not used")
    assert [row.value for row in plugins.config.ignored_rows(plugins.configs)] == [1000000000]
    if plugin is None:
        with pytest.raises(InvalidArgument, match="1000000000"):
            load(user, user, HEALD_CONFIG=str(path))
    else:
        named = Plugins(load(user, user, HEALD_CONFIG=str(path)))
        named.load()
        assert [record.id for record in named.records() if record.status == "failed"] == [plugin]


UNFIT = {
    "an unknown section": ("[nothing]\na = 1", 1, "there is no section [nothing]; "),
    "a section that is a number": ("placement = 3", 1, "[placement] must be a table, not 3"),
    "an unknown key": ("[placement]\nfallbak = 'allow'", 2, "has no key 'fallbak'; did you mean fallback?"),
    "a wrong type": ("[work_queue]\nseed = 'x'", 2, "work_queue.seed must be an integer, not 'x'"),
    "a wrong type of a forbidden key": ("[plugins]\nstrict = 3", 2, "plugins.strict must be true or false, not 3"),
    "a word that is none of the choices": ("[placement]\nfallback = 'x'", 2, "placement.fallback must be 'allow' or"),
    "no name of a device": ("[placement]\nremap = {'GPU' = '///'}", 2, "[placement] remap: '///' is not a device name"),
    "a kernel that is a number": ("[kernels]\nMatMul = 3", 2, "kernels.MatMul must be a string, not 3"),
    "a named queue that is a number": ("[work_queues]\nown = 3", 2, "[work_queues.own] must be a table, not 3"),
    "an unknown key of a queue": ("[work_queues.own]\na = 3", 2, "[work_queues.own] has no key 'a'"),
    "options that are a number": ("[plugin]\np = 3", 2, "[plugin.p] must be a table, not 3"),
    "an unknown option": ("[plugin.p]\nnumer = 3", 2, "[plugin.p] has no key 'numer'; did you mean number or names?"),
    "an option of a wrong type": ("[plugin.p]\nmarked = 3", 2, "plugin.p.marked must be a string, not 3"),
    "an option that the plugin refuses": ("[plugin.p]\nnumber = -1", 2, "number is negative"),
    "options of a plugin without any": ("[plugin.bare]\nx = 1", 1, "plugin bare takes no settings"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_setting_of_a_found_file_that_does_not_fit_is_a_warning_with_its_line_and_does_not_count(
    project: Path, user: Path, name: str
) -> None:
    toml, line, message = UNFIT[name]
    path = project / "heald.toml"
    path.write_text(f"{toml}\n[passes]\ndisable = ['fusion']\n")
    plugins = {"p": Options(), "bare": None}
    config = load(project, user)
    (text,) = config.warnings(plugins)
    assert text.startswith(f"{path}:{line}: ")
    assert message in text
    assert config.passes.disable == ("fusion",)
    assert config.placement == Config().placement
    assert config.work_queue == Config().work_queue
    assert config.kernels == {}
    assert plugin_config(config, "p", Options) == Options()
    assert {row.origin for row in config.ignored_rows(plugins)} == {f"{path}:{line}"}


def test_a_bad_setting_of_a_found_file_hides_no_weaker_one_of_the_user(project: Path, user: Path) -> None:
    (user / "config.toml").write_text("[work_queue]\nthreads = 3\n[plugin.p]\nnumber = 4\n")
    (project / "heald.toml").write_text("[work_queue]\nthreads = 0\n[plugin.p]\nnumber = -4\n")
    config = load(project, user)
    assert config.work_queue.threads == 3
    assert plugin_config(config, "p", Options).number == 4
    assert len(warning_texts(config)) == 2
    assert {row.key: row.value for row in config.origins({"p": Options(number=4)})}["plugin.p.number"] == 4


def test_many_mistakes_in_a_found_file_take_few_warnings_and_little_time(project: Path, user: Path) -> None:
    (project / "heald.toml").write_text("\n".join(f"sectoin{number} = 1" for number in range(3_000)))
    config = load(project, user)
    assert len(warning_texts(config)) == 11
    assert warning_texts(config)[-1] == "2990 more settings of found files are not used"


@pytest.mark.parametrize("option", ["number", "switch", "real"])
def test_an_option_that_its_plugin_marks_as_unsafe_is_not_a_found_files_to_set(
    project: Path, user: Path, option: str
) -> None:
    @dataclass(frozen=True)
    class Unsafe:
        number: int = field(default=0, metadata={"found": False})
        switch: bool = field(default=False, metadata={"found": False})
        real: float = field(default=0.0, metadata={"found": False})

    value = {"number": "1", "switch": "true", "real": "1.5"}[option]
    (project / "heald.toml").write_text(f"[plugin.p]\n{option} = {value}\n")
    config = load(project, user)
    assert plugin_config(config, "p", Unsafe) == Unsafe()
    (text,) = config.warnings({"p": Unsafe()})
    assert f"cannot set plugin.p.{option} (line 2)" in text
    assert plugin_config(load(user, user, HEALD_CONFIG=str(project / "heald.toml")), "p", Unsafe) != Unsafe()


TOO_MUCH = {
    "a deep key": ("a." * 60_000 + "a = 1", "nested more than 32 deep"),
    "a deep quoted key": ('"a".' * 30_000 + "a = 1", "nested more than 32 deep"),
    "a deep header": ("[" + "a." * 60_000 + "a]", "nested more than 32 deep"),
    "deep lists": ("a = " + "[" * 100_000, "nested more than 32 deep"),
    "deep tables": ("a = " + "{a = " * 20_000, "nested more than 32 deep"),
    "deep tables of deep keys": ("a = " + ("{" + "a." * 30 + "a = ") * 20 + "1" + "}" * 20, "nested more than 32 deep"),
    "a long integer": ("plugins = " + "9" * 100_000, "not TOML"),
    "a long hexadecimal integer": ("plugins = 0x" + "f" * 100_000, "does not fit into 64"),
    "open strings": ('a = "' + '\\"' * 100_000, "not TOML"),
    "open long strings": ('a = """' + '\\"""' * 50_000, "not TOML"),
    "a large file": ("#" * (1 << 18) + "\n", "has more than 262144 bytes"),
    "a long value": ("plugins = '" + "x" * 200_000 + "'", "must be a table, not 'x"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_file_of_too_much_is_a_short_error_where_it_is_named_and_a_short_warning_where_it_is_found(
    project: Path, user: Path, name: str
) -> None:
    text, message = TOO_MUCH[name]
    (project / "heald.toml").write_text(text)
    with pytest.raises(InvalidArgument) as caught:
        load(user, user, HEALD_CONFIG=str(project / "heald.toml"))
    (warning,) = warning_texts(load(project, user))
    for text in (str(caught.value), warning):
        assert message in text
        assert str(project / "heald.toml") in text
        assert len(text) < 1000


@POSIX
@pytest.mark.parametrize("name", ["heald.toml", "pyproject.toml"])
def test_a_found_file_that_cannot_be_read_is_a_warning(project: Path, user: Path, name: str) -> None:
    (project / name).write_bytes(b"[tool.heald]\nx = '\xff'")
    (text,) = warning_texts(load(project, user))
    assert text.startswith(f"config file {project / name} cannot be read: ")


def test_the_lines_of_a_long_statement_are_found_in_one_pass(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tomllib

    (project / "heald.toml").write_text("[plugins]\nblock = [\n" + "'[]',\n" * 20_000 + "]\nstrict = true\n")
    parsed: list[int] = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(len(text)) or loads(text))
    config = load(project, project)
    assert [row.origin for row in config.ignored_rows({})] == [f"{project / 'heald.toml'}:20004"]
    size = (project / "heald.toml").stat().st_size
    assert size < sum(parsed) <= 2 * size


@pytest.mark.parametrize("value", ["tool = 3", "[tool]\nheald = 3", "[[tool.heald]]"])
def test_an_odd_pyproject_is_a_typed_error_or_nothing(project: Path, user: Path, value: str) -> None:
    (project / "pyproject.toml").write_text(value)
    try:
        config: Any = load(project, user)
    except HealdError:
        return
    assert json.dumps([row.origin for row in config.origins()])
