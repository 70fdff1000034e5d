"""Settings of all tests, the parts of the gate, and the lines of the summary on devices and golden cases."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from heald.runtime.service.runtime import ProcessScope

# Property tests search anew with every run, except at the gate, where the same commit must give the same answer.
settings.register_profile("heald", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("heald")

TESTS = Path(__file__).parent
THOROUGH = TESTS / "thorough.txt"
LEFT_OUT = pytest.StashKey[Callable[[str], bool]]()  # of a run: the files that have no test of its part


def thorough_lines() -> list[str]:
    return [line for line in THOROUGH.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def files_without_tests(part: str) -> Callable[[str], bool]:
    """Whether a file, by its path in the repository, has no test of a part of the gate, which a marker names."""
    lines = thorough_lines()
    if part == "thorough or examples":
        listed = {line.removeprefix("+ ").partition("::")[0] for line in lines}
        return lambda path: path not in listed
    whole_files = {line for line in lines if "::" not in line and part == "not thorough"}
    return whole_files.__contains__


@pytest.hookimpl
def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = files_without_tests(config.option.markexpr)


@pytest.hookimpl
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests all belong to the other part: imports are a third of a worker's start."""
    if collection_path.suffix in (".py", ".mlir") and collection_path.is_relative_to(TESTS):
        return config.stash[LEFT_OUT](collection_path.relative_to(TESTS.parent).as_posix()) or None
    return None


def thorough_patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the patterns of node ids in thorough.txt, each with the marker of the tests that it matches."""
    return [(re.compile(".*".join(map(re.escape, line.removeprefix("+ ").split("*")))),
             "examples" if line.startswith("+ ") else "thorough") for line in thorough_lines()]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Freeze the million objects of modules and collected tests, so that no collection of garbage looks at them again.

    Half a second is saved in each test that collects garbage, and some seconds while modules are imported.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(700, 10, 100)  # the rest is small, so that Python would look at all of it ten times as often
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that thorough.txt lists."""
    patterns = thorough_patterns()
    for item in items:
        for pattern, marker in patterns:
            if pattern.match(item.nodeid):
                item.add_marker(marker)


@pytest.fixture(scope="session")
def plain_scope() -> ProcessScope:
    """A default runtime of its own for all modules with `graphs_as_written`."""
    from heald.runtime.service.runtime import ProcessScope

    return ProcessScope()


@pytest.fixture(scope="module")
def graphs_as_written(plain_scope: ProcessScope) -> Iterator[None]:
    """Steps run the graphs that the test has written down: the installed passes change no graph."""
    from heald.runtime.service import runtime

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEALD_PLUGINS__BLOCK", "simplify")
        patch.setattr(runtime, "process_scope", plain_scope)
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The devices beside those that are always there, and how many of TensorFlow's recorded cases were run, as tests
    record them: properties "device tested", "kernel text tested" and "golden cases"."""
    passed = terminalreporter.getreports("passed")
    devices = {value for report in passed for name, value in report.user_properties if name == "device tested"}
    terminalreporter.write_line(f"devices tested: {', '.join(['CPU:0', 'EXAMPLE:0', *sorted(devices)])}")
    texts = {value for report in passed for name, value in report.user_properties if name == "kernel text tested"}
    if texts:
        terminalreporter.write_line(f"kernel text tested: {', '.join(sorted(texts))}")
    counts = [count for report in passed for name, count in report.user_properties if name == "golden cases"]
    if counts:
        forms = "fed, as constants and between buffers"
        terminalreporter.write_line(f"golden cases passed on CPU:0, {forms}: {sum(counts)}")
