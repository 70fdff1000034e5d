"""The pytest plugin: its options, the items made of cases, the text of a failure, and the figures at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .case import Case, cases
from .settings import FILE, LEVELS, Settings, SettingsError, load_settings
from .verdict import Broken, NotApplicable

if TYPE_CHECKING:
    from .subject import Subject

FOLDER = Path(__file__).parent / "levels"
FIGURE = "heald conformance figure"  # the property of an item that holds a figure
_SETTINGS_KEY = pytest.StashKey[Settings]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("heald conformance", "pytest --pyargs heald_conformance")
    group.addoption("--device", action="append", default=[], metavar="NAME", dest="heald_devices",
                    help="the device to test, OPENCL:0 for instance; may be repeated. Default: every usable one")
    group.addoption("--pack", metavar="ID", dest="heald_pack",
                    help="test the kernels of this plugin alone, on any device: CPU:0, too")
    group.addoption("--conformance-config", metavar="FILE", type=Path, help=f"default: {FILE} in this folder")
    group.addoption("--conformance-quick", action="store_true", help="fewer and smaller cases")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.parent == FOLDER and file_path.stem in LEVELS and file_path.stem in _settings(parent.config).levels:
        return Level.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures of throughput cases."""
    passed = terminalreporter.getreports("passed")
    figures = [text for report in passed for name, text in report.user_properties if name == FIGURE]
    if figures:
        terminalreporter.section("heald conformance: throughput")
    for text in figures:
        terminalreporter.write_line(str(text))


class Level(pytest.File):
    """The cases of a level, for each device."""

    def collect(self) -> Iterator[OnDevice]:
        for name in self.config.getoption("heald_devices") or _usable(_settings(self.config)):
            yield OnDevice.from_parent(self, name=name)


class OnDevice(pytest.Collector):
    def collect(self) -> Iterator[CaseItem]:
        from heald.errors import HealdError

        from .subject import Subject

        settings = _settings(self.config)
        try:
            subject = Subject(self.name, settings)
        except HealdError as error:
            raise self.CollectError(f"{self.name} cannot be tested: {error}") from None
        for case in cases(self.path.stem):
            for single in case.on(subject):
                item = CaseItem.from_parent(self, name=single.id, case=single, subject=subject)
                reason = settings.why_expected(self.name, single.id)
                if reason is not None:
                    item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
                yield item


class CaseItem(pytest.Item):
    def __init__(self, *, case: Case, subject: Subject, **others: Any) -> None:
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
