"""The collector of programs: each piece of an `.mlir` file is a test, with its expectations in comments.

`// RUN: PROGRAM OPTIONS` in the first piece names the program: bef_executor (the default), tfrt_translate or tfrt_opt.
`2>&1` among the options adds the lines of stderr to the output. Output is compared with CHECK lines, diagnostics with
`expected-*` comments: bef_executor compares them by itself.
`// STATUS: N` is the exit status, 0 by default. Pieces are texts between lines `// -----`.
"""

from __future__ import annotations

import io
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from harness.file_check import check_output

if TYPE_CHECKING:
    from heald.runtime.service.runtime import ProcessScope

_RUN = re.compile(r"^// RUN: (\w+) ?(.*)$", re.MULTILINE)
_STATUS = re.compile(r"^// STATUS: (\d+)$", re.MULTILINE)
_ONE_STREAM = "2>&1"
KERNELS = "plugins_for_tests.tfrt_test"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return ProgramFile.from_parent(parent, path=file_path) if file_path.suffix == ".mlir" else None


class ProgramFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        from heald_mlir.diagnostics import split_input

        chunks = split_input(self.path.read_text("utf-8"))
        command = _RUN.search(chunks[0].text)
        for number, chunk in enumerate(chunks):
            item = Program.from_parent(self, name=f"{self.path.stem}-{number}" if len(chunks) > 1 else self.path.stem)
            item.text = "\n" * (chunk.line - 1) + chunk.text
            item.program, options = command.groups() if command else ("bef_executor", "")
            item.options = shlex.split(options)
            yield item


class Program(pytest.Item):
    text: str
    program: str
    options: list[str]

    def runtest(self) -> None:
        with TemporaryDirectory() as folder:
            self._run_file(Path(folder) / f"{self.name}.mlir")

    def _run_file(self, file: Path) -> None:
        file.write_text(self.text)
        main = import_module(f"heald_mlir.{self.program}").main
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
        is_one = _ONE_STREAM in self.options
        options = [option for option in self.options if option != _ONE_STREAM]
        with _kernels_of_tests(), redirect_stdout(out), redirect_stderr(out if is_one else err):
            status = main([*options, str(file)])
        texts = []
        for stream in (out, err):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode("utf-8", "replace"))
        expected = _STATUS.search(self.text)
        assert status == int(expected[1] if expected else 0), f"status {status}\n{texts[1]}\n{texts[0]}"
        check_output(self.text, texts[0])

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, AssertionError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))


@contextmanager
def _kernels_of_tests() -> Iterator[None]:
    """A default runtime with TFRT's test kernels, which other tests do not see."""
    from heald.runtime.service import runtime

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runtime, "process_scope", _scope_of_tests())
        yield


@cache
def _scope_of_tests() -> ProcessScope:
    from heald.runtime.service.runtime import ProcessScope

    return ProcessScope([sys.modules.get(KERNELS) or KERNELS])
