"""Attached calls that stand side by side run as one, where their plugin can join them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from heald.errors import PluginError
from heald.runtime.executor.frame import Frame
from heald.runtime.executor.joined_calls import join_adjacent_calls


class Joinable:
    """A call that notes its name."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def __call__(self) -> None:
        self.log.append(self.name)

    @staticmethod
    def join(calls: Sequence[Any]) -> list[Callable[[], Any] | None]:
        log = calls[0].log
        return [lambda: log.append("+".join(call.name for call in calls)), *[None] * (len(calls) - 1)]


def frame_of(calls: Sequence[Callable[[], Any]]) -> Frame:
    frame = Frame([None], list(calls), [], [], range(len(calls)))
    join_adjacent_calls(frame)
    return frame


def log_of(calls: Sequence[Callable[[], Any]]) -> None:
    for call in calls:
        call()


def test_adjacent_calls_are_joined_and_all_indices_stay() -> None:
    log: list[str] = []
    a, b, c, d = (Joinable(name, log) for name in "abcd")
    frame = frame_of([a, b, lambda: log.append("other"), c, d])
    log_of(frame.calls)
    assert log == ["a+b", "other", "c+d"]
    assert len(frame.calls) == 5


def test_a_traced_run_makes_each_call_by_itself() -> None:
    log: list[str] = []
    frame = frame_of([Joinable(name, log) for name in "ab"])
    assert frame.unreplayed is not None
    log_of(frame.unreplayed)
    assert log == ["a", "b"]


def test_a_call_by_itself_stays() -> None:
    log: list[str] = []
    frame = frame_of([lambda: None, Joinable("a", log), lambda: None])
    assert frame.unreplayed is None


@pytest.mark.parametrize("joined", [[], [None], [None] * 3])
def test_another_number_of_calls_is_the_plugins_error(joined: list[None]) -> None:
    class Wrong(Joinable):
        @staticmethod
        def join(_: Sequence[Any]) -> Any:
            return joined

    with pytest.raises(PluginError, match="calls in the place of 2"):
        frame_of([Wrong("a", []), Wrong("b", [])])


def test_an_exception_of_join_is_the_plugins_error() -> None:
    class Wrong(Joinable):
        @staticmethod
        def join(_: Sequence[Any]) -> Any:
            raise RuntimeError("no memory")

    with pytest.raises(PluginError, match="no memory"):
        frame_of([Wrong("a", []), Wrong("b", [])])
