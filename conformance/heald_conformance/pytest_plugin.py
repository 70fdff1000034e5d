"""The pytest plugin: its options, the items made of cases, the text of a failure, and the figures at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .case import Case, cases, make_subject
from .hook_subject import HOOKS, OPTION_OF_MODULE, HookSubject
from .settings import FILE, LEVELS, Settings, SettingsError, load_settings
from .verdict import Broken, NotApplicable

if TYPE_CHECKING:
    from .subject import Subject

FOLDER = Path(__file__).parent / "levels"
HOOK_FOLDER = Path(__file__).parent / "hooks"
HELP = {
    "queue": ("NAME", "test the work queue of this name"),
    "allocator": ("NAME", "test the host allocator of this name"),
    "pass": ("NAME", "test the graph pass of this name"),
    "loader": ("FILE", "test the loader of this file or folder, a small model"),
    "handler": ("NAME", "test the op handler of this name"),
    "session": ("TARGET", "test the sessions of this target, as in heald.Session(graph, target=TARGET)"),
    "compiler": ("NAME", "test the compiler of this name"),
    "rendezvous": ("PLACE", "test what the function 'package.module:function' returns, a new rendezvous each time"),
}
FIGURE = "heald conformance figure"  # the property of an item that holds a figure
_PLUGINS_KEY = pytest.StashKey[None]()
_UNUSED_KEY = pytest.StashKey[set[str]]()  # expected failures that no collected case has
_SETTINGS_KEY = pytest.StashKey[Settings]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("heald conformance", "pytest --pyargs heald_conformance")
    group.addoption("--device", action="append", default=[], metavar="NAME", dest="heald_devices",
                    help="the device to test, OPENCL:0 for instance; may be repeated. Default: every usable one")
    group.addoption("--pack", metavar="ID", dest="heald_pack",
                    help="test the kernels of this plugin alone, on any device: CPU:0, too")
    for option, (metavar, text) in HELP.items():
        group.addoption(f"--{option}", action="append", default=[], metavar=metavar, dest=f"heald_{option}", help=text)
    group.addoption("--plugin", action="append", default=[], metavar="PLACE", dest="heald_plugins",
                    help="register this plugin first: a module or a .py file; may be repeated")
    group.addoption("--conformance-config", metavar="FILE", type=Path, help=f"default: {FILE} in this folder")
    group.addoption("--conformance-quick", action="store_true", help="fewer and smaller cases")


def pytest_configure(config: pytest.Config) -> None:
    """Raises UsageError for a file that is not there: every case of it would fail."""
    lost = [path for path in config.getoption("heald_loader") if not Path(path).exists()]
    if lost:
        raise pytest.UsageError(f"--loader: no such file: {', '.join(lost)}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.parent == HOOK_FOLDER and _names_of(parent.config, file_path.stem):
        return Level.from_parent(parent, path=file_path)
    if _tests_hooks_alone(parent.config):
        return None
    if file_path.parent == FOLDER and file_path.stem in LEVELS and file_path.stem in _settings(parent.config).levels:
        return Level.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of cases, and expected failures that name no case."""
    passed = terminalreporter.getreports("passed")
    figures = [text for report in passed for name, text in report.user_properties if name == FIGURE]
    if figures:
        terminalreporter.section("heald conformance: figures")
    for text in figures:
        terminalreporter.write_line(str(text))
    for pattern in sorted(terminalreporter.config.stash.get(_UNUSED_KEY, ())):
        terminalreporter.write_line(f"expected_failures: '{pattern}' names no case of this run")


class Level(pytest.File):
    """The cases of a level, for each device, or for each object of another hook."""

    def collect(self) -> Iterator[OnSubject]:
        _register_plugins(self.config)
        hook_names = _names_of(self.config, self.path.stem)
        for name in hook_names or self.config.getoption("heald_devices") or _usable(_settings(self.config)):
            yield OnSubject.from_parent(self, name=name)


class OnSubject(pytest.Collector):
    def collect(self) -> Iterator[CaseItem]:
        from heald.errors import HealdError

        settings = _settings(self.config)
        try:
            subject = make_subject(self.path.stem, self.name, settings)
        except HealdError as error:
            raise self.CollectError(f"{self.name} cannot be tested: {error}") from None
        unused = self.config.stash.setdefault(_UNUSED_KEY, set(settings.expected_failures))
        for case in cases(self.path.stem):
            for single in case.on(subject):
                item = CaseItem.from_parent(self, name=single.id, case=single, subject=subject)
                unused.difference_update(settings.patterns_of(self.name, single.id))
                reason = settings.why_expected(self.name, single.id)
                if reason is not None:
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
                yield item


class CaseItem(pytest.Item):
    def __init__(self, *, case: Case, subject: Subject | HookSubject, **others: Any) -> None:
        super().__init__(**others)
        self._case = case
        self._subject = subject

    def runtest(self) -> None:
        try:
            figures = self._case.run(self._subject)
        except NotApplicable as reason:
            pytest.skip(str(reason))
        for figure in figures or ():
            self.user_properties.append((FIGURE, f"{self._subject.name}  {figure}"))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The broken rule of the contract, or the traceback of an unexpected exception."""
        pack = self._subject.pack
        pack_setting = f', heald_conformance.Settings(pack="{pack}")' if pack is not None else ""
        again = f'heald_conformance.case("{self._case.id}")("{self._subject.name}"{pack_setting})'
        if isinstance(excinfo.value, Broken):
            return f"{self._subject.name}: {self._case.title}\n{excinfo.value}\n  again:    {again}"
        return f"{super().repr_failure(excinfo, style)}\nagain: {again}"

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self._subject.name}: {self._case.title}"


def _names_of(config: pytest.Config, module: str) -> list[str]:
    """The names that the option of a module of `hooks` has; none for a level of devices."""
    return list(config.getoption(f"heald_{OPTION_OF_MODULE[module]}")) if module in OPTION_OF_MODULE else []


def _tests_hooks_alone(config: pytest.Config) -> bool:
    """True if options name objects of other hooks, and no device."""
    of_devices = config.getoption("heald_devices") or config.getoption("heald_pack")
    return not of_devices and any(_names_of(config, module) for module in HOOKS.values())


def _register_plugins(config: pytest.Config) -> None:
    """Register the plugins of `--plugin`, once."""
    if config.getoption("heald_plugins") and _PLUGINS_KEY not in config.stash:
        import heald

        config.stash[_PLUGINS_KEY] = None
        for place in config.getoption("heald_plugins"):
            heald.register(place)


def _settings(config: pytest.Config) -> Settings:
    if _SETTINGS_KEY not in config.stash:
        path_option = config.getoption("conformance_config")
        path = path_option or (Path(FILE) if Path(FILE).exists() else None)
        try:
            config.stash[_SETTINGS_KEY] = load_settings(
                path, quick=config.getoption("conformance_quick"), pack=config.getoption("heald_pack"))
        except SettingsError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SETTINGS_KEY]


def _usable(settings: Settings) -> list[str]:
    """The devices that can be used; with a pack, only of types for which it has kernels."""
    import heald

    from .subject import pinned_runtime

    packs = heald.default_host().registries.kernels.packs()
    types = {pack.device_type for pack in packs if settings.pack in (None, pack.plugin)}
    if not types:
        raise pytest.UsageError(f"--pack: plugin '{settings.pack}' has no kernels; these have: "
                                f"{', '.join(sorted({pack.plugin for pack in packs}))}")
    host = pinned_runtime(settings.pack).host  # the one in which they are tested: a device may allow no second
    return [name for kind in host.preference() if settings.pack is None or kind in types for name in host.names(kind)]
