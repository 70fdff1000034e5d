"""GPUs of the fake driver, for tests in this process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fake_cuda.host_compiler import is_there
from heald.runtime.service import runtime


def _modules() -> list[str]:
    """The modules of heald_cuda that a driver is in."""
    return [name for name in sys.modules if name.startswith("heald_cuda.") and name != "heald_cuda.plugin"]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The fake driver, in the place of the true one. The test fails if work misused memory or lacked a wait."""
    reason = is_there()
    if reason is not None:
        pytest.skip(reason)
    import heald_cuda
    import heald_cuda.driver as true_driver

    before = {name: sys.modules.pop(name) for name in _modules()}
    from fake_cuda import fake_driver

    sys.modules["heald_cuda.driver"] = heald_cuda.driver = fake_driver
    fake_driver.reset()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    scope = runtime.ProcessScope()
    monkeypatch.setattr(runtime, "process_scope", scope)
    yield fake_driver
    if scope.default is not None:
        scope.default.host.close()
    gc.collect()  # the hosts of sessions with settings of their own are closed, too
    report = list(fake_driver.state.report)
    for name in _modules():
        del sys.modules[name]
    sys.modules.update(before)
    heald_cuda.driver = true_driver
    assert report == []


@pytest.fixture
def gpus(fake: ModuleType) -> Iterator[Callable[..., list[Any]]]:
    """A function of settings of [plugin.cuda] that returns the open GPUs."""
    from heald_cuda.device import scan
    from heald_cuda.plugin import Config

    opened: list[Any] = []

    def open_them(**config: Any) -> list[Any]:
        devices = scan(Config(**config))
        for device in devices:
            device.open()
        opened.extend(devices)
        return devices

    yield open_them
    for device in opened:
        device.close()


@pytest.fixture
def gpu(gpus: Callable[..., list[Any]]) -> Any:
    return gpus()[0]
