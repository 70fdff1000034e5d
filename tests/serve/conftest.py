"""Fixtures of the server's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from harness.serve_models import Client, start_server


@pytest.fixture
def start() -> Iterator[Callable[..., Any]]:
    """A function that starts a server of models by name, each a dict of signatures, and returns it and a client."""
    ends: list[Callable[[], None]] = []

    def begin(models: Mapping[str, Any], **changes: Any) -> Any:
        server = start_server(models, **changes)
        client = Client(server.port)
        ends.extend((client.close, server.close))
        return server, client

    yield begin
    for end in ends:
        end()
