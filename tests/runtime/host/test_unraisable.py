"""Exceptions of callbacks that no caller receives: each is reported, and the others are called."""

from __future__ import annotations

import sys

import heald
import pytest
from heald.errors import Internal
from heald.runtime.host.cancellation import CancelToken


@pytest.fixture(autouse=True)
def _pythons_own_hook(monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)  # in the place of pytest's


def test_a_callback_of_a_cancellation_that_raises_keeps_no_other_from_running(capfd):
    token, calls = CancelToken(), []
    token.on_cancel(lambda: 1 / 0)
    token.on_cancel(lambda: calls.append("registered"))
    token.cancel()
    token.on_cancel(lambda: 1 / 0)
    assert calls == ["registered"]
    assert capfd.readouterr().err.count("ZeroDivisionError") == 2



def test_a_diagnostics_handler_that_raises_is_reported_and_raises_nothing(capfd):
    host = heald.HostContext(diagnostics=lambda error: 1 / 0)
    host.report(Internal("the kernel failed"))
    host.close()
    assert "a diagnostics handler: <function" in capfd.readouterr().err
